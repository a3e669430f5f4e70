"""From a prediction to the cycles that used it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from lifelong_core.entities.cycles import Cycle
from lifelong_core.store import LogEntry, Model, Prediction, Store
from lifelong_core.store.cycles import judged_predictions
from lifelong_core.store.log.identifiers import first_id_at
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model, cycle, entry, prediction


def predictions(store: Store, model: Model, count: int) -> list[Prediction]:
    rows = [entry(model_id=model.id, environment="site-a") for _ in range(count)]
    for row in rows:  # a transaction each, so that each has a position of its own
        store.predictions.append([row])
    return [row.predictions[0] for row in rows]


def judge(store: Store, model: Model, hour: int, samples: int, **changes: Any) -> Cycle:
    """A cycle over the newest predictions of the site."""
    one = cycle(model)
    judged = replace(
        one,
        due_at=one.due_at + timedelta(hours=hour),
        window_samples=samples,
        log_position=store.predictions.log_position(),
        **{"finished_at": datetime.now(UTC)} | changes,
    )
    return store.cycles.finish(judged, candidate=None, expected_sequence=None)


def test_cycles_are_named_while_their_windows_hold_the_prediction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = add_model(store)
    judge(store, model, 0, samples=5)  # before it was logged
    (one,) = predictions(store, model, 1)
    first = judge(store, model, 1, samples=3)
    (later,) = predictions(store, model, 1)
    judge(store, model, 2, samples=2, environment="site-b")
    second = judge(store, model, 3, samples=2)
    third = judge(store, model, 4, samples=1)  # the window has left the first one behind
    found = store.judged.cycles_with(one)
    assert [judging.id for judging in found] == [first.id, second.id]
    assert (found[0].outcome, found[0].finished_at) == ("keep", first.finished_at)
    assert [judging.id for judging in store.judged.cycles_with(later)] == [second.id, third.id]
    monkeypatch.setattr(judged_predictions, "MOST", 1)
    assert [judging.id for judging in store.judged.cycles_with(one)] == [first.id]


def test_a_prediction_that_is_gone_has_no_cycles(store: Store) -> None:
    model = add_model(store)
    judge(store, model, 0, samples=5)
    assert store.judged.cycles_with(entry(model_id=model.id).predictions[0]) == []


def test_a_window_of_whole_hours_begins_with_its_first_hour(store: Store) -> None:
    model = add_model(store)
    one, _, _ = predictions(store, model, 3)
    hours = [{"since": (datetime.now(UTC) + timedelta(hours=shift)).isoformat()} for shift in (-1, 1)]
    first = judge(store, model, 1, samples=1, report={"inputs": {"hours": hours[0]}})
    judge(store, model, 2, samples=9, report={"inputs": {"hours": hours[1]}})
    assert [judging.id for judging in store.judged.cycles_with(one)] == [first.id]


@sqlite_only
def test_predictions_after_a_cycle_are_not_read(store: Store) -> None:
    model, day = add_model(store), datetime.now(UTC) - timedelta(days=2)
    one = prediction(model.id, "site-a", prediction_id=first_id_at(day))
    store.predictions.append([LogEntry((one,))])
    judged = judge(store, model, 1, samples=5, finished_at=day + timedelta(minutes=1))
    before = steps(store, one)
    store.predictions.append([entry(model_id=model.id, environment="site-a", predictions=500)])
    assert [judging.id for judging in store.judged.cycles_with(one)] == [judged.id]
    assert steps(store, one) < before + 20


def steps(store: Store, one: Prediction) -> int:
    """Instructions of SQLite's machine, in tens, that a search takes."""
    done = [0]

    def step() -> int:
        done[0] += 1
        return 0

    def count(connection: sa.Connection, *_: object) -> None:
        connection.connection.dbapi_connection.set_progress_handler(step, 10)  # type: ignore[union-attr]

    event.listen(store.database.engine, "before_cursor_execute", count)
    store.judged.cycles_with(one)
    event.remove(store.database.engine, "before_cursor_execute", count)
    return done[0]
