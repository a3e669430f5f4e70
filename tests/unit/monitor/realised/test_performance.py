from collections import Counter
from typing import Any

import numpy as np
import pytest

from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost, sensitivity
from lifelong_core.store import Model, Store
from lifelong_monitor.realised import performance, recommended_metrics
from lifelong_monitor.realised.performance import RealisedPerformances
from lifelong_monitor.realised.records import RecommendedMetrics
from tests.unit.monitor.population import BALANCED, COSTS, draw, label, predict
from tests.unit.monitor.recommendations import RECOMMENDED, attach, metric, naming, of, realised, reasons


def test_without_labels_nothing_is_claimed(store: Store, model: Model) -> None:
    predict(store, model, "clinic", draw(BALANCED, 30, seed=2))
    found = RealisedPerformances(store).compute(store.tasks.get("lesions"), model, "clinic", limit=1000)
    assert found is None


def test_decisions_count_as_they_were_made(store: Store, model: Model) -> None:
    drawn = draw(BALANCED, 90, seed=2)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids, list(drawn.labels))
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions
    costs = [COSTS[true][decided] for true, decided in zip(drawn.labels, made, strict=True)]
    performance = realised(store, model)
    assert performance.samples == 90
    expected = accuracy(confusion_matrix(drawn.labels, made, classes=3))
    assert performance.accuracy == pytest.approx(expected, abs=1e-12)
    low, high = performance.accuracy_interval
    assert low < performance.accuracy < high
    low, high = performance.expected_cost_interval
    assert low < performance.expected_cost < high
    assert performance.expected_cost == pytest.approx(sum(costs) / 90, abs=1e-12)


def test_only_this_population_and_the_newest_labels_count(store: Store, model: Model) -> None:
    early, late = draw(BALANCED, 60, seed=2), draw(BALANCED, 30, seed=3)
    made = store.heads.get(model.reference, 1).head.apply(late.logits).decisions
    label(store, predict(store, model, "clinic", early), [0] * 60)
    label(store, predict(store, model, "elsewhere", late), [0] * 30)
    label(store, predict(store, model, "clinic", late), list(made))
    performance = realised(store, model, limit=30)
    assert (performance.samples, performance.accuracy) == (30, pytest.approx(1.0))


def labelled(store: Store, model: Model, samples: int = 300, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    drawn = draw(BALANCED, samples, seed=2)
    label(store, predict(store, model, "clinic", drawn, **more), list(drawn.labels))
    return drawn.labels, store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions


def test_what_the_task_recommends_is_watched(store: Store, model: Model) -> None:
    assert RECOMMENDED.metrics[0].parameters["costs"] == COSTS
    truth, made = labelled(store, model)
    attach(store)
    performance = realised(store, model)
    confusion = confusion_matrix(truth, made, classes=3)
    rates = sensitivity(confusion)
    assert of(performance, "EC").estimate == expected_cost(confusion, COSTS)
    assert [of(performance, "TPR", k).estimate for k in range(3)] == rates.tolist()
    assert of(performance, "TPR").estimate == pytest.approx(rates.mean(), abs=1e-12)
    assert Counter(value.label for value in performance.recommended.values) == {"EC": 1, "TPR": 4, "AUROC": 4}
    assert performance.recommended.left_out == ()
    assert {value.accepted for value in performance.recommended.values} == {None}


def test_what_cannot_be_watched_is_named_with_what_to_do(store: Store, model: Model) -> None:
    unfit = metric("EC", parameters={"costs": ((0.0, 1.0), (1.0, 0.0))})
    labelled(store, model)
    attach(store, what=naming(metric("TPR", parameters={"target": ("TNR", 0.9)}), unfit, "MCE"))
    performance = realised(store, model)
    assert performance.recommended.values == ()
    found = reasons(performance)
    assert set(found) == {"TPR@(TNR=0.9)", "EC", "MCE"}
    assert "cut-off" in found["TPR@(TNR=0.9)"]
    assert "costs" in found["EC"]
    assert all("validate the model" in found[name] for name in ("TPR@(TNR=0.9)", "MCE"))


def test_a_threshold_is_reached_or_surely_missed(store: Store, model: Model) -> None:
    labelled(store, model)
    for name, class_index, value, accepted in (
        ("TPR", 0, 0.5, True),
        ("TPR", 0, 0.999, False),
        ("TPR", None, 0.999, False),
        ("EC", None, 10.0, True),
        ("EC", None, 0.001, False),
    ):
        attach(store, AcceptanceThreshold(metric=name, class_index=class_index, value=value))
        performance = realised(store, model)
        found = of(performance, name, class_index)
        assert (found.threshold is not None, found.accepted) == (True, accepted)
        assert [other.accepted for other in performance.recommended.values if other != found] == [None] * 8
        assert performance.recommended.values[0].label == name  # what is judged comes first


def test_what_may_be_chance_is_not_judged(store: Store, model: Model) -> None:
    labelled(store, model)
    attach(store)
    found = of(realised(store, model), "TPR", 0)
    between = (found.estimate + found.high) / 2
    assert found.estimate < between < found.high
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=between))
    assert of(realised(store, model), "TPR", 0).accepted is None


