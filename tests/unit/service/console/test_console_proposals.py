"""Proposed retrainings in the console."""

from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import new_prediction_id
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.service.routes.admin.test_proposals import propose


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, registry_poll_seconds=0.02, image_roots=(Path("/data/images"),))


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def test_a_proposal_is_shown_with_what_to_look_at_first(console: Console) -> None:
    assert "No retraining was proposed." in console.get("/console/proposals").text
    proposal = propose(console.service)
    listed = console.get("/console/proposals").text
    assert f'href="/console/proposals/{proposal.id}"' in listed
    shown = console.get(f"/console/proposals/{proposal.id}").text
    for text in (
        "More than the prevalence has changed",
        "linear@1 in site-a",
        "a broken or new scanner",
        "assumption_p_value",
        "lifelong retrain skin --data FOLDER",
        ">Accept<",
        ">Dismiss<",
    ):
        assert text in shown
    assert console.get(f"/console/proposals/{new_prediction_id()}").status_code == 404


@pytest.mark.parametrize(
    ("what", "form", "said"),
    [
        ("accept", {}, "Accepted by"),
        ("dismiss", {"reason": "the camera <b>was</b> broken"}, "the camera &lt;b&gt;was&lt;/b&gt; broken"),
    ],
)
def test_the_two_buttons_close_a_proposal(
    console: Console, what: str, form: dict[str, str], said: str
) -> None:
    path = f"/console/proposals/{propose(console.service).id}"
    sent = console.post(f"{path}/{what}", form)
    assert (sent.status_code, sent.headers["Location"]) == (303, path)
    shown = console.get(path).text
    assert said in shown
    assert ">Accept<" not in shown
    again = console.post(f"{path}/{what}", form)
    assert (again.status_code, 'role="alert"' in again.text) == (409, True)


def test_a_job_can_be_named(console: Console) -> None:
    path = f"/console/proposals/{propose(console.service).id}"
    job = console.service.store.jobs.submit("retrain", {"task": "skin"}, actor="ann")
    assert console.post(f"{path}/accept", {"job": f" {job.id} "}).status_code == 303
    assert str(job.id) in console.get(path).text


def test_accepting_with_images_starts_the_retraining(console: Console) -> None:
    path = f"/console/proposals/{propose(console.service).id}"
    assert console.post(f"{path}/accept", {"path": "/data/images/skin"}).status_code == 303
    (job,) = console.service.store.jobs.list("retrain")
    assert (job.payload["task"], job.payload["path"]) == ("skin", "/data/images/skin")
    assert str(job.id) in console.get(path).text


def test_a_wrong_form_is_shown_again(console: Console) -> None:
    proposal = propose(console.service)
    for what, form in (
        ("accept", {"path": "/etc"}),
        ("accept", {"path": "/data/images/x", "suggestion": "<job>"}),
        ("accept", {"path": "/data/images/x", "job": str(new_prediction_id())}),
        ("accept", {"path": "x" * 5000}),
        ("accept", {"job": "<job>"}),
        ("accept", {"job": str(new_prediction_id())}),
        ("dismiss", {"reason": ""}),
        ("dismiss", {"reason": "x" * 201}),
    ):
        answer = console.post(f"/console/proposals/{proposal.id}/{what}", form)
        assert answer.status_code in (404, 422)
        assert 'role="alert"' in answer.text
        assert "<job>" not in answer.text
        assert console.service.store.proposals.get(proposal.id).state == "open"
        assert console.service.store.jobs.list("retrain") == []


def test_a_reader_sees_no_buttons_and_cannot_decide(console: Console) -> None:
    path = f"/console/proposals/{propose(console.service).id}"
    reader = Console(console.service, scope="read")
    assert ">Accept<" not in reader.get(path).text
    assert reader.post(f"{path}/accept").status_code == 403
