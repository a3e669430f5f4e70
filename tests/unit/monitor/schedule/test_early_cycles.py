"""Early cycles, because many predictions are new."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Model, Store
from lifelong_monitor.cycle.cycle import HAS_RUN, CycleResult, run_cycle
from lifelong_monitor.cycle.due_times import DueCycle, due_before
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.daemons import running, until
from tests.unit.monitor.population import BALANCED, HOUR, MINUTE, SHIFTED, draw, on_both_databases, predict

DUE = due_before(datetime.now(UTC), HOUR)
NEEDED = 100
"""Half of the policy's 200."""


def log(
    store: Store,
    model: Model,
    environment: str,
    samples: int,
    prevalence: tuple[float, ...] = BALANCED,
    *,
    seed: int,
) -> None:
    """Predictions, exactly so many."""
    drawn = draw(prevalence, samples + 3, seed=seed)
    predict(store, model, environment, LabeledLogits(drawn.logits[:samples], drawn.labels[:samples]))


def due_times(store: Store, model: Model, environment: str = "clinic") -> list[timedelta]:
    """Since DUE, of all cycles, oldest first."""
    return [cycle.due_at - DUE for cycle in reversed(store.cycles.list(model.id, environment))]


def test_enough_new_predictions_bring_a_cycle_before_the_clock_does(
    store: Store, model: Model, ticker: Ticker
) -> None:
    log(store, model, "clinic", 600, seed=2)
    log(store, model, "other", 600, seed=3)
    ticker.tick(DUE + MINUTE, DUE)
    log(store, model, "clinic", NEEDED - 1, SHIFTED, seed=4)
    ticker.tick(DUE + 2 * MINUTE, DUE)
    assert due_times(store, model) == [timedelta(0)]
    log(store, model, "clinic", 1, SHIFTED, seed=5)
    at = timedelta(minutes=3, seconds=7.3)
    ticker.tick(DUE + at, DUE)
    assert due_times(store, model) == [timedelta(0), timedelta(minutes=3, seconds=7)]
    last = store.cycles.last(model.id, "clinic")
    assert last is not None
    assert inputs_of(last).new_samples == NEEDED
    assert due_times(store, model, "other") == [timedelta(0)]
    ticker.tick(DUE + HOUR, DUE + HOUR)
    assert len(due_times(store, model)) == 2, "nothing is new"
    log(store, model, "clinic", 1, SHIFTED, seed=6)
    ticker.tick(DUE + 2 * HOUR, DUE + 2 * HOUR)
    assert due_times(store, model)[2:] == [2 * HOUR], "the clock goes on"


