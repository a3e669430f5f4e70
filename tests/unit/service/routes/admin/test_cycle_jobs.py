"""Requested cycles and replays: jobs that a monitor runs."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from lifelong_core.store import Cycle, new_prediction_id
from lifelong_core.store.jobs.transitions import MOST_QUEUED
from lifelong_monitor.jobs.kinds import cycle as cycle_job
from lifelong_monitor.jobs.kinds import replay as replay_job
from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of

JOBS = "/v1/admin/jobs"


@pytest.fixture
def recorded(service: Service) -> Cycle:
    now = datetime.now(UTC)
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=service.store.models.get("linear").id,
        environment="default",
        due_at=now,
        started_at=now,
        finished_at=now,
        outcome="keep",
        report={"reasons": []},
        window_samples=0,
        log_position=0,
        head_version=1,
        published_version=None,
    )
    return service.store.cycles.finish(cycle, candidate=None, expected_sequence=None)


def submitted(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"{JOBS}/{answer.json()['id']}"
    return answer.json()


def test_a_cycle_that_is_asked_for_is_a_job(service: Service) -> None:
    for reference in ("linear@1", "linear"):
        job = submitted(service.client.post(f"/v1/admin/populations/{reference}/default/cycle"))
        assert (job["kind"], job["state"], job["created_by"]) == ("cycle", "queued", "admin-token")
        assert job["payload"] == {"model": "linear@1", "environment": "default"}
        assert cycle_job.Payload.from_document(job["payload"]).environment == "default"
    entry = service.store.audit.list(1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("admin-token", "jobs.submit", job["id"])


def test_the_result_of_a_replay_is_in_its_job(service: Service, recorded: Cycle) -> None:
    job = submitted(service.client.post(f"/v1/admin/cycles/{recorded.id}/replay"))
    assert (job["kind"], job["state"], job["created_by"]) == ("replay", "queued", "admin-token")
    assert replay_job.Payload.from_document(job["payload"]).cycle == recorded.id
    claimed = service.store.jobs.claim("test", lease_seconds=60)
    assert claimed is not None
    result = {"cycle": str(recorded.id), "same": True, "differences": []}
    service.store.jobs.succeed(claimed, result)
    shown = service.client.get(f"{JOBS}/{job['id']}").json()
    assert (shown["state"], shown["result"]) == ("succeeded", result)


def test_what_does_not_exist_is_refused_at_once(service: Service) -> None:
    for path, status, field in (
        (f"/v1/admin/cycles/{UUID(int=7)}/replay", 404, "cycle"),
        ("/v1/admin/cycles/7/replay", 422, "cycle"),
        ("/v1/admin/populations/nobody@1/default/cycle", 404, "model"),
        ("/v1/admin/populations/linear@1/clinc/cycle", 404, "environment"),
        ("/v1/admin/populations/linear@1/No%20Name/cycle", 422, "environment"),
    ):
        answer = service.client.post(path)
        assert (answer.status_code, error_of(answer)["field"]) == (status, field), answer.text
        assert service.store.jobs.list() == []


def test_a_token_that_floods_the_queue_is_told_to_cancel_its_jobs(service: Service) -> None:
    cycle = "/v1/admin/populations/linear/default/cycle"
    assert len({submitted(service.client.post(cycle))["id"] for _ in range(30)}) == 1
    for number in range(MOST_QUEUED - 1):
        service.store.jobs.submit("replay", {"number": number}, actor="admin-token")
    submitted(service.client.post(cycle))
    service.store.environments.add("clinic", actor="tests")
    refused = service.client.post("/v1/admin/populations/linear/clinic/cycle")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert "POST /v1/admin/jobs/cancel" in error_of(refused)["hint"]
    assert service.client.post(f"{JOBS}/cancel?kind=replay").json() == {"cancelled": MOST_QUEUED - 1}
    submitted(service.client.post("/v1/admin/populations/linear/clinic/cycle"))
    assert service.client.post(f"{JOBS}/cancel").json() == {"cancelled": 2}
