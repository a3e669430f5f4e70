"""Events become notifications in their own transaction: once for each swap, at the beginning of a run of refusals."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.notification_fields import NotificationSettings
from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed
from lifelong_core.entities.notifications import Notification
from lifelong_core.store import Cycle, HeadRecord, Model, Store, new_prediction_id
from lifelong_core.store.notifications import outbox
from lifelong_core.values.errors import ConflictError
from lifelong_monitor.notifications.words import message_of
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model, add_serving_model, cycle, head

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def words_exist_for_all_of_them(store: Store) -> Iterator[None]:
    """The words of a kind use the details that its event gives."""
    yield
    settings = NotificationSettings(console_url="https://h.example/console/")
    for notification in store.notifications.list():
        message = message_of(notification, settings)
        runbook = message_of(notification, NotificationSettings()).runbook
        assert runbook is None or (Path(__file__).parents[4] / runbook).is_file()
        assert (runbook is None) == (notification.kind == "test")
        assert message.console is not None
        assert message.console.startswith("https://h.example/console")
        for text in (message.title, message.text, message.console):
            assert "None" not in text
            assert "{" not in text


@pytest.fixture
def serving(store: Store) -> tuple[Model, HeadRecord]:
    return add_serving_model(store)


def kinds(store: Store) -> list[str]:
    return [notification.kind for notification in reversed(store.notifications.list())]


def newest(store: Store) -> Notification:
    return store.notifications.list(limit=1)[0]


def finish(
    store: Store,
    model: Model,
    hour: int,
    outcome: str,
    *,
    mode: Any = "auto",
    requested_by: str | None = None,
    serving: int = 1,
    **report: Any,
) -> Cycle:
    """Record a cycle of this hour."""
    judged = cycle(model, due_at=START + timedelta(hours=hour), outcome=outcome, head_version=serving)
    reasons = {"reasons": [{"code": "shift", "text": "The prevalence has shifted."}]}
    judged = replace(judged, log_position=hour, report={**judged.report, **reasons, **report})
    candidate = head(0.1 * hour) if outcome == "swap" else None
    return store.cycles.finish(
        judged, candidate=candidate, expected_sequence=None, mode=mode, requested_by=requested_by
    )


def test_a_swap_is_a_notification_and_a_swap_that_fails_is_none(
    store: Store, serving: tuple[Model, HeadRecord]
) -> None:
    model, _ = serving
    swapped = finish(store, model, 1, "swap")
    assert kinds(store) == ["swap"]
    assert newest(store).subject == "dermatology@1/site-a"
    assert newest(store).details == {
        "model": "dermatology@1",
        "environment": "site-a",
        "cycle": str(swapped.id),
        "head_version": 1,
        "reasons": ["The prevalence has shifted."],
        "published_version": swapped.published_version,
        "actor": "monitor",
    }
    with pytest.raises(ConflictError):  # the judged head is not in force any more
        finish(store, model, 2, "swap")
    assert kinds(store) == ["swap"]


@sqlite_only
def test_a_swap_of_a_requested_cycle_names_the_person(
    store: Store, serving: tuple[Model, HeadRecord]
) -> None:
    finish(store, serving[0], 1, "swap", requested_by="ann")
    assert newest(store).details["actor"] == "ann"


@sqlite_only
def test_the_first_of_several_refusals_is_one(store: Store, serving: tuple[Model, HeadRecord]) -> None:
    for hour, outcome in enumerate(["refuse", "refuse", "keep", "refuse", "refuse"]):
        finish(store, serving[0], hour, outcome)
    assert kinds(store) == ["refuse", "refuse"]


@sqlite_only
def test_the_first_of_several_proposals_is_one_and_its_approval_is_a_swap(
    store: Store, serving: tuple[Model, HeadRecord]
) -> None:
    model, _ = serving
    first = finish(store, model, 1, "swap", mode="propose")
    second = finish(store, model, 2, "swap", mode="propose")
    finish_shadow = replace(second, id=new_prediction_id(), environment="site-b", proposal=None)
    store.cycles.finish(finish_shadow, candidate=head(0.3), expected_sequence=None, mode="shadow")
    assert kinds(store) == ["head_proposal"]
    assert newest(store).details["cycle"] == str(first.id)
    store.cycles.reject(second.id, reason="too early", actor="ann")
    third = finish(store, model, 3, "swap", mode="propose")
    store.cycles.approve(third.id, actor="ann")
    assert kinds(store) == ["head_proposal", "head_proposal", "swap"]
    assert newest(store).details["actor"] == "ann"
    finish(store, model, 4, "swap", mode="propose", serving=2)
    assert kinds(store)[-1] == "head_proposal"


@sqlite_only
def test_a_target_is_missed_when_two_cycles_in_a_row_expect_it(
    store: Store, serving: tuple[Model, HeadRecord]
) -> None:
    criterion = {"metric": "TPR", "value": 0.7, "low": 0.6, "high": 0.8, "target": 0.9}
    for hour, missed in enumerate([1, 2, 3]):
        finish(store, serving[0], hour, "keep", criterion=criterion, inputs={"missed_cycles": missed})
    assert kinds(store) == ["target_missed"]
    assert newest(store).details["target"] == 0.9


@sqlite_only
def test_failed_validations_and_jobs_and_proposed_retrainings(store: Store) -> None:
    model = add_model(store)
    values: dict[str, Any] = {
        "result": b"{}", "report": None, "labelled_set": b"1", "head": "a", "recommendation_version": 2, "samples": 9
    }  # fmt: skip
    for accepted in (True, None, False):
        store.evaluations.put(model.reference, **values, accepted=accepted, actor="ann")
    assert kinds(store) == ["acceptance_failed"]
    for ends in (True, False):
        store.jobs.submit("compare", {}, actor="ann")
        job = store.jobs.claim("monitor", kinds=("compare",), lease_seconds=60)
        assert job is not None
        if ends:
            store.jobs.succeed(job, {})
        else:
            store.jobs.fail(job, {"message": "no images.", "field": None, "hint": "Name a folder."})
    assert kinds(store) == ["acceptance_failed", "job_failed"]
    assert newest(store).details["message"] == "no images."
    missed = MissedThreshold("AC", None, 0.6, 0.5, 0.7, 0.8)
    need = RetrainingNeed("estimated_performance", (missed,), START, ("a", "b"))
    for _ in range(2):
        store.proposals.propose(model.id, "clinic", need)
    assert kinds(store)[2:] == ["retraining_proposal"]


def test_old_notifications_are_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.notifications.add_test(actor="ann")
    store.notifications.delete_expired()
    assert kinds(store) == ["test"]
    monkeypatch.setattr(outbox, "KEPT", timedelta(0))
    store.notifications.delete_expired()
    assert kinds(store) == []
