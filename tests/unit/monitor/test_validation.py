import pytest

from lifelong_core.metrics import accuracy, confusion_matrix
from lifelong_core.store import Model, Store
from lifelong_monitor.validation import realised_performance
from tests.unit.monitor.population import BALANCED, COSTS, draw, label, predict


def realised(store: Store, model: Model, *, limit: int = 1000):
    return realised_performance(store, store.tasks.get("lesions"), model, "clinic", limit=limit)


def test_without_labels_nothing_is_claimed(store: Store, model: Model) -> None:
    predict(store, model, "clinic", draw(BALANCED, 30, seed=2))
    assert realised(store, model) is None


def test_decisions_count_as_they_were_made(store: Store, model: Model) -> None:
    drawn = draw(BALANCED, 90, seed=2)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids, list(drawn.labels))
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions
    costs = [COSTS[true][decided] for true, decided in zip(drawn.labels, made, strict=True)]
    performance = realised(store, model)
    assert performance is not None
    assert performance.samples == 90
    assert performance.accuracy == accuracy(confusion_matrix(drawn.labels, made, classes=3))
    assert performance.expected_cost == pytest.approx(sum(costs) / 90, abs=1e-12)


def test_only_this_population_and_the_newest_labels_count(store: Store, model: Model) -> None:
    early, late = draw(BALANCED, 60, seed=2), draw(BALANCED, 30, seed=3)
    made = store.heads.get(model.reference, 1).head.apply(late.logits).decisions
    label(store, predict(store, model, "clinic", early), [0] * 60)
    label(store, predict(store, model, "elsewhere", late), [0] * 30)
    label(store, predict(store, model, "clinic", late), list(made))
    performance = realised(store, model, limit=30)
    assert performance is not None
    assert (performance.samples, performance.accuracy) == (30, 1.0)
