import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.metrics import (
    accuracy,
    bootstrap_confusions,
    confusion_matrix,
    counting_metric,
    expected_cost,
    sensitivity,
)
from lifelong_core.store import Model, Store
from lifelong_monitor import recommended
from lifelong_monitor.status import RealisedMetric, RealisedPerformance
from lifelong_monitor.validation import realised_performance
from tests.unit.monitor.population import BALANCED, COSTS, draw, label, predict
from tests.unit.monitor.recommendations import RECOMMENDED, attach


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


def of(performance: RealisedPerformance | None, label: str, class_index: int | None) -> RealisedMetric:
    assert performance is not None
    (found,) = [
        metric for metric in performance.metrics if (metric.label, metric.class_index) == (label, class_index)
    ]
    return found


def labelled(store: Store, model: Model, samples: int = 300, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    drawn = draw(BALANCED, samples, seed=2)
    label(store, predict(store, model, "clinic", drawn, **more), list(drawn.labels))
    return drawn.labels, store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions


def test_what_the_task_recommends_is_watched_and_the_rest_is_named(store: Store, model: Model) -> None:
    assert RECOMMENDED.metrics[0].parameters["costs"] == COSTS
    truth, made = labelled(store, model)
    attach(store)
    performance = realised(store, model)
    confusion = confusion_matrix(truth, made, classes=3)
    rates = sensitivity(confusion)
    assert of(performance, "EC", None).estimate == expected_cost(confusion, COSTS)
    assert [of(performance, "TPR", k).estimate for k in range(3)] == rates.tolist()
    assert of(performance, "TPR", None).estimate == pytest.approx(rates.mean(), abs=1e-12)
    resampled = bootstrap_confusions(truth, made, classes=3).of(counting_metric("TPR")).intervals()
    assert (of(performance, "TPR", 1).low, of(performance, "TPR", 1).high) == (
        resampled[1].low,
        resampled[1].high,
    )
    assert performance is not None
    assert len(performance.metrics) == 5
    assert [(metric.label, metric.reason) for metric in performance.left_out] == [
        ("AUROC", "it judges probabilities, and those of the log are of several heads")
    ]
    assert {metric.accepted for metric in performance.metrics} == {None}


def test_metrics_of_a_cut_off_are_left_out(store: Store, model: Model) -> None:
    step = RECOMMENDED.steps[1]
    at_target = step.metrics[0].model_copy(update={"parameters": {"target": ("TPR", 0.9)}})
    benefit = at_target.model_copy(update={"metric": "NB", "parameters": {"threshold": 0.1}})
    unfit = at_target.model_copy(update={"metric": "EC", "parameters": {"costs": ((0.0, 1.0), (1.0, 0.0))}})
    steps = (step.model_copy(update={"metrics": (at_target, benefit, unfit)}),)
    labelled(store, model)
    attach(store, what=RECOMMENDED.model_copy(update={"steps": steps}))
    performance = realised(store, model)
    assert performance is not None
    assert performance.metrics == ()
    reasons = {metric.label: metric.reason for metric in performance.left_out}
    assert set(reasons) == {"TPR@(TPR=0.9)", "NB@0.1", "EC"}
    assert "cuts the probabilities anew" in reasons["NB@0.1"]
    assert "costs" in reasons["EC"]


def test_a_threshold_is_reached_or_surely_missed(store: Store, model: Model) -> None:
    labelled(store, model)
    for metric, class_index, value, accepted in (
        ("TPR", 0, 0.5, True),
        ("TPR", 0, 0.999, False),
        ("TPR", None, 0.999, False),
        ("EC", None, 10.0, True),
        ("EC", None, 0.001, False),
    ):
        attach(store, AcceptanceThreshold(metric=metric, class_index=class_index, value=value))
        performance = realised(store, model)
        found = of(performance, metric, class_index)
        assert (found.has_threshold, found.accepted) == (True, accepted)
        assert performance is not None
        assert [other.accepted for other in performance.metrics if other != found] == [None] * 4
        assert performance.metrics[0].label == metric  # what is judged comes first


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


def test_intervals_respect_groups(store: Store, model: Model) -> None:
    """Ten patients say less than three hundred."""
    labelled(store, model, groups=[bytes([index % 10]) * 16 for index in range(300)])
    attach(store)
    found = of(realised(store, model), "EC", None)
    drawn = draw(BALANCED, 300, seed=2)
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions
    alone = (
        bootstrap_confusions(drawn.labels, made, classes=3).of(counting_metric("EC", costs=COSTS)).interval()
    )
    assert found.estimate == pytest.approx(alone.estimate, abs=1e-12)
    assert (found.low, found.high) != (alone.low, alone.high)


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


def test_many_classes_never_give_more_series_than_prometheus_takes(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommended, "MOST_SERIES", 3)
    labelled(store, model)
    attach(store, AcceptanceThreshold(metric="TPR", class_index=2, value=0.5))
    performance = realised(store, model)
    assert performance is not None
    assert [(metric.label, metric.class_index) for metric in performance.metrics] == [
        ("TPR", 2),
        ("EC", None),
    ]
    assert [metric.label for metric in performance.left_out] == ["TPR", "AUROC"]


def test_confusion_matrices_that_are_too_large_to_resample_are_named(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommended, "MOST_CELLS", 8)
    labelled(store, model)
    attach(store)
    performance = realised(store, model)
    assert performance is not None
    assert performance.accuracy > 0.5
    assert performance.metrics == ()
    assert [metric.label for metric in performance.left_out] == ["EC", "TPR", "AUROC"]


def test_a_recommendation_that_cannot_be_read_leaves_the_other_figures(store: Store, model: Model) -> None:
    labelled(store, model)
    attach(store)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE recommendations SET document = '{}'")
    performance = realised(store, model)
    assert performance is not None
    assert performance.accuracy > 0.5
    assert "damaged" in performance.left_out[0].reason


def test_the_design_loop_is_imported_only_where_a_task_has_a_recommendation() -> None:
    """Every other module of the monitor that runs in its process leaves it alone."""
    folder = Path(recommended.__file__).parent
    importing = {
        file.name
        for file in folder.glob("*.py")
        if re.search(r"^from lifelong_(core\.design|monitor\.recommended)", file.read_text(), re.MULTILINE)
    }
    assert importing == {"recommended.py"}
