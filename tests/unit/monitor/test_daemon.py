import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apscheduler.schedulers.background import BackgroundScheduler

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import SchemaError, UnavailableError
from lifelong_monitor import daemon
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.daemon import Daemon
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.heartbeat import HeartbeatThread
from lifelong_monitor.jobs.running.lane import Lane
from lifelong_monitor.jobs.running.runner import JobRunner
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.daemons import running, until
from tests.unit.monitor.population import BALANCED, draw, predict, settings_for


@pytest.fixture
def empty(tmp_path: Path) -> Settings:
    """Settings of an installation without a database."""
    return settings_for(tmp_path / "empty")


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes of daemons that could not stop in time; a real exit would end the tests."""
    codes: list[int] = []
    monkeypatch.setattr("lifelong_monitor.daemon.os._exit", codes.append)
    return codes


def tick_errors(exporter: Exporter) -> float:
    return exporter.registry.get_sample_value("lifelong_tick_errors_total") or 0


def test_it_ticks_at_once_and_again(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(lambda: len(store.cycles.list()) == 1)
        predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
        until(lambda: len(store.cycles.list()) == 2)
    first, second = sorted(cycle.due_at.timestamp() for cycle in store.cycles.list())
    assert (second - first) / 0.2 == pytest.approx(round((second - first) / 0.2), abs=1e-3)
    assert tick_errors(exporter) == 0


@pytest.mark.parametrize("error", [UnavailableError("gone for a moment."), ZeroDivisionError("a defect")])
def test_a_tick_that_fails_as_a_whole_is_counted_and_the_next_one_comes(
    store: Store,
    settings: Settings,
    model: Model,
    exporter: Exporter,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    real_tick, failures = Ticker.tick, iter([error, error])

    def fails_twice(*arguments: object) -> None:
        for failure in failures:
            raise failure
        real_tick(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Ticker, "tick", fails_twice)
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(store.cycles.list)
    assert tick_errors(exporter) == 2


def test_after_a_failed_tick_it_does_not_wait_for_the_next_hour(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnavailableError("gone.")

    monkeypatch.setattr(Ticker, "tick", fails)
    monkeypatch.setattr("lifelong_monitor.daemon.RETRY_SECONDS", 0.1)
    with running(settings.model_copy(update={"cycle_interval_seconds": 3600.0}), exporter):
        until(lambda: tick_errors(exporter) >= 3)


def test_work_that_a_tick_left_does_not_wait_for_the_next_hour(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: list[datetime] = []

    def leaves_work(_: Ticker, __: datetime, due_at: datetime) -> float | None:
        due.append(due_at)
        return 0.05 if len(due) < 3 else None

    monkeypatch.setattr(Ticker, "tick", leaves_work)
    with running(settings.model_copy(update={"cycle_interval_seconds": 3600.0}), exporter):
        until(lambda: len(due) == 3)
    assert tick_errors(exporter) == 0


def test_a_clock_that_is_set_does_not_keep_the_next_tick_away(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler waits for a time of day, which a clock that is set back by an hour moves an hour away."""
    ticks, was_set = list[datetime](), threading.Event()

    def tick(ticker: Ticker, now: datetime, due_at: datetime) -> None:
        ticks.append(now)

    def next_by(now: datetime, interval: timedelta) -> datetime:
        """By the new clock a tick comes at once, by the old one an hour later."""
        return now - interval if was_set.is_set() else now

    monkeypatch.setattr(Ticker, "tick", tick)
    monkeypatch.setattr(daemon, "due_before", next_by)
    monkeypatch.setattr(daemon, "CLOCK_SECONDS", 0.05)
    monkeypatch.setattr(daemon, "_clock_offset", lambda: -3600.0 if was_set.is_set() else 0.0)
    by_the_clock = {"cycle_interval_seconds": 3600, "cycle_new_samples": 0}
    with running(settings.model_copy(update=by_the_clock), exporter):
        until(lambda: len(ticks) == 1)
        was_set.set()
        until(lambda: len(ticks) > 1)


def test_a_tick_that_outlasts_the_interval_is_said_in_our_words_and_the_next_one_comes(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ticks: list[datetime] = []

    def takes_long(_: Ticker, now: datetime, __: datetime) -> None:
        ticks.append(now)
        time.sleep(0.5 if len(ticks) == 1 else 0)

    monkeypatch.setattr(Ticker, "tick", takes_long)
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(lambda: len(ticks) >= 3)
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.name for record in warnings} == {"lifelong_monitor.daemon"}
    assert "longer than LIFELONG_CYCLE_INTERVAL_SECONDS" in warnings[0].getMessage()
    assert tick_errors(exporter) == 0


