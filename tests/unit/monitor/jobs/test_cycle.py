"""The kind `cycle`: a requested cycle differs from others in its due time and its actor only."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.store import Cycle, Model, Store
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_monitor.cycle.cycle import ELSEWHERE, run_cycle
from lifelong_monitor.cycle.due_times import CycleRequest, DueCycle, due_before, interval_of
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import report_of
from lifelong_monitor.jobs.kinds.cycle import run_requested_cycle
from tests.unit.monitor.population import (
    BALANCED,
    MINUTE,
    SHIFTED,
    add_model,
    draw,
    on_both_databases,
    predict,
)

PLACE = {"model": "lesions@1", "environment": "clinic"}


def requested(store: Store, settings: Settings, **payload: Any) -> tuple[UUID, dict[str, Any]]:
    job = store.jobs.submit("cycle", PLACE | payload, actor="ann")
    return job.id, run_requested_cycle(store, settings, job)


def newest(store: Store, model: Model) -> Cycle:
    cycle = store.cycles.last(model.id, "clinic")
    assert cycle is not None
    return cycle


def test_it_swaps_the_head_and_names_who_asked(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    before = datetime.now(UTC)
    job_id, result = requested(store, settings)
    cycle = newest(store, model)
    assert (cycle.id, cycle.outcome, cycle.published_version) == (job_id, "swap", 2)
    assert result == {
        "cycle": str(job_id),
        "outcome": "swap",
        "reason": " ".join(reason.text for reason in report_of(cycle).reasons),
    }
    assert before - MINUTE < cycle.due_at < datetime.now(UTC) + MINUTE
    subject = f"{model.reference}/clinic"
    entries = [(entry.actor, entry.action, entry.subject) for entry in store.audit.list(limit=2)]
    assert entries == [("ann", "cycles.run", subject), ("ann", "heads.swap", subject)]
    assert store.audit.list(limit=1)[0].details == {"cycle": str(job_id), "outcome": "swap"}
    assert replay(store, cycle.id) == report_of(cycle)


def test_it_judges_again_what_was_judged_and_can_be_replayed(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    first = run_cycle(store, settings, model, "clinic", due_before(datetime.now(UTC), MINUTE)).last
    assert first is not None
    job_id, result = requested(store, settings)
    cycle = newest(store, model)
    assert (cycle.id, result["outcome"]) == (job_id, "keep")
    assert report_of(cycle).window_digest == report_of(first).window_digest
    # No sample is counted twice.
    evidences = [report_of(one).evidence for one in (first, cycle)]
    assert [None if one is None else one.samples for one in evidences] == [600, 600]
    assert replay(store, cycle.id) == report_of(cycle)


@on_both_databases
def test_a_job_that_is_begun_again_runs_no_second_cycle(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    job = store.jobs.submit("cycle", PLACE, actor="ann")
    first = run_requested_cycle(store, settings, job)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    assert run_requested_cycle(store, settings, job) == first
    assert len(store.cycles.list()) == 1
    # Not even where both began before either had recorded it.
    due_cycle = DueCycle.on_request(settings, CycleRequest(job.id, "ann"), datetime.now(UTC))
    again = run_cycle(store, settings, model, "clinic", due_cycle.due_at, due_cycle=due_cycle)
    assert (again.outcome, "recorded already" in again.reason) == ("skip", True)
    assert len(store.cycles.list()) == 1


def test_it_obeys_mode_and_pin(store: Store, settings: Settings, model: Model) -> None:
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(SHIFTED, 600, seed=3))
    shadow = settings.model_copy(update={"policy": PolicySettings(mode="shadow")})
    assert requested(store, shadow, environment="other")[1]["outcome"] == "would swap"
    store.heads.pin(model.reference, environment="clinic", reason="under audit", actor="ann")
    _, result = requested(store, settings)
    assert result["outcome"] == "keep"
    assert "pinned" in result["reason"]
    assert len(store.heads.list(model.reference)) == 1


def test_it_stands_for_the_scheduled_cycle_of_its_interval_and_for_no_other(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    requested(store, settings)
    due_at = due_before(newest(store, model).due_at, interval_of(settings.cycle_interval_seconds))
    predict(store, model, "clinic", draw(BALANCED, 300, seed=4))
    assert run_cycle(store, settings, model, "clinic", due_at).outcome == "skip"
    following = due_at + interval_of(settings.cycle_interval_seconds)
    assert run_cycle(store, settings, model, "clinic", following).outcome == "keep"


@pytest.mark.parametrize("seconds", [0.2, 1.0, 60.0, 3600.0])
def test_its_due_time_is_none_of_the_clock(settings: Settings, seconds: float) -> None:
    changed = settings.model_copy(update={"cycle_interval_seconds": seconds})
    for now in (EPOCH + timedelta(days=20_000), EPOCH + timedelta(days=20_000, seconds=7)):
        due_cycle = DueCycle.on_request(changed, CycleRequest(UUID(int=1), "ann"), now)
        assert due_before(due_cycle.due_at, interval_of(seconds)) != due_cycle.due_at
        assert due_cycle.due_at.microsecond != 0
        assert timedelta() < due_cycle.due_at - now < timedelta(milliseconds=1)
        # A cycle of a monitor whose clock is ahead does not stand for it.
        assert not due_cycle.has_run(due_cycle.due_at + timedelta(seconds=0.1), now)


def test_it_waits_for_the_lease_of_its_population(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    name = f"cycle/{model.id}/clinic"
    lease = store.leases.acquire(name, "another", 60)
    assert lease is not None
    short = settings.model_copy(update={"lease_seconds": 1.0})
    with pytest.raises(ConflictError, match=ELSEWHERE):
        requested(store, short)
    assert store.cycles.list() == []
    release = threading.Timer(0.7, store.leases.release, [lease])
    release.start()
    assert requested(store, settings)[1]["outcome"] == "keep"
    release.join()


def test_where_nothing_can_be_judged_the_result_says_why(
    store: Store, settings: Settings, model: Model
) -> None:
    store.environments.ensure("clinic", limit=10)
    assert requested(store, settings)[1] == {
        "cycle": None,
        "outcome": "skip",
        "reason": "no prediction within the window's age",
    }
    bare = add_model(store, "bare", calibrated=False)
    _, result = requested(store, settings, model=bare.reference)
    assert "no calibration set" in result["reason"]


def test_what_does_not_exist_is_named(store: Store, settings: Settings, model: Model) -> None:
    store.environments.ensure("clinic", limit=10)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"model": "nobody@1"}, NotFoundError, "model"),
        ({"environment": "clinc"}, NotFoundError, "environment"),
        ({"environment": "No Name"}, InvalidInputError, "environment"),
        ({"unknown": 1}, InvalidInputError, "unknown"),
    ]
    for changes, error, field in wrong:
        with pytest.raises(error) as caught:
            requested(store, settings, **changes)
        assert getattr(caught.value, "field", None) == field