@pytest.mark.parametrize(("samples", "accepted"), [(3 * 29, None), (3 * 30, False)])
def test_few_labels_judge_nothing(store: Store, model: Model, samples: int, accepted: bool | None) -> None:
    labelled(store, model, samples)
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.9999))
    assert of(realised(store, model), "TPR", 0).accepted is accepted


@pytest.mark.parametrize(("patients", "accepted"), [(2, None), (90, False)])
def test_many_labels_of_few_groups_judge_nothing(
    store: Store, model: Model, patients: int, accepted: bool | None
) -> None:
    labelled(store, model, groups=[bytes([index % patients]) * 16 for index in range(300)])
    attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.9999))
    assert of(realised(store, model), "TPR", 0).accepted is accepted


def test_what_is_undefined_is_nan(store: Store, model: Model) -> None:
    drawn = draw((0.5, 0.5, 0.0), 80, seed=2)
    label(store, predict(store, model, "clinic", drawn), list(drawn.labels))
    attach(store, AcceptanceThreshold(metric="TPR", value=0.5))
    performance = realised(store, model)
    assert np.isnan([of(performance, "TPR", k).estimate for k in (2, None)]).all()
    assert of(performance, "TPR", None).accepted is None
    assert reasons(performance)["TPR"].startswith("undefined for class 2")


def test_many_classes_never_give_more_series_than_prometheus_takes(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sums a metric up and what has a threshold come first, and then whole metrics."""
    labelled(store, model)
    attach(store, AcceptanceThreshold(metric="TPR", class_index=2, value=0.5))
    for most, classes, cut in (
        (3, [None, 2, None], ["TPR", "AUROC"]),
        (5, [None, 2, None, None], ["TPR", "AUROC"]),
        (6, [None, 0, 1, 2, None, None], ["AUROC"]),
        (9, [None, 0, 1, 2, None, None, 0, 1, 2], []),
    ):
        monkeypatch.setattr(recommended_metrics, "MOST_SERIES", most)
        found = realised(store, model).recommended
        assert [metric.class_index for metric in found.values] == classes
        assert [metric.label for metric in found.left_out] == cut


def test_tasks_with_too_many_classes_keep_accuracy_and_cost(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommended_metrics, "MOST_CLASSES", 2)
    labelled(store, model)
    attach(store)
    performance = realised(store, model)
    assert performance.accuracy > 0.5
    assert performance.recommended.values == ()
    assert list(reasons(performance)) == ["EC", "TPR", "AUROC"]


def test_metrics_are_computed_again_only_when_something_has_changed(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monitor may tick every few seconds, to go on with what it left."""
    computed: list[RecommendedMetrics] = []

    def counting(*arguments: Any, **named: Any) -> RecommendedMetrics:
        computed.append(original(*arguments, **named))
        return computed[-1]

    original = recommended_metrics.compute_recommended_metrics
    monkeypatch.setattr(performance, "compute_recommended_metrics", counting)
    performances = RealisedPerformances(store)

    def found() -> RecommendedMetrics:
        return realised(store, model, known=performances).recommended

    ids = predict(store, model, "clinic", draw(BALANCED, 90, seed=2))
    label(store, ids, [0] * 90)
    attach(store)
    assert found() is found()
    label(store, ids[:1], [1])  # corrected
    again = [found()]
    label(store, predict(store, model, "clinic", draw(BALANCED, 3, seed=3)), [0] * 3)
    again.append(found())
    attach(store, what=naming("BS"))
    again.append(found())
    assert found() is again[-1]
    assert computed[1:] == again


def test_a_recommendation_that_cannot_be_read_leaves_the_other_figures(store: Store, model: Model) -> None:
    labelled(store, model)
    attach(store)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE recommendations SET document = '{}'")
    performance = realised(store, model)
    assert performance.accuracy > 0.5
    (reason,) = reasons(performance).values()
    assert "damaged" in reason
