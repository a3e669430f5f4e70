"""Populations without new predictions: their database queries, and their series."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.store import Heartbeat, Model, Store
from lifelong_monitor import heartbeat
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.heartbeat import HeartbeatThread
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.daemons import until
from tests.unit.monitor.population import (
    BALANCED,
    HOUR,
    MINUTE,
    SHIFTED,
    draw,
    label,
    on_both_databases,
    predict,
)

DUE = due_before(datetime.now(UTC), HOUR)


def value(exporter: Exporter, name: str, environment: str = "clinic", **labels: str) -> float | None:
    role = {} if name.endswith("_total") else {"role": "promoted"}
    return exporter.registry.get_sample_value(
        f"lifelong_{name}", {"model": "lesions@1", "environment": environment} | role | labels
    )


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """The statements that the block executes."""
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    sa.event.listen(store.database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(store.database.engine, "before_cursor_execute", note)


def registry_reads(statements: list[str]) -> int:
    """Each read of the registry begins with that of its revision."""
    return sum(one.startswith("SELECT") and "FROM registry_revision" in one for one in statements)


def test_a_tick_without_news_reads_the_registry_once(store: Store, model: Model, ticker: Ticker) -> None:
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(BALANCED, 600, seed=3))
    for step in range(2):  # the log may not be readable to its end at once
        ticker.tick(DUE + step * HOUR, DUE + step * HOUR)
    with counted(store) as a_look:
        ticker.tick(DUE + HOUR + MINUTE, DUE + HOUR)
    with counted(store) as a_round:
        ticker.tick(DUE + 2 * HOUR, DUE + 2 * HOUR)
    assert (registry_reads(a_look), registry_reads(a_round)) == (1, 1)


def test_a_population_that_is_judged_costs_one_more_read_and_its_swap_another(
    store: Store, model: Model, ticker: Ticker
) -> None:
    """Under the lease, so that the head is not older than the activation that the swap expects."""
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "other", draw(BALANCED, 600, seed=4))
    with counted(store) as read:
        ticker.tick(DUE, DUE)
    swapped = [cycle.outcome for cycle in store.cycles.list()].count("swap")
    assert swapped == 1
    assert registry_reads(read) == 1 + 2 + 1


@on_both_databases
def test_the_number_of_queries_does_not_grow_with_the_populations_without_news(
    store: Store, model: Model, ticker: Ticker
) -> None:
    found: list[list[str]] = []
    # The first round of a day makes a partition of the log: all of these are on one day.
    at = DUE if DUE.hour < 16 else DUE + (24 - DUE.hour) * HOUR
    for number, samples in ((1, 60), (12, 5)):
        for one in range(number):
            predict(store, model, f"site-{number}-{one}", draw(BALANCED, samples, seed=2))
        for _ in range(2):  # the log may not be readable to its end at once
            ticker.tick(at, at)
            at += HOUR
        with counted(store) as a_round:
            ticker.tick(at, at)
        with counted(store) as a_look:
            ticker.tick(at + MINUTE / 2, at)
        assert len(a_look) <= 3
        found.append([one for one in a_round if "count(" not in one])
        at += HOUR
    assert found[0] == found[1]


def test_labels_show_at_the_next_round(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    drawn = draw(BALANCED, 60, seed=2)
    ids = predict(store, model, "clinic", drawn)
    ticker.tick(DUE, DUE)
    assert value(exporter, "labelled_samples") is None
    label(store, ids[:20], list(drawn.labels[:20]))
    ticker.tick(DUE + MINUTE, DUE)
    assert value(exporter, "labelled_samples") is None
    ticker.tick(DUE + HOUR, DUE + HOUR)
    assert value(exporter, "labelled_samples") == 20
    before = value(exporter, "realised_accuracy")
    label(store, ids[:20], [2 - one if one != 1 else 0 for one in drawn.labels[:20]])
    ticker.tick(DUE + 2 * HOUR, DUE + 2 * HOUR)
    assert value(exporter, "realised_accuracy") != before


def test_heads_and_pins_show_at_the_next_look_for_news(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 60, seed=2))
    ticker.tick(DUE, DUE)
    record = store.heads.get(model.reference, 1)
    store.heads.publish(model.reference, record.head, environment="clinic", actor="ann")
    ticker.tick(DUE + MINUTE, DUE)
    assert (value(exporter, "head_version"), value(exporter, "head_pinned")) == (2, 0)
    store.heads.pin(model.reference, environment="clinic", reason="under audit", actor="ann")
    ticker.tick(DUE + MINUTE, DUE)
    assert (value(exporter, "head_version"), value(exporter, "head_pinned")) == (2, 1)


@on_both_databases
def test_what_another_monitor_does_shows_at_the_next_round(
    store: Store, settings: Settings, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    ticker.tick(DUE, DUE)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    asking = settings.model_copy(update={"policy": PolicySettings(mode="propose")})
    other = Ticker(store, asking, Exporter(cycle_interval_seconds=3600))
    other.tick(DUE + HOUR, DUE + HOUR)
    store.monitors.record_heartbeat(Heartbeat("other", "ward-3", 8, DUE, 3600.0, "propose", {}, None, ()))
    assert value(exporter, "prevalence_shift_l1") < 0.3
    ticker.tick(DUE + HOUR, DUE + HOUR)
    assert value(exporter, "prevalence_shift_l1") > 0.8
    assert value(exporter, "proposal_open") == 1
    assert value(exporter, "policy_mode", mode="propose") == 1
    (proposal,) = store.cycles.proposals()
    store.cycles.reject(proposal.id, reason="not now", actor="ann")
    ticker.tick(DUE + HOUR + MINUTE, DUE + HOUR)
    assert value(exporter, "proposal_open") == 0


def test_a_damaged_cycle_of_one_population_does_not_stop_the_others(
    store: Store, settings: Settings, model: Model, ticker: Ticker
) -> None:
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(BALANCED, 600, seed=2))
    ticker.tick(DUE, DUE)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE cycles SET proposal = 'damaged' WHERE environment = 'clinic'")
    exporter = Exporter(cycle_interval_seconds=3600)
    Ticker(store, settings, exporter).tick(DUE + HOUR, DUE + HOUR)
    assert value(exporter, "cycles_total", outcome="error") >= 1
    assert value(exporter, "window_samples", "other") == 600


@pytest.fixture
def quiet(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeartbeatThread]:
    monkeypatch.setattr(heartbeat, "LEAST_SECONDS", 0.01)
    thread = HeartbeatThread(store, settings)
    thread.start()
    yield thread
    thread.close(5)


def test_looks_that_find_nothing_leave_the_heartbeat_alone(store: Store, quiet: HeartbeatThread) -> None:
    def finished() -> datetime | None:
        tick = store.monitors.list()[0].heartbeat.tick
        return None if tick is None else tick.finished_at

    visits = ()
    quiet.tick_started(DUE)
    quiet.tick_finished(visits)
    until(finished)
    first = finished()
    with counted(store) as statements:
        for _ in range(5):
            quiet.tick_started(DUE, is_round=False)
            quiet.tick_finished(visits)
    assert not [one for one in statements if "INSERT INTO monitors" in one]
    assert finished() == first
    quiet.tick_started(DUE, is_round=False)
    quiet.tick_finished(visits, "the database is gone")
    until(lambda: store.monitors.list()[0].heartbeat.tick.problem)  # type: ignore[union-attr]
    quiet.tick_started(DUE, is_round=False)
    quiet.tick_finished(visits)
    until(lambda: not store.monitors.list()[0].heartbeat.tick.problem)  # type: ignore[union-attr]
