"""Number of registry reads of a tick: each reads the revision, and everything else if it changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, Store
from lifelong_monitor.cycle.occasion import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, SHIFTED, draw, predict

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DUE = due_before(datetime.now(UTC), HOUR)


@pytest.fixture
def ticker(store: Store, settings: Settings) -> Ticker:
    return Ticker(store, settings, Exporter(cycle_interval_seconds=3600))


@contextmanager
def registry_reads(store: Store) -> Iterator[list[str]]:
    """The statements of the block that read the registry's revision; each read of the registry begins with one."""
    found: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("SELECT") and "FROM registry_revision" in statement:
            found.append(statement)

    sa.event.listen(store.database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(store.database.engine, "before_cursor_execute", note)


def test_a_tick_without_news_reads_the_registry_once(store: Store, model: Model, ticker: Ticker) -> None:
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(BALANCED, 600, seed=3))
    for step in range(2):  # the log may not be readable to its end at once
        ticker.tick(DUE + step * HOUR, DUE + step * HOUR)
    with registry_reads(store) as a_look:
        ticker.tick(DUE + HOUR + MINUTE, DUE + HOUR)
    with registry_reads(store) as a_round:
        ticker.tick(DUE + 2 * HOUR, DUE + 2 * HOUR)
    assert (len(a_look), len(a_round)) == (1, 1)


def test_a_population_that_is_judged_costs_one_more_read_and_its_swap_another(
    store: Store, model: Model, ticker: Ticker
) -> None:
    """Under the lease, so that the head is not older than the activation that the swap expects."""
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "other", draw(BALANCED, 600, seed=4))
    with registry_reads(store) as read:
        ticker.tick(DUE, DUE)
    swapped = [cycle.outcome for cycle in store.cycles.list()].count("swap")
    assert swapped == 1
    assert len(read) == 1 + 2 + 1
