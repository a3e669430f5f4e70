"""Invalid rows are left out one by one and counted; the cycle uses the others."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Cycle, Model, Store
from lifelong_core.store.schema import tables
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from lifelong_monitor.cycle.text import format_cycle
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, DUE, MINUTE, draw, on_both_databases, predict

HOSTILE = [
    np.array(values, "<f4").tobytes()
    for values in ([np.nan, 0, 1], [0, np.inf, 0], [1, -np.inf, 0], [3, 3, 3], [1, 2], [1, 2, 3, 4], [])
]


def spoil(store: Store, ids: Sequence[UUID]) -> None:
    """Give these predictions logits that the service would never have logged, one kind after the other."""
    log = tables.predictions
    with store.database.write() as connection:
        for index, one in enumerate(ids):
            blob = HOSTILE[index % len(HOSTILE)]
            connection.execute(sa.update(log).where(log.c.id == one).values(logits=blob))


def cycle_of(store: Store, settings: Settings, model: Model, due_at: datetime = DUE) -> Cycle:
    result = run_cycle(store, settings, model, "clinic", due_at)
    assert result.last is not None
    return result.last


@on_both_databases
def test_a_window_goes_on_without_them_and_its_replay_is_exact(
    store: Store, settings: Settings, model: Model
) -> None:
    spoil(store, predict(store, model, "clinic", draw(BALANCED, 600, seed=2))[100:107])
    first = cycle_of(store, settings, model)
    assert (first.outcome, first.window_samples, inputs_of(first).quarantined) == ("keep", 593, 7)
    spoil(store, predict(store, model, "clinic", draw(BALANCED, 300, seed=3))[:3])
    second = cycle_of(store, settings, model, DUE + MINUTE)
    # The newest 600, of which 3 are new and 7 are old.
    assert (second.window_samples, inputs_of(second).quarantined) == (597, 3)
    assert inputs_of(second).new_samples == 297
    evidence = report_of(second).evidence
    assert evidence.samples == 593 + 297
    predict(store, model, "clinic", draw(BALANCED, 300, seed=4))
    for one in (first, second):
        assert replay(store, one.id).to_document() == report_of(one).to_document()


def test_only_if_nothing_is_left_it_refuses(store: Store, settings: Settings, model: Model) -> None:
    ids = predict(store, model, "clinic", draw(BALANCED, 30, seed=2))
    spoil(store, ids)
    refused = cycle_of(store, settings, model)
    assert (refused.outcome, refused.window_samples) == ("refuse", 0)
    (reason,) = report_of(refused).reasons
    assert reason.code == "window_invalid"
    assert "None of the 30 predictions" in reason.text
    assert replay(store, refused.id) == report_of(refused)
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    assert cycle_of(store, settings, model, DUE + MINUTE).outcome == "keep"


def test_people_are_told_how_many(store: Store, settings: Settings, model: Model) -> None:
    for environment in ("clinic", "site"):
        spoil(store, predict(store, model, environment, draw(BALANCED, 600, seed=2))[:5])
    result = run_cycle(store, settings, model, "site", DUE)
    exporter = Exporter(cycle_interval_seconds=60)
    Ticker(store, settings, exporter).tick(datetime.now(UTC), DUE)
    for environment in ("clinic", "site"):
        labels = {"model": model.reference, "environment": environment, "role": "promoted"}
        assert exporter.registry.get_sample_value("lifelong_quarantined_predictions", labels) == 5
    assert "Window: 595 predictions, and 5 that cannot be judged" in format_cycle(result, CLASS_NAMES)