def test_a_first_tick_that_runs_into_the_full_interval_is_nothing_to_warn_of(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    interval = timedelta(seconds=1)
    due: list[datetime] = []

    def into_the_next(_: Ticker, now: datetime, due_at: datetime) -> None:
        due.append(due_at)
        if len(due) == 1:
            time.sleep((due_at + interval - now).total_seconds() + 0.05)

    monkeypatch.setattr(Ticker, "tick", into_the_next)
    now = datetime.now(UTC)
    time.sleep((due_before(now, interval) + interval * 1.3 - now).total_seconds())
    with running(settings.model_copy(update={"cycle_interval_seconds": 1.0}), exporter):
        until(lambda: len(due) == 2)
    assert due[1] == due[0] + 2 * interval
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_database_without_a_schema_stops_it(empty: Settings, exporter: Exporter) -> None:
    with pytest.raises(SchemaError, match="lifelong init"):
        Daemon(empty, exporter).run()


def test_it_stops_cleanly_while_the_scheduler_hands_over_a_tick(
    empty: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, removed = BackgroundScheduler.remove_job, list[str]()

    def after_a_while(scheduler: BackgroundScheduler, job_id: str, jobstore: str | None = None) -> None:
        time.sleep(0.5)
        remove(scheduler, job_id, jobstore)
        removed.append(job_id)

    monkeypatch.setattr(BackgroundScheduler, "remove_job", after_a_while)
    with pytest.raises(SchemaError, match="lifelong init"):
        Daemon(empty, exporter).run()
    assert removed


@pytest.mark.parametrize(
    "report",
    [
        "lifelong_monitor.daemon.HeartbeatThread.tick_finished",
        "lifelong_monitor.daemon.give_back_free_memory",
        "lifelong_monitor.daemon.Exporter.count_tick_error",
    ],
)
def test_a_report_that_fails_does_not_stop_the_ticks(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    report: str,
    exits: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ticks: list[datetime] = []

    def first_one_fails(_: Ticker, now: datetime, __: datetime) -> None:
        ticks.append(now)
        if len(ticks) == 1:
            raise UnavailableError("gone for a moment.")

    def fails(*_: object) -> None:
        raise ZeroDivisionError("a defect of a report")

    monkeypatch.setattr(Ticker, "tick", first_one_fails)
    monkeypatch.setattr(report, fails)
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(lambda: len(ticks) >= 3)
    assert exits == []
    assert "a defect of a report" in caplog.text


def test_a_tick_that_cannot_schedule_the_next_one_does_not_hold_up_the_end(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    exits: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real_add, first, refused = BackgroundScheduler.add_job, iter([True]), threading.Event()

    def adds_the_first_one(*arguments: Any, **options: Any) -> object:
        if next(first, False):
            return real_add(*arguments, **options)
        refused.set()
        raise ZeroDivisionError("a defect of the scheduler")

    monkeypatch.setattr(BackgroundScheduler, "add_job", adds_the_first_one)
    monkeypatch.setattr(daemon, "GRACE_SECONDS", 1.0)
    with running(settings, exporter):
        until(refused.is_set)
    assert exits == []


@pytest.mark.parametrize("part", [JobRunner, Lane, HeartbeatThread])
def test_a_start_that_fails_half_way_closes_what_was_started_and_is_repeated(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    part: type[JobRunner | Lane | HeartbeatThread],
    exits: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real_start, real_close, closed = part.start, Store.close, list[Store]()
    failures = iter([RuntimeError("can't start new thread")])

    def fails_once(started: Any) -> None:
        for failure in failures:
            raise failure
        real_start(started)

    def close(opened: Store) -> None:
        closed.append(opened)
        real_close(opened)

    monkeypatch.setattr(part, "start", fails_once)
    monkeypatch.setattr(Store, "close", close)
    monkeypatch.setattr(daemon, "RETRY_SECONDS", 0.1)
    parts = ["heartbeat", "jobs", "state of jobs"]
    with running(settings, exporter):
        until(store.monitors.list)
        until(lambda: sorted(one.name for one in threading.enumerate() if one.name in parts) == parts)
        assert len(closed) == 1
    assert len(closed) == 2
    assert closed[0] is not closed[1]
    assert tick_errors(exporter) == 1
    assert exits == []


def test_a_stop_while_the_store_is_opened_stops_the_jobs_that_start_after_it(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    exits: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = Daemon(settings, exporter)

    def stop_meanwhile(settings: Settings) -> Store:
        # APScheduler removes a job just after it has started it, and fails in its thread if it was shut down meanwhile.
        time.sleep(0.1)
        process.stop()
        return Store.open(settings.resolved_database_url, settings.resolved_artifacts_url)

    monkeypatch.setattr(Store, "from_settings", stop_meanwhile)
    process.run()
    assert process.store is not None
    assert exits == []