def test_a_shift_is_followed_without_waiting_for_the_clock(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    log(store, model, "clinic", 100, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    log(store, model, "clinic", 500, SHIFTED, seed=3)
    ticker.tick(DUE + 5 * MINUTE, DUE)
    labels = {"model": model.reference, "environment": "clinic", "role": "promoted"}
    assert exporter.registry.get_sample_value("lifelong_head_version", labels) == 2
    last = store.cycles.last(model.id, "clinic")
    assert (last.outcome, last.published_version) == ("swap", 2)
    assert replay(store, last.id) == report_of(last)


@pytest.mark.parametrize(("setting", "needed"), [(7, 7), (None, 150), (0, None)])
def test_how_many_are_enough_is_a_setting_or_half_of_what_the_policy_needs(
    settings: Settings, setting: int | None, needed: int | None
) -> None:
    policies = {"clinic": PolicySettings(minimum_samples=300)}
    changed = settings.model_copy(update={"cycle_new_samples": setting, "environment_policies": policies})
    assert changed.new_samples_for("clinic") == needed
    early = DueCycle.early(changed, "clinic", DUE)
    assert (None if early is None else early.new_samples) == needed


def test_without_early_cycles_only_the_clock_counts(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    ticker = Ticker(store, settings.model_copy(update={"cycle_new_samples": 0}), exporter)
    log(store, model, "clinic", 600, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    log(store, model, "clinic", 600, SHIFTED, seed=3)
    ticker.tick(DUE + 9 * MINUTE, DUE)
    assert due_times(store, model) == [timedelta(0)]


def test_two_cycles_keep_their_distance(store: Store, model: Model, ticker: Ticker) -> None:
    log(store, model, "clinic", 600, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    for seconds in (100.0, 140.0, 159.5, 160.5, 230.0):
        log(store, model, "clinic", NEEDED, seed=3)
        ticker.tick(DUE + timedelta(seconds=seconds), DUE)
    assert due_times(store, model)[1:] == [timedelta(seconds=value) for value in (100, 160, 230)]


@on_both_databases
def test_of_several_monitors_one_runs_an_early_cycle_and_all_count_from_it(
    store: Store, settings: Settings, model: Model
) -> None:
    tickers = [Ticker(store, settings, Exporter(cycle_interval_seconds=3600)) for _ in range(3)]
    log(store, model, "clinic", 600, seed=2)

    def tick_all(at: timedelta) -> None:
        threads = [threading.Thread(target=one.tick, args=(DUE + at, DUE)) for one in tickers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    tick_all(MINUTE)
    assert len(due_times(store, model)) == 1
    log(store, model, "clinic", NEEDED, seed=3)
    tick_all(2 * MINUTE)
    tick_all(4 * MINUTE)
    assert due_times(store, model) == [timedelta(0), 2 * MINUTE]
    log(store, model, "clinic", NEEDED // 2, seed=4)
    tick_all(6 * MINUTE)
    log(store, model, "clinic", NEEDED // 2, seed=5)
    tick_all(8 * MINUTE)
    assert due_times(store, model)[2:] == [8 * MINUTE]


def test_a_restarted_monitor_counts_what_came_while_it_was_away(
    store: Store, settings: Settings, model: Model, ticker: Ticker
) -> None:
    log(store, model, "clinic", 600, seed=2)
    log(store, model, "other", 600, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    log(store, model, "clinic", NEEDED, seed=3)
    log(store, model, "other", NEEDED - 1, seed=3)
    restarted = Ticker(store, settings, Exporter(cycle_interval_seconds=3600))
    restarted.tick(DUE + 2 * MINUTE, DUE)
    restarted.tick(DUE + 3 * MINUTE, DUE)
    assert due_times(store, model) == [timedelta(0), 3 * MINUTE]
    assert due_times(store, model, "other") == [timedelta(0)]


def test_a_population_that_is_new_does_not_wait_for_the_clock(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    log(store, model, "clinic", 600, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    log(store, model, "new", 5, seed=3)
    ticker.tick(DUE + 2 * MINUTE, DUE)
    labels = {"model": model.reference, "environment": "new", "role": "promoted"}
    assert exporter.registry.get_sample_value("lifelong_head_version", labels) == 1
    assert due_times(store, model, "new") == []
    log(store, model, "new", 600, SHIFTED, seed=3)
    ticker.tick(DUE + 3 * MINUTE, DUE)
    assert due_times(store, model, "new") == [3 * MINUTE]


@on_both_databases
def test_the_lease_and_the_last_cycle_decide_under_the_lease(
    store: Store, settings: Settings, model: Model
) -> None:
    log(store, model, "clinic", 600, seed=2)
    run_cycle(store, settings, model, "clinic", DUE)
    log(store, model, "clinic", NEEDED - 1, seed=3)

    def at(moment: timedelta) -> CycleResult:
        early = DueCycle.early(settings, "clinic", DUE + moment)
        return run_cycle(store, settings, model, "clinic", early.due_at, due_cycle=early)

    few = at(2 * MINUTE)
    assert (few.outcome, few.reason) == ("skip", HAS_RUN)
    log(store, model, "clinic", 1, seed=3)
    assert at(2 * MINUTE).outcome == "keep"
    log(store, model, "clinic", NEEDED, seed=3)
    again = at(2 * MINUTE)
    assert (again.outcome, again.reason) == ("skip", HAS_RUN)
    assert at(2.5 * MINUTE).outcome == "skip"
    # A cycle from a clock that was far ahead does not stop them.
    ahead = run_cycle(store, settings, model, "clinic", DUE + 48 * HOUR)
    assert ahead.outcome == "keep"
    log(store, model, "clinic", NEEDED, seed=4)
    assert at(4 * MINUTE).outcome == "keep"


def test_the_cycle_of_the_clock_is_not_repeated_after_an_early_one(
    store: Store, settings: Settings, model: Model
) -> None:
    log(store, model, "clinic", 600, seed=2)
    early = DueCycle.early(settings, "clinic", DUE + MINUTE)
    assert run_cycle(store, settings, model, "clinic", early.due_at, due_cycle=early).outcome == "keep"
    log(store, model, "clinic", 60, seed=3)
    assert run_cycle(store, settings, model, "clinic", DUE).reason == HAS_RUN
    assert run_cycle(store, settings, model, "clinic", DUE + HOUR).outcome == "keep"


def test_a_population_that_cannot_be_judged_is_not_tried_at_every_look(
    store: Store, settings: Settings, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    log(store, model, "clinic", 600, seed=2)
    ticker.tick(DUE + MINUTE, DUE)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE models SET calibration_set_id = NULL")
        connection.exec_driver_sql("UPDATE registry_revision SET revision = revision + 1")
    log(store, model, "clinic", NEEDED, seed=3)
    labels = {"model": model.reference, "environment": "clinic", "outcome": "skip"}
    for minutes in (2, 4, 6, 8):
        ticker.tick(DUE + minutes * MINUTE, DUE)
        assert exporter.registry.get_sample_value("lifelong_cycles_total", labels) == 1
    ticker.tick(DUE + HOUR, DUE + HOUR)
    assert exporter.registry.get_sample_value("lifelong_cycles_total", labels) == 2


@on_both_databases
def test_a_running_monitor_does_not_wait_for_the_hour(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    log(store, model, "clinic", 100, seed=2)
    changed = settings.model_copy(update={"news_poll_seconds": 0.05, "cycle_spacing_seconds": 0.0})
    with running(changed, exporter):
        until(lambda: len(store.cycles.list()) == 1)
        log(store, model, "clinic", 600, SHIFTED, seed=3)
        until(lambda: len(store.heads.list(model.reference)) == 2)
