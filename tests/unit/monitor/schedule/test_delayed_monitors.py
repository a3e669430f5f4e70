"""When a cycle is due, and a monitor that was held up between the start of a tick and its lease."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Cycle, Model, Store
from lifelong_core.store.engine.leases import Lease
from lifelong_monitor.cycle.cycle import HAS_RUN, run_cycle
from lifelong_monitor.cycle.due_times import CycleRequest, DueCycle, due_before, interval_of
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, HOUR, draw, predict

INTERVAL = timedelta(minutes=1)
NEWEST_DUE = due_before(datetime.now(UTC), INTERVAL)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"cycle_interval_seconds": INTERVAL.total_seconds()})


def recorded(store: Store, model: Model) -> list[Cycle]:
    """All cycles, in the order of their due times."""
    return sorted(store.cycles.list(model.id, "clinic"), key=lambda cycle: cycle.due_at)


@pytest.mark.parametrize(
    ("database_kind", "intervals"),
    [("sqlite", 1), ("sqlite", 5), ("postgresql", 2)],
    indirect=["database_kind"],
)
def test_a_tick_that_others_overtook_runs_no_cycle(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch, intervals: int
) -> None:
    """Two monitors; one is held up with its tick begun, for so many intervals, and has new predictions to judge."""
    held_up, other = (Ticker(store, settings, Exporter(cycle_interval_seconds=60)) for _ in range(2))
    first_due, begun = NEWEST_DUE - (intervals + 1) * INTERVAL, NEWEST_DUE - intervals * INTERVAL
    predict(store, model, "clinic", draw(BALANCED, 300, seed=2))
    for ticker in (held_up, other):
        ticker.tick(first_due, first_due)
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    acquire = store.leases.acquire

    def acquire_late(name: str, holder: str, seconds: float) -> Lease | None:
        monkeypatch.setattr(store.leases, "acquire", acquire)
        other.tick(NEWEST_DUE, NEWEST_DUE)
        predict(store, model, "clinic", draw(BALANCED, 300, seed=4))
        return acquire(name, holder, seconds)

    monkeypatch.setattr(store.leases, "acquire", acquire_late)
    held_up.tick(begun, begun)
    assert [cycle.due_at for cycle in recorded(store, model)] == [first_due, NEWEST_DUE]
    following = NEWEST_DUE + INTERVAL
    held_up.tick(following, following)
    cycles = recorded(store, model)
    assert [cycle.due_at for cycle in cycles] == [first_due, NEWEST_DUE, following]
    assert all(one.log_position < two.log_position for one, two in pairwise(cycles))


def test_an_early_cycle_that_others_overtook_does_not_run(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 300, seed=2))
    assert run_cycle(store, settings, model, "clinic", NEWEST_DUE).outcome == "keep"
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    early = DueCycle.early(settings, "clinic", NEWEST_DUE - 5 * INTERVAL)
    late = run_cycle(store, settings, model, "clinic", early.due_at, due_cycle=early)
    assert (late.outcome, late.reason) == ("skip", HAS_RUN)


def test_a_requested_cycle_is_due_when_it_holds_the_lease(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 300, seed=2))
    due_cycle = DueCycle.on_request(settings, CycleRequest(UUID(int=1), "ann"), NEWEST_DUE - 5 * INTERVAL)
    assert run_cycle(store, settings, model, "clinic", NEWEST_DUE).outcome == "keep"
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    result = run_cycle(store, settings, model, "clinic", due_cycle.due_at, due_cycle=due_cycle)
    assert result.outcome == "keep"
    by_due_time = recorded(store, model)
    assert by_due_time[-1].id == UUID(int=1)
    assert by_due_time[0].log_position < by_due_time[1].log_position


def early(settings: Settings, due_at: datetime) -> DueCycle:
    due_cycle = DueCycle.early(settings, "clinic", due_at)
    assert due_cycle is not None
    return due_cycle


@pytest.mark.parametrize("due_cycle_at", [DueCycle.by_the_clock, early])
def test_a_cycle_in_the_future_comes_from_a_wrong_clock_and_stops_none(
    settings: Settings, due_cycle_at: Callable[[Settings, datetime], DueCycle]
) -> None:
    now = NEWEST_DUE + timedelta(seconds=20)
    due_cycle = due_cycle_at(settings, NEWEST_DUE - 3 * INTERVAL)
    interval = interval_of(settings.cycle_interval_seconds)
    assert due_cycle.has_run(NEWEST_DUE, now)
    assert due_cycle.has_run(now + interval, now), "another monitor may be one tick ahead"
    assert not due_cycle.has_run(now + interval + timedelta(microseconds=1), now)
    assert not due_cycle.has_run(due_cycle.due_at - interval, now)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2025-03-01T10:00:00", "2025-03-01T10:00:00"),
        ("2025-03-01T10:59:59.999999", "2025-03-01T10:00:00"),
        ("2025-03-01T00:00:00.000001", "2025-03-01T00:00:00"),
    ],
)
def test_what_is_due_is_the_last_full_hour(now: str, due: str) -> None:
    assert due_before(at(now), HOUR) == at(due)


def test_two_monitors_that_start_at_different_times_agree_on_what_is_due() -> None:
    interval = interval_of(7.3)
    base = due_before(at("2025-03-01T10:00:00"), interval)
    assert {due_before(base + timedelta(seconds=offset), interval) for offset in (0, 0.1, 3, 7.299)} == {base}
    assert due_before(base + timedelta(seconds=7.3), interval) == base + interval


def test_a_time_zone_changes_nothing() -> None:
    local = datetime(2025, 3, 1, 11, 30, tzinfo=UTC).astimezone(tz=None)
    assert due_before(local, HOUR) == at("2025-03-01T11:00:00")


@pytest.mark.parametrize("seconds", [1e-9, 0.5, 3600, 86400 * 3])
def test_every_legal_interval_is_positive(seconds: float) -> None:
    assert interval_of(seconds) > timedelta(0)
