"""What a cycle estimates without labels: the metrics that are wanted, acceptance, and replay."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.performance.performance_estimate import PerformanceWarning
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.metrics import accuracy, confusion_matrix
from lifelong_core.store import Cycle, Model, Store
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.estimates import (
    ALWAYS,
    MOST_ESTIMATES,
    WantedEstimate,
    judge_acceptance,
    keys_of,
    load_wanted_estimates,
    select_estimates,
)
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, DUE, SHIFTED, draw, predict
from tests.unit.monitor.recommendations import attach, attached, metric

AC, EC = ALWAYS
COST_MATRIX = np.array(COSTS)
BINARY = np.array([[0.0, 1.0], [5.0, 0.0]])


def at_least(label: str, value: float, class_index: int | None = None) -> AcceptanceThreshold:
    return AcceptanceThreshold(metric=label, value=value, class_index=class_index)


def test_metrics_of_all_classes_come_with_the_strictest_threshold_and_single_classes_only_with_one() -> None:
    thresholds = (at_least("TPR", 0.9, 2), at_least("MCC", 0.5), at_least("EC", 0.7))
    thresholds += (AcceptanceThreshold(metric="EC", value=0.6, by="estimate"),)
    found = attached("MCC", metric("EC", parameters={"costs": COSTS}), "TPR", "AUROC", thresholds=thresholds)
    assert select_estimates(found, COST_MATRIX, per_class=False) == (
        AC,
        WantedEstimate("EC", "EC", None, 0.6),
        WantedEstimate("MCC", "MCC", None, 0.5),
        WantedEstimate("TPR[2]", "TPR", 2, 0.9),
        WantedEstimate("BA", "TPR"),
    )


def test_single_classes_are_estimated_where_wanted() -> None:
    found = attached("TPR", "AUROC", metric("PPV", target_class=1), thresholds=(at_least("PPV", 0.3),))
    assert select_estimates(found, COST_MATRIX, per_class=True) == (
        AC,
        EC,
        WantedEstimate("PPV[1]", "PPV", 1, 0.3),
        WantedEstimate("BA", "TPR"),
        *(WantedEstimate(f"TPR[{k}]", "TPR", k) for k in range(3)),
        *(WantedEstimate(f"AUROC[{k}]", "AUROC", k) for k in range(3)),
    )


def test_in_a_binary_task_the_metric_of_class_0_is_the_mirrored_one_of_class_1() -> None:
    wanted = select_estimates(attached("PPV", "F_beta", "AUROC"), BINARY, per_class=True)
    assert wanted[2:] == (
        WantedEstimate("NPV", "PPV", 0),
        WantedEstimate("PPV", "PPV", 1),
        WantedEstimate("F_beta", "F_beta", 1),
        WantedEstimate("AUROC", "AUROC", 0),
        WantedEstimate("AUROC", "AUROC", 1),
    )


@pytest.mark.parametrize(
    "left_out",
    [
        "BS",
        metric("NB", parameters={"threshold": 0.1}),
        metric("TNR", parameters={"target": ("TPR", 0.95)}),
        metric("F_beta", parameters={"beta": 2.0}),
        metric("NEC", parameters={"costs": BINARY.tolist()}),
        metric("EC", parameters={"costs": BINARY.tolist(), "prevalence": (0.5, 0.5)}),
        metric("WCK"),
    ],
)
def test_what_the_decisions_do_not_give_is_left_out(left_out: RecommendedMetric | str) -> None:
    assert select_estimates(attached(left_out), COST_MATRIX, per_class=True) == ALWAYS


def test_the_parameters_that_fit_the_head_are_estimated() -> None:
    metrics = (metric("F_beta", parameters={"beta": 1.0}), metric("NEC", parameters={"costs": COSTS}))
    wanted = select_estimates(attached(*metrics), COST_MATRIX, per_class=True)
    assert {one.metric for one in wanted} == {"AC", "EC", "F_beta (beta=1.0)", "NEC"}


def test_a_cost_with_stated_prevalences_is_estimated_at_the_estimated_ones() -> None:
    stated = metric("EC", parameters={"costs": COSTS, "prevalence": (0.2, 0.3, 0.5)})
    at_most = AcceptanceThreshold(metric="EC", value=0.4)
    wanted = select_estimates(attached(stated, thresholds=(at_most,)), COST_MATRIX, per_class=True)
    assert wanted == (ALWAYS[0], WantedEstimate("EC", "EC", None, 0.4))


def test_a_weighted_mean_over_classes_is_left_out() -> None:
    weighted = metric("TPR", class_weights=(1.0, 1.0, 5.0))
    assert select_estimates(attached(weighted), COST_MATRIX, per_class=False) == ALWAYS


def test_the_number_of_series_is_limited_and_thresholds_come_first() -> None:
    classes = 60
    costs = 1 - np.eye(classes)
    found = attached("TPR", thresholds=(at_least("TPR", 0.5, classes - 1),))
    wanted = select_estimates(found, costs, per_class=True)
    assert len(wanted) == MOST_ESTIMATES
    assert wanted[2] == WantedEstimate("TPR[59]", "TPR", 59, 0.5)
    assert 2 * MOST_ESTIMATES < 100


def test_keys_are_those_of_an_estimate_each_once() -> None:
    wanted = select_estimates(attached("TPR", "BA", "AUROC"), BINARY, per_class=True)
    assert keys_of(wanted) == ("AC", "EC", "BA", "TNR", "TPR", "AUROC")


def test_a_task_without_a_recommendation_has_accuracy_and_cost(store: Store, model: Model) -> None:
    assert load_wanted_estimates(store, "lesions", COST_MATRIX, per_class=True) == ALWAYS
    attach(store, at_least("TPR", 0.8, 2))
    wanted = load_wanted_estimates(store, "lesions", COST_MATRIX, per_class=False)
    assert WantedEstimate("TPR[2]", "TPR", 2, 0.8) in wanted
    assert model.name == "lesions"


def test_a_damaged_recommendation_leaves_accuracy_and_cost(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attach(store, at_least("TPR", 0.8, 2))
    assert model.name == "lesions"
    damaged = attached("TPR", thresholds=())
    object.__setattr__(damaged, "digest", "0" * 64)
    monkeypatch.setattr(type(store.recommendations), "current", lambda *_: damaged)
    assert load_wanted_estimates(store, "lesions", COST_MATRIX, per_class=False) == ALWAYS
    assert "only accuracy and expected cost are estimated" in caplog.text


def cycle_of(store: Store, settings: Settings, model: Model, prevalence: Sequence[float] = BALANCED) -> Cycle:
    predict(store, model, "clinic", draw(prevalence, 600, seed=3))
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    assert cycle is not None
    return cycle


def codes(cycle: Cycle) -> list[str]:
    return [reason.code for reason in report_of(cycle).reasons]


def rewrite(store: Store, cycle: Cycle, report: dict[str, Any]) -> None:
    text = json.dumps(report).replace("'", "''")
    with store.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE cycles SET report = '{text}'")
    assert store.cycles.get(cycle.id).report == report


def test_every_cycle_estimates_accuracy_and_cost_of_the_head_and_of_the_candidate(
    store: Store, settings: Settings, model: Model
) -> None:
    cycle = cycle_of(store, settings, model, SHIFTED)
    report = report_of(cycle)
    assert list(report.performance.estimates) == list(report.candidate_performance.estimates) == ["AC", "EC"]
    head = store.heads.get(model.reference, cycle.head_version).head
    assert report.performance.head_digest == head.digest
    truth = draw(SHIFTED, 600, seed=3)
    confusion = confusion_matrix(truth.labels, head.apply(truth.logits).decisions, classes=3)
    assert report.performance.estimates["AC"].value == pytest.approx(accuracy(confusion), abs=0.05)
    assert not {"performance_missed", "performance_at_risk"} & set(codes(cycle))


def test_an_estimate_below_its_threshold_is_a_reason_that_leaves_the_outcome(
    store: Store, settings: Settings, model: Model
) -> None:
    attach(store, at_least("TPR", 0.999, 2), at_least("TPR", 0.05, 0))
    cycle = cycle_of(store, settings, model)
    assert cycle.outcome == "keep"
    assert codes(cycle)[-1] == "performance_missed"
    assert "Sensitivity (TPR) of malignant" in report_of(cycle).reasons[-1].text
    assert "of benign" not in report_of(cycle).reasons[-1].text
    estimate = report_of(cycle).performance
    assert estimate is not None
    shown = {(one.metric, one.class_index): one.judge(estimate) for one in inputs_of(cycle).wanted or ()}
    assert shown == {
        ("AC", None): None,
        ("EC", None): None,
        ("TPR", None): None,
        ("TPR", 0): "accepted",
        ("TPR", 2): "missed",
    }


@pytest.mark.parametrize("is_rejected", [True, False])
def test_a_threshold_within_the_interval_is_at_risk_and_a_rejected_assumption_is_said(
    store: Store, settings: Settings, model: Model, *, is_rejected: bool
) -> None:
    report = report_of(cycle_of(store, settings, model))
    warnings = (PerformanceWarning("assumption_rejected", "More has changed."),) if is_rejected else ()
    estimate = report.performance.estimates["AC"]
    report = replace(report, performance=replace(report.performance, warnings=warnings))
    wanted = (WantedEstimate("AC", "AC", None, (estimate.value + estimate.high) / 2), ALWAYS[1])
    judged = judge_acceptance(report, wanted, CLASS_NAMES)
    assert judged.reasons[:-1] == report.reasons
    assert judged.reasons[-1].code == "performance_at_risk"
    assert ("assumption test is rejected" in judged.reasons[-1].text) is is_rejected


def test_single_classes_are_estimated_where_a_setting_asks_for_them(
    store: Store, settings: Settings, model: Model
) -> None:
    attach(store)
    wanted = settings.model_copy(update={"estimate_single_classes": True})
    report = report_of(cycle_of(store, wanted, model))
    assert {"TPR[0]", "TPR[1]", "TPR[2]", "AUROC[0]", "AUROC[2]", "BA"} <= set(report.performance.estimates)


def test_a_replay_judges_by_the_thresholds_of_that_time(
    store: Store, settings: Settings, model: Model
) -> None:
    attach(store, at_least("TPR", 0.999, 2))
    cycle = cycle_of(store, settings, model)
    attach(store, at_least("TPR", 0.01, 1))
    assert replay(store, cycle.id) == report_of(cycle)
    wanted = inputs_of(cycle).wanted
    assert wanted is not None
    assert [one.threshold for one in wanted if one.threshold is not None] == [0.999]
