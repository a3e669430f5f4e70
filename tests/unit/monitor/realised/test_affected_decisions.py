"""After a swap the monitor counts the affected decisions: soon, in parts, and again at the end of the period."""

import logging
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Cycle, Model, Store
from lifelong_core.store.cycles import affected_decisions
from lifelong_core.store.cycles.swaps import LATE
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.realised import affected_decisions as counting
from lifelong_monitor.realised.affected_decisions import SETTLING
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import MINUTE, SHIFTED, draw, on_both_databases, predict

DRAWN = draw(SHIFTED, 600, seed=3)


@pytest.fixture
def swap(store: Store, model: Model, ticker: Ticker) -> Cycle:
    """The cycle of the first tick."""
    predict(store, model, "clinic", DRAWN)
    again_in = ticker.tick(datetime.now(UTC), due_before(datetime.now(UTC), MINUTE))
    assert again_in is not None
    assert again_in >= SETTLING.total_seconds()
    (cycle,) = store.cycles.list()
    assert cycle.published_version == 2
    return cycle


def tick(ticker: Ticker, after: timedelta) -> float | None:
    now = datetime.now(UTC) + after
    return ticker.tick(now, due_before(datetime.now(UTC), MINUTE))


def shown(exporter: Exporter, name: str) -> float | None:
    labels = {"model": "lesions@1", "environment": "clinic", "role": "promoted"}
    return exporter.registry.get_sample_value(f"lifelong_affected_decisions{name}", labels)


def expected(store: Store) -> tuple[int, float]:
    """How many decisions on DRAWN differ, and their expected cost, by both heads' outputs."""
    old, new = (store.heads.get("lesions@1", version).head.apply(DRAWN.logits) for version in (1, 2))
    rows = np.arange(len(DRAWN.logits))
    costs = new.expected_costs[rows, old.decisions] - new.expected_costs[rows, new.decisions]
    return int((old.decisions != new.decisions).sum()), float(costs.sum())


@on_both_databases
def test_the_figures_of_a_swap_are_shown_seconds_after_it(
    store: Store, ticker: Ticker, exporter: Exporter, swap: Cycle, caplog: pytest.LogCaptureFixture
) -> None:
    assert shown(exporter, "") is None
    with caplog.at_level(logging.INFO):
        tick(ticker, SETTLING)
    count, cost = expected(store)
    assert count > 50
    assert shown(exporter, "") == count
    assert shown(exporter, "_share") == pytest.approx(count / 600)
    assert shown(exporter, "_expected_cost") == pytest.approx(cost)
    assert f"lesions@1 in clinic: head 2 would make {count} of 600 decisions since " in caplog.text
    assert f"lifelong cycles affected {swap.id}." in caplog.text
    caplog.clear()
    assert tick(ticker, SETTLING) is None
    assert "would make" not in caplog.text


def test_a_monitor_that_dies_before_it_has_counted_leaves_it_to_the_next(
    store: Store, settings: Settings, swap: Cycle
) -> None:
    after = Exporter(cycle_interval_seconds=60)
    tick(Ticker(store, settings, after), SETTLING)
    assert shown(after, "") == expected(store)[0]
    restarted = Exporter(cycle_interval_seconds=60)
    tick(Ticker(store, settings, restarted), SETTLING)
    assert shown(restarted, "") == expected(store)[0]


def test_a_long_period_is_counted_in_parts_and_cycles_go_on(
    store: Store,
    model: Model,
    ticker: Ticker,
    exporter: Exporter,
    swap: Cycle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(affected_decisions, "BLOCK_ROWS", 100)
    monkeypatch.setattr(counting, "COUNTING_SECONDS", -1)
    for _ in range(6):
        assert tick(ticker, SETTLING) == counting.RESUME_SECONDS
        assert shown(exporter, "") is None
    tick(ticker, SETTLING)
    assert shown(exporter, "") == expected(store)[0]


def test_decisions_that_come_late_are_in_the_final_figures(
    store: Store, model: Model, ticker: Ticker, swap: Cycle
) -> None:
    tick(ticker, SETTLING)
    old_head = predict(store, model, "clinic", DRAWN, head_version=1)
    predict(store, model, "clinic", DRAWN)
    for after, predictions in ((SETTLING, 600), (LATE - MINUTE, 600), (LATE + SETTLING + MINUTE, 1200)):
        tick(ticker, after)
        assert store.swaps.figures([swap.id])[swap.id].counts.predictions == predictions
    assert len(old_head) == 600
    assert store.swaps.uncounted() == []


def test_a_head_that_is_rolled_back_takes_its_figures_with_it(
    store: Store, ticker: Ticker, exporter: Exporter, swap: Cycle
) -> None:
    tick(ticker, SETTLING)
    assert shown(exporter, "") is not None
    store.heads.rollback("lesions@1", environment="clinic", actor="tests")
    tick(ticker, MINUTE)
    assert shown(exporter, "") is None
    # Brought back by a person: no swap, and nothing new to read again.
    store.heads.rollback("lesions@1", environment="clinic", actor="tests", to_version=2)
    tick(ticker, MINUTE)
    assert shown(exporter, "") is None


def test_a_damaged_head_is_said_once_and_stops_nothing(
    store: Store,
    model: Model,
    ticker: Ticker,
    swap: Cycle,
    caplog: pytest.LogCaptureFixture,
) -> None:
    heads = tables.heads
    with store.database.write() as connection:
        connection.execute(sa.update(heads).where(heads.c.version == 2).values(digest="0" * 64))
    for _ in range(2):
        tick(ticker, SETTLING)
    said = [one.getMessage() for one in caplog.records if "cannot be counted" in one.getMessage()]
    assert len(said) == 1
    assert "damaged" in said[0]
    assert store.swaps.uncounted() == []


def test_a_database_that_is_away_is_asked_again(
    store: Store, ticker: Ticker, exporter: Exporter, swap: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise UnavailableError("the database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(store.affected._exports, "pages", gone)
        tick(ticker, SETTLING)
    assert shown(exporter, "") is None
    tick(ticker, SETTLING)
    assert shown(exporter, "") == expected(store)[0]
