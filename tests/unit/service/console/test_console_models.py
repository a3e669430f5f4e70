"""Models and validations in the console: lists, one model, and reports as pages."""

import json
import re

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from tests.unit.service.conftest import CLASS_NAMES, Service
from tests.unit.service.consoles import Console

PAGE = "/console/models/linear@1"


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def validate(console: Console, *, report: bytes | None, accepted: bool | None) -> str:
    labels = np.arange(8) % len(CLASS_NAMES)
    labelled = LabelledSet(LabeledLogits(np.eye(len(CLASS_NAMES))[labels], labels))
    return str(
        console.service.store.evaluations.put(
            "linear@1",
            result=json.dumps(str(report)).encode(),
            report=report,
            labelled_set=labelled.to_bytes(),
            head="0" * 64,
            recommendation_version=None,
            accepted=accepted,
            samples=1234,
            actor="ann",
        ).id
    )


def test_the_list_leads_to_a_model_with_its_heads(console: Console) -> None:
    listed = console.get("/console/models").text
    assert f'href="{PAGE}"' in listed
    assert '<span class="chip complete">promoted</span>' in listed
    shown = console.get(PAGE).text
    for text in (
        "It is promoted",
        "default head",
        "It was compared with no other model",
        "lifelong models validate linear@1",
    ):
        assert text in shown
    assert "trained here" not in shown
    assert console.get("/console/models/linear@9").status_code == 404


def test_a_model_is_promoted_and_rolled_back_from_its_page(console: Console) -> None:
    page = "/console/models/table@1"
    assert "Promote it" in console.get(page).text
    assert "Promote it" not in Console(console.service, scope="read").get(page).text
    sent = console.post("/console/tasks/skin/promote", {"model": "table@1", "reason": "a test"})
    assert sent.status_code == 303
    shown = console.get(page).text
    assert "Roll back to linear@1" in shown
    (sequence,) = re.findall(r'name="sequence" value="(\d+)"', shown)
    assert console.post("/console/tasks/skin/rollback", {"sequence": sequence}).status_code == 303
    assert "It is promoted" in console.get(PAGE).text


def test_validations_are_listed_and_their_reports_are_pages(console: Console) -> None:
    assert "No model was validated yet" in console.get("/console/validations").text
    with_report = validate(console, report=b"<h1>Good</h1>", accepted=False)
    without = validate(console, report=None, accepted=True)
    for page in (PAGE, "/console/validations"):
        shown = console.get(page).text
        assert f'href="/console/validations/{with_report}/report"' in shown
        assert f"{without}/report" not in shown
        assert '<strong class="disagrees">missed</strong>' in shown
        assert '<span class="chip complete">reached</span>' in shown
        assert "1,234" in shown
    report = console.get(f"/console/validations/{with_report}/report")
    assert report.text == "<h1>Good</h1>"
    assert "default-src 'none'" in report.headers["content-security-policy"]
    assert console.get(f"/console/validations/{without}/report").status_code == 404
    assert console.get("/console/validations/01a20676-ec35-71e3-9541-7358988905de/report").status_code == 404
    document = console.service.client.get(f"/v1/admin/validations/{with_report}/report")
    assert document.text == "<h1>Good</h1>"
