"""Proposed retrainings over HTTP."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed, RetrainingReason
from lifelong_core.store import Job, RetrainingProposal, new_prediction_id
from tests.unit.service.conftest import Service

PROPOSALS = "/v1/admin/proposals"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, registry_poll_seconds=0.02, image_roots=(Path("/data/images"),))


def retrainings(service: Service) -> list[Job]:
    return [job for job in service.store.jobs.list("retrain") if job.state != "cancelled"]


def propose(
    service: Service, environment: str = "site-a", reason: RetrainingReason = "repeated_refusals"
) -> RetrainingProposal:
    """What a monitor proposes after its cycles."""
    missed = MissedThreshold("assumption_p_value", None, 0.001, None, None, 0.01)
    need = RetrainingNeed(reason, (missed,), NOON, ("a", "b", "c"))
    model = service.store.models.get("linear")
    proposal = service.store.proposals.propose(model.id, environment, need)
    assert proposal is not None
    return proposal


def refused(service: Service, path: str, body: dict[str, Any], status: int) -> dict[str, Any]:
    answer = service.client.post(f"{PROPOSALS}/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def test_accept_with_the_job_of_the_retraining(service: Service) -> None:
    proposal = propose(service)
    job = service.store.jobs.submit("retrain", {"task": "skin"}, actor="ann")
    accepted = service.client.post(f"{PROPOSALS}/{proposal.id}/accept", json={"job": str(job.id)}).json()
    assert (accepted["state"], accepted["job"], accepted["decided_by"]) == (
        "accepted",
        str(job.id),
        "admin-token",
    )
    error = refused(service, f"{proposal.id}/dismiss", {"reason": "too late"}, 409)
    assert "accepted by admin-token" in error["message"]
    entry = service.client.get("/v1/admin/audit?action=proposals.accept").json()["audit"][0]
    assert (entry["subject"], entry["details"]["job"]) == ("linear@1/site-a", str(job.id))


@pytest.mark.parametrize(("kind", "task"), [("retrain", "other"), ("validate", "skin")])
def test_another_job_is_refused(service: Service, kind: str, task: str) -> None:
    proposal = propose(service)
    job = service.store.jobs.submit(kind, {"task": task}, actor="ann")
    error = refused(service, f"{proposal.id}/accept", {"job": str(job.id)}, 422)
    assert (error["field"], "no retraining of skin" in error["message"]) == ("job", True)
    assert refused(service, f"{proposal.id}/accept", {"job": str(new_prediction_id())}, 404)
    assert service.store.proposals.get(proposal.id).state == "open"


def test_accepting_starts_the_retraining(service: Service) -> None:
    proposal = propose(service)
    recipe = {"architecture": "resnet10t", "initial_weights": "random", "image_size": 32}
    body = {"retraining": {"path": "/data/images/skin", "recipe": recipe}}
    accepted = service.client.post(f"{PROPOSALS}/{proposal.id}/accept", json=body).json()
    (job,) = retrainings(service)
    assert (accepted["state"], accepted["job"]) == ("accepted", str(job.id))
    assert (job.payload["task"], job.payload["path"]) == ("skin", "/data/images/skin")
    assert job.payload["recipe"]["architecture"] == "resnet10t"
    assert refused(service, f"{proposal.id}/accept", body, 409)
    assert len(retrainings(service)) == 1


def test_a_wrong_retraining_starts_nothing(service: Service) -> None:
    proposal = propose(service)
    for body, field in (
        ({"retraining": {"path": "/etc"}}, "path"),
        ({"retraining": {"path": "/data/images/x", "suggestion": "what"}}, "suggestion"),
        ({"retraining": {"path": "/data/images/x"}, "job": str(new_prediction_id())}, "job"),
        ({"retraining": {}}, "retraining.path"),
        ({"job": "x"}, "job"),
    ):
        assert refused(service, f"{proposal.id}/accept", body, 422)["field"] == field
        assert retrainings(service) == []
        assert service.store.proposals.get(proposal.id).state == "open"


def test_dismiss(service: Service) -> None:
    proposal = propose(service)
    assert refused(service, f"{proposal.id}/dismiss", {"reason": ""}, 422)["field"] == "reason"
    assert refused(service, f"{proposal.id}/dismiss", {}, 422)["field"] == "reason"
    closed = service.client.post(
        f"{PROPOSALS}/{proposal.id}/dismiss", json={"reason": "broken camera"}
    ).json()
    assert (closed["state"], closed["decision_reason"]) == ("dismissed", "broken camera")
    assert refused(service, f"{proposal.id}/accept", {}, 409)
    assert refused(service, f"{new_prediction_id()}/dismiss", {"reason": "x"}, 404)
