"""Heads in the console: history, differences, proposals, and what people change."""

import re
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, Prediction, new_prediction_id, register_calibration
from lifelong_core.store.schema import tables
from tests.unit.service.conftest import Service, calibration
from tests.unit.service.consoles import OURS, Console
from tests.unit.service.routes.admin.test_pins_and_proposals import propose

PAGE = "/console/heads/linear@1/site-a"
DEFAULT = "/console/heads/linear@1"


@pytest.fixture
def console(service: Service) -> Console:
    service.store.environments.ensure("site-a", limit=9)
    return Console(service)


def log(service: Service, rows: int = 40) -> None:
    """Predictions of the environment that the heads of the tests decide about."""
    model = service.store.models.get("linear")
    logits = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)
    found = [Prediction(new_prediction_id(), model.id, "site-a", 1, 0, row) for row in logits]
    service.store.predictions.append([LogEntry((one,)) for one in found])


def change(console: Console, what: str, **form: str) -> str:
    """Ask for a change, confirm it, and return the page that follows."""
    asked = console.ask(f"{PAGE}/{what}", form)
    assert asked.status_code == 200, asked.text
    sent = console.post(f"{PAGE}/{what}", form)
    assert (sent.status_code, sent.headers["Location"]) == (303, PAGE), sent.text
    return asked.text


def test_a_proposal_is_approved_with_what_it_changes(console: Console) -> None:
    service = console.service
    log(service)
    cycle = propose(service, shift=[2.0, 0.0, -2.0])
    page = console.get(PAGE).text
    answer = service.client.get(f"/v1/admin/cycles/{cycle.id}/diff").json()
    changed = answer["decisions"]["changed"]
    assert 0 < changed < 40
    for text in (
        'the <a href="/console/heads/linear@1">default head</a> of the model',
        "A cycle proposes another head",
        "benign becomes more and malignant less probable",
        f"<strong>{changed} of the newest 40 decisions change</strong>",
        f'href="/console/predictions/{answer["decisions"]["predictions"][0]["prediction_id"]}"',
        "It pays.",
    ):
        assert text in page
    asked = change(console, "approve", cycle=str(cycle.id))
    assert f"{changed} of the newest 40 decisions in site-a would be others." in asked
    assert service.store.heads.serving("linear", "site-a") == 2
    page = console.get(PAGE).text
    assert "Head 2 serves. It " in page
    assert f'of a <a href="/console/cycles/{cycle.id}">cycle</a>' in page
    assert '<td data-label="By">operate-<wbr>token</td>' in page
    again = console.post(f"{PAGE}/approve", {"cycle": str(cycle.id)})
    assert (again.status_code, 'role="alert"' in again.text) == (409, True)


def test_a_proposal_is_rejected_with_a_reason(console: Console) -> None:
    cycle = propose(console.service)
    refused = console.ask(f"{PAGE}/reject", {"cycle": "zz"})
    assert refused.status_code == 422
    asked = change(console, "reject", cycle=str(cycle.id), reason="a bad <batch>")
    assert "a bad &lt;batch&gt;" in asked
    assert "A cycle proposes" not in console.get(PAGE).text
    assert console.service.store.cycles.get(cycle.id).rejection.reason == "a bad <batch>"


def test_heads_are_published_pinned_unpinned_and_rolled_back(console: Console) -> None:
    heads = console.service.store.heads
    head = heads.get("linear", 1).head
    other = replace(head, assumed_prevalence=[0.2, 0.2, 0.6])
    asked = change(console, "publish", head=other.to_json(), expected_sequence="0")
    assert "assumes 60 % malignant, 20 % benign, 20 % unclear and decides" in asked
    assert "It assumes 60 % malignant instead of 33.3 %" in asked
    assert "wrong &lt;scanner&gt;" in change(console, "pin", reason="wrong <scanner>", expected_sequence="1")
    page = console.get(PAGE).text
    assert "<strong>Pinned</strong> by operate-token" in page
    assert f'action="{PAGE}/pin"' not in page
    assert "The reason of the pin was" in change(console, "unpin")
    change(console, "publish", head=head.to_json())
    page = console.get(PAGE).text
    assert f'href="{PAGE}/diff?version=2&amp;other=3"' in page
    difference = console.get(f"{PAGE}/diff?version=2&other=3").text
    assert "assumed prevalence of malignant" in difference
    assert "There is no prediction to compare" in difference
    change(console, "rollback", to_version="2", pin_reason="the third is wrong", expected_sequence="2")
    assert heads.serving("linear", "site-a") == 2
    assert [pin.reason for pin in heads.pins("linear")] == ["the third is wrong"]


def test_the_default_head_has_a_page(console: Console) -> None:
    page = console.get(DEFAULT).text
    assert "Default head of linear@<wbr>1" in page or "Default head of linear@1" in page
    sent = console.post(f"{DEFAULT}/pin", {"reason": "frozen"})
    assert sent.headers["Location"] == DEFAULT
    assert "Pinned" in console.get(PAGE).text  # the environment follows it
    assert f'action="{PAGE}/unpin"' not in console.get(PAGE).text
    assert f'action="{DEFAULT}/unpin"' in console.get(DEFAULT).text


