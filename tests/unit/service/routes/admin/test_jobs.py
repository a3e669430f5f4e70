"""Jobs are followed by their progress, log and events, and cancelled."""

import json
from typing import Any
from uuid import uuid4

import pytest

from lifelong_core.store import Job
from lifelong_service.clients.limits import MOST_STREAMS, MOST_STREAMS_OF_TOKEN
from lifelong_service.routes.admin import jobs as job_events
from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of

JOBS = "/v1/admin/jobs"
PROGRESS = {"phase": "training", "fraction": 0.5, "epoch": 2}


@pytest.fixture
def running(service: Service) -> Job:
    """A training with progress and two lines."""
    service.store.jobs.submit("retrain", {"task": "skin"}, actor="ann")
    job = service.store.jobs.claim("one", lease_seconds=600)
    assert job is not None
    service.store.jobs.report(job, PROGRESS)
    service.store.jobs.append_log(job, ["begun", "epoch 1"])
    return job


def events_of(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Identifier, name and data of each event; the first block holds the time to reconnect, comments are left out."""
    blocks = [block.split("\n") for block in text.split("\n\n")[:-1]]
    assert blocks[0] == ["retry: 1000"]
    fields = [dict(line.split(": ", 1) for line in block) for block in blocks[1:] if block != [": "]]
    return [(block["id"], block["event"], json.loads(block["data"])) for block in fields]


def follow(service: Service, job: Job, last: str | None = None) -> str:
    headers = {} if last is None else {"Last-Event-ID": last}
    answer = service.client.get(f"{JOBS}/{job.id}/events", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


def test_a_job_shows_its_progress_and_its_log(service: Service, running: Job) -> None:
    shown = service.client.get(f"{JOBS}/{running.id}").json()
    assert (shown["progress"], shown["cancelled_at"], shown["cancelled_by"]) == (PROGRESS, None, None)
    path = f"{JOBS}/{running.id}/log"
    assert [line["text"] for line in service.client.get(path).json()["lines"]] == ["begun", "epoch 1"]
    assert [line["number"] for line in service.client.get(f"{path}?after=1").json()["lines"]] == [2]
    assert [line["number"] for line in service.client.get(f"{path}?limit=1").json()["lines"]] == [2]
    assert service.client.get(f"{path}?after=2").json() == {"lines": []}
    assert service.client.get(f"{JOBS}/{uuid4()}/log").status_code == 404


def test_a_cancelled_job_ends_and_the_audit_log_says_by_whom(service: Service, running: Job) -> None:
    waiting = service.store.jobs.submit("validate", {}, actor="ann")
    asked = service.client.post(f"{JOBS}/{running.id}/cancel")
    assert (asked.status_code, asked.json()["state"], asked.json()["cancelled_by"]) == (
        200,
        "running",
        "admin-token",
    )
    assert service.client.post(f"{JOBS}/{waiting.id}/cancel").json()["state"] == "cancelled"
    entry = service.store.audit.list(1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("admin-token", "jobs.cancel", str(waiting.id))
    listed = service.client.get(f"{JOBS}?state=cancelled").json()["jobs"]
    assert [job["id"] for job in listed] == [str(waiting.id)]
    again = service.client.post(f"{JOBS}/{waiting.id}/cancel")
    assert (again.status_code, error_of(again)["field"]) == (409, "job")
    result = service.client.get(f"{JOBS}/{waiting.id}/result")
    assert result.status_code == 409
    assert "cancelled by admin-token" in error_of(result)["message"]


def test_the_events_of_a_job_end_with_it(service: Service, running: Job) -> None:
    service.store.jobs.succeed(running, {"model": "net@2"})
    events = events_of(follow(service, running))
    assert [(number, name) for number, name, _ in events] == [
        ("1", "log"),
        ("2", "log"),
        ("2", "progress"),
        ("end", "end"),
    ]
    assert (events[0][2]["text"], events[2][2]["progress"]) == ("begun", PROGRESS)
    assert events[3][2] == service.client.get(f"{JOBS}/{running.id}").json()
    assert [number for number, _, _ in events_of(follow(service, running, last="1"))] == ["2", "2", "end"]
    done = service.client.get(f"{JOBS}/{running.id}/events", headers={"Last-Event-ID": "end"})
    assert (done.status_code, done.content) == (204, b"")


def test_a_stream_ends_before_the_time_limit_and_is_resumed(
    serve: Any, registered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(job_events, "_HEARTBEAT_SECONDS", 0.0)
    service: Service = serve(request_timeout_seconds=1.2)
    service.store.jobs.submit("retrain", {}, actor="ann")
    job = service.store.jobs.claim("one", lease_seconds=600)
    assert job is not None
    service.store.jobs.append_log(job, ["begun"])
    first = follow(service, job)
    assert ": \n\n" in first
    assert [name for _, name, _ in events_of(first)] == ["log", "progress"]
    service.store.jobs.append_log(job, [f"line {number}" for number in range(300)])
    later = events_of(follow(service, job, last="1"))
    assert [int(number) for number, name, _ in later if name == "log"] == list(range(2, 302))
    service.client.app.state.worker.is_draining = True  # type: ignore[attr-defined]
    drained = follow(service, job, last="301")
    assert [name for _, name, _ in events_of(drained)] == ["progress"]
    assert ": \n\n" not in drained, "it goes on after its first look"


@pytest.mark.parametrize(
    ("token", "most"), [("admin-token", MOST_STREAMS_OF_TOKEN), ("token {}", MOST_STREAMS)]
)
def test_a_worker_keeps_a_bounded_number_of_streams(
    service: Service, running: Job, token: str, most: int
) -> None:
    """In total, and of the token that asks."""
    service.store.jobs.succeed(running, {})
    streams = service.worker.streams
    for number in range(most):
        follow(service, running)
        streams.open(token.format(number))
    refused = service.client.get(f"{JOBS}/{running.id}/events")
    assert refused.status_code == 503
    assert "open streams" in error_of(refused)["message"]
    streams.close(token.format(0))
    follow(service, running)


def test_an_identifier_that_no_event_has_is_refused(service: Service, running: Job) -> None:
    for last in ("x", "-1", "99999999999", "1.5"):
        answer = service.client.get(f"{JOBS}/{running.id}/events", headers={"Last-Event-ID": last})
        assert (answer.status_code, error_of(answer)["field"]) == (422, "Last-Event-ID")
        assert service.client.get(f"{JOBS}/{uuid4()}/events").status_code == 404
