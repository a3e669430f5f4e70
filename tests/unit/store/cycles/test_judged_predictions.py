"""From a prediction to the cycles that used it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lifelong_core.entities.cycles import Cycle
from lifelong_core.store import Model, Prediction, Store
from lifelong_core.store.cycles import judged_predictions
from tests.unit.store.samples import add_model, cycle, entry


def predictions(store: Store, model: Model, count: int) -> list[Prediction]:
    rows = [entry(model_id=model.id, environment="site-a") for _ in range(count)]
    for row in rows:  # a transaction each, so that each has a position of its own
        store.predictions.append([row])
    return [row.predictions[0] for row in rows]


def judge(store: Store, model: Model, hour: int, samples: int, **changes: str) -> Cycle:
    """A cycle over the newest predictions of the site."""
    one = cycle(model)
    judged = replace(
        one,
        due_at=one.due_at + timedelta(hours=hour),
        window_samples=samples,
        log_position=store.predictions.log_position(),
        **changes,  # type: ignore[arg-type]
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
