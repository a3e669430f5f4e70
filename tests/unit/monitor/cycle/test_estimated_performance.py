"""What a cycle estimates without labels, its acceptance, and its replay."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.performance.performance_estimate import PerformanceWarning
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.metrics import accuracy, confusion_matrix
from lifelong_core.store import Cycle, Model, Store
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.estimates import ALWAYS, WantedEstimate, judge_acceptance
from lifelong_monitor.cycle.occasion import due_before
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, SHIFTED, draw, predict
from tests.unit.monitor.recommendations import attach

DUE = due_before(datetime.now(UTC), timedelta(minutes=1))


def cycle_of(store: Store, settings: Settings, model: Model, prevalence: Sequence[float] = BALANCED) -> Cycle:
    predict(store, model, "clinic", draw(prevalence, 600, seed=3))
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    assert cycle is not None
    return cycle


def at_least(label: str, value: float, class_index: int | None = None) -> AcceptanceThreshold:
    return AcceptanceThreshold(metric=label, value=value, class_index=class_index)


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