@pytest.mark.parametrize(
    ("what", "form", "status", "said"),
    [
        ("rollback", {"expected_sequence": "7"}, 409, "changed meanwhile"),
        ("rollback", {"to_version": "9"}, 404, "has no head 9"),
        ("rollback", {"to_version": "x"}, 422, "to_version"),
        ("pin", {"reason": ""}, 422, "reason"),
        ("publish", {"head": "{"}, 422, "head"),
        ("publish", {"head": '{"schema_version": 1}'}, 422, "temperature"),
        ("unpin", {}, 409, "not pinned"),
        ("nonsense", {}, 404, "no form"),
    ],
)
def test_a_refused_form_shows_the_page_with_the_reason(
    console: Console, what: str, form: dict[str, str], status: int, said: str
) -> None:
    answer = console.post(f"{PAGE}/{what}", form)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text or status == 404
    assert said in answer.text


def test_over_a_damaged_head_one_publishes_and_approves_without_a_comparison(console: Console) -> None:
    service = console.service
    cycle, head = propose(service), service.store.heads.get("linear", 1).head
    with service.store.database.write() as connection:
        connection.execute(sa.update(tables.heads).where(tables.heads.c.version == 1).values(document="{"))
    damage = "Head 1 is damaged: nothing can be compared with it."
    assert damage in console.get(PAGE).text
    assert console.ask(f"{PAGE}/approve", {"cycle": str(cycle.id)}).status_code == 200
    answer = service.client.get(f"/v1/admin/cycles/{cycle.id}/diff")
    assert (answer.status_code, answer.json()["sentences"]) == (200, [damage])
    assert damage in change(console, "publish", head=head.to_json())


def test_a_roll_back_tells_the_pin_that_stays(console: Console) -> None:
    heads = console.service.store.heads
    head = heads.get("linear", 1).head
    change(console, "publish", head=replace(head, assumed_prevalence=[0.2, 0.2, 0.6]).to_json())
    assert "The default head (1) of linear@1 decides in site-a again" in console.ask(f"{PAGE}/rollback").text
    assert "It is not pinned: a cycle may replace it." in console.ask(f"{PAGE}/rollback").text
    heads.pin("linear", environment=None, reason="the default", actor="ann")
    assert "It stays pinned by ann (&#39;the default&#39;)" in console.ask(f"{PAGE}/rollback").text
    assert "It is not pinned" in console.ask(f"{PAGE}/rollback", {"to_version": "1"}).text
    assert "It is pinned (&#39;new&#39;)" in console.ask(f"{PAGE}/rollback", {"pin_reason": "new"}).text
    heads.pin("linear", environment="site-a", reason="an audit", actor="ann")
    asked = console.ask(f"{PAGE}/rollback", {"pin_reason": "new"}).text
    assert (
        "It stays pinned by ann (&#39;an audit&#39;): no cycle replaces it. The new reason is not kept."
        in asked
    )
    assert "It stays pinned by ann" in console.ask(f"{PAGE}/publish", {"head": head.to_json()}).text
    nothing = console.ask(f"{DEFAULT}/rollback")
    assert (nothing.status_code, "No head was in force before" in nothing.text) == (409, True)


def test_a_default_head_tells_the_calibration_set_that_it_activates(console: Console) -> None:
    store = console.service.store
    model = store.models.get("linear")
    register_calibration(store, model.reference, calibration(5), actor="ann")
    told = f"Calibration set {model.calibration_set_id}, on which it was fitted, becomes the active one of linear@1"
    first = store.heads.get("linear", 1).head.to_json()
    assert told in console.ask(f"{DEFAULT}/rollback").text
    assert told in console.ask(f"{DEFAULT}/publish", {"head": first}).text
    assert told not in console.ask(f"{PAGE}/publish", {"head": first}).text


@pytest.mark.parametrize("path", [PAGE, DEFAULT])
def test_a_form_of_a_lapsed_session_leads_back_to_its_page(console: Console, path: str) -> None:
    form = re.search(r'action="([^"]*/pin)"', console.get(path).text)
    assert form is not None
    sent = console.service.client.post(form[1], headers=OURS)
    assert sent.headers["Location"] == f"/console/login?next={quote(path)}&unsaved=true"


def test_a_reader_sees_history_and_no_form(console: Console) -> None:
    propose(console.service)
    reader = Console(console.service, scope="read")
    page = reader.get(PAGE).text
    assert "A cycle proposes another head" in page
    assert 'method="post" action="/console/heads' not in page
    for what in ("approve", "rollback", "pin", "publish"):
        assert reader.post(f"{PAGE}/{what}").status_code == 403
    assert reader.get("/console/heads/linear@1/nowhere").status_code == 404
    assert reader.get(f"{PAGE}/diff?version=0&other=1").status_code == 404
