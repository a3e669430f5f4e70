"""`lifelong proposals` on an installation without a running process."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from lifelong.commands.common import open_store
from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed
from lifelong_core.store import Job
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def proposal(installed: Callable[..., str]) -> str:
    """Id of an open proposal."""
    del installed
    with open_store() as store:
        store.tasks.add("skin", ("benign", "malignant"), [[0, 1], [1, 0]], actor="test")
        model = store.models.add("skin", "skin", kind="external", actor="test")
        missed = MissedThreshold("TPR", 1, 0.712, 0.65, 0.77, 0.8)
        need = RetrainingNeed("realised_performance", (missed,), NOON, ("c1", "c2", "c3"))
        made = store.proposals.propose(model.id, "site-a", need)
        return str(made.id)


def submit(task: str) -> Job:
    with open_store() as store:
        return store.jobs.submit("retrain", {"task": task}, actor="test")


def test_list(installed: Callable[..., str], proposal: str) -> None:
    listed = installed("proposals", "list", "--state", "open", "--task", "skin")
    assert proposal in listed
    assert "realised_performance" in listed
    (document,) = json.loads(installed("proposals", "list", "--json"))
    assert document["details"]["cycles"] == ["c1", "c2", "c3"]
    assert "No retraining" in installed("proposals", "list", "--reason", "repeated_refusals")
    assert installed("proposals", "list", "--environment", "site-b", "--json") == "[]\n"


def test_show_says_what_was_seen_and_what_to_look_at(installed: Callable[..., str], proposal: str) -> None:
    shown = installed("proposals", "show", proposal[:8])
    for text in (
        "TPR of class 1 is 0.712 (0.65 to 0.77), the threshold is 0.8",
        "look first",
        "sample of the labels",
        "lifelong retrain skin --data FOLDER",
    ):
        assert text in shown
    assert json.loads(installed("proposals", "show", proposal, "--json"))["state"] == "open"
    with pytest.raises(NotFoundError):
        installed("proposals", "show", "ffff")


def test_accept(installed: Callable[..., str], proposal: str) -> None:
    with pytest.raises(InvalidInputError, match="no retraining of skin"):
        installed("proposals", "accept", proposal, "--job", str(submit("other").id))
    job = str(submit("skin").id)
    accepted = installed("proposals", "accept", proposal[:8], "--job", job)
    assert job in accepted
    assert "lifelong retrain" not in accepted
    with pytest.raises(ConflictError, match="accepted by"):
        installed("proposals", "accept", proposal)


def test_accept_without_a_job_prints_the_command(installed: Callable[..., str], proposal: str) -> None:
    assert "lifelong retrain skin --data FOLDER" in installed("proposals", "accept", proposal)


def test_dismiss(installed: Callable[..., str], proposal: str) -> None:
    installed("proposals", "dismiss", proposal, status=2)
    dismissed = json.loads(installed("proposals", "dismiss", proposal, "--reason", "hard cases", "--json"))
    assert (dismissed["state"], dismissed["decision_reason"]) == ("dismissed", "hard cases")
