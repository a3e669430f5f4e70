"""Estimated beside realised performance: by day and head, checks of labels, what is stored and when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.performance.performance_estimate import (
    EstimatedMetric,
    PerformanceEstimate,
    PerformanceWarning,
)
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.performance import PopulationPerformance
from lifelong_core.store import LabelledPredictions, Model, NewLabel, Store, logged_at, new_prediction_id
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.performance.comparisons import CycleEstimate
from lifelong_core.store.performance.realised import realised_figures, select_rows
from lifelong_monitor.realised.comparison import PerformanceComparer
from lifelong_monitor.realised.periods import Evidence, compare_days, compare_heads
from tests.unit.monitor.population import BALANCED, COSTS, draw, label, predict

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BINARY = np.array([[0.0, 1.0], [4.0, 0.0]])


def labelled_at(*parts: tuple[datetime, int, list[int], list[int]], **more: Any) -> LabelledPredictions:
    """Labelled binary predictions: time, head version, labels, decisions."""
    ids, versions, labels, decisions = [], [], [], []
    for at, version, true, decided in parts:
        ids += [first_id_at(at + timedelta(milliseconds=index)) for index in range(len(true))]
        versions += [version] * len(true)
        labels += true
        decisions += decided
    return LabelledPredictions(
        ids=tuple(ids),
        labels=np.array(labels),
        decisions=np.array(decisions),
        head_versions=np.array(versions),
        logits=np.zeros((len(ids), 2), dtype=np.float32),
        **more,
    )


def estimate(
    accuracy: float, cost: float, *, head: int = 1, due_at: datetime = MONDAY + HOUR
) -> CycleEstimate:
    made = PerformanceEstimate(
        method="mean",
        estimates={
            "AC": EstimatedMetric(accuracy, accuracy - 0.02, accuracy + 0.02),
            "EC": EstimatedMetric(cost, cost - 0.05, cost + 0.05),
        },
        confusion_matrix=np.eye(2) / 2,
        prevalence=np.array([0.5, 0.5]),
        confidence=0.95,
        samples=600,
        effective_samples=600.0,
        validated_error=0.02,
        assumptions=(),
        warnings=(PerformanceWarning("assumption", "the assumption test rejects"),),
        head_digest="0" * 64,
    )
    return CycleEstimate(new_prediction_id(), due_at, head, made)


def evidence(labelled: LabelledPredictions, *estimates: CycleEstimate, **changes: Any) -> Evidence:
    made = Evidence(estimates, labelled, lambda _: BINARY, None, 0.95)
    return replace(made, **changes)


def decided(right: int, missed: int) -> tuple[list[int], list[int]]:
    """Labels and decisions: so many right (half of each class), so many of class 1 missed."""
    labels = [0, 1] * (right // 2) + [1] * missed
    return labels, [0, 1] * (right // 2) + [0] * missed


def test_realised_figures_are_those_of_the_day_and_the_head():
    labelled = labelled_at(
        (MONDAY + HOUR, 1, *decided(30, 10)),
        (MONDAY + 2 * HOUR, 2, *decided(40, 0)),
        (MONDAY + DAY, 2, *decided(20, 20)),
    )
    days = compare_days(evidence(labelled))
    found = [
        (
            day.since,
            day.head_version,
            day.realised.samples,
            day.realised.metrics["AC"].value,
            day.realised.metrics["EC"].value,
        )
        for day in days
        if day.realised is not None
    ]
    assert found == [
        (MONDAY, 1, 40, pytest.approx(0.75), pytest.approx(1.0)),
        (MONDAY, 2, 40, pytest.approx(1.0), 0.0),
        (MONDAY + DAY, 2, 40, pytest.approx(0.5), pytest.approx(2.0)),
    ]
    assert all(day.estimated is None and day.agreement == {} for day in days)


def test_days_and_heads_are_compared_with_their_own_estimates():
    labelled = labelled_at((MONDAY + HOUR, 1, *decided(80, 20)), (MONDAY + DAY, 1, *decided(20, 80)))
    days = compare_days(
        evidence(
            labelled,
            estimate(0.8, 0.8),
            estimate(0.9, 0.4, due_at=MONDAY + DAY + HOUR),
            estimate(0.7, 1.0, head=2, due_at=MONDAY + DAY + 2 * HOUR),
        )
    )
    assert [(day.since, day.head_version) for day in days] == [
        (MONDAY, 1),
        (MONDAY + DAY, 1),
        (MONDAY + DAY, 2),
    ]
    assert [day.agrees for day in days] == [True, False, None]
    assert days[2].realised is None
    assert days[0].estimated.warnings == ("the assumption test rejects",)


def test_few_labels_of_a_day_say_nothing_but_those_of_all_days_of_the_head_do():
    parts = [(MONDAY + index * DAY, 1, *decided(4, 12)) for index in range(4)]
    estimates = [estimate(0.9, 0.4, due_at=MONDAY + index * DAY + HOUR) for index in range(4)]
    made = evidence(labelled_at(*parts), *estimates)
    days = compare_days(made)
    assert [day.agrees for day in days] == [None] * 4
    (head,) = compare_heads(made, days)
    assert head.agrees is False
    assert (head.realised.samples, head.since, head.until) == (64, MONDAY, MONDAY + 4 * DAY)


def test_the_estimate_of_a_head_is_the_mean_over_days_weighted_by_their_labels():
    labelled = labelled_at(
        (MONDAY, 1, *decided(30, 0)),
        (MONDAY + DAY, 1, *decided(10, 0)),
        (MONDAY + 2 * DAY, 1, *decided(50, 0)),
    )
    made = evidence(
        labelled,
        estimate(0.8, 0.8),
        estimate(0.6, 1.6, due_at=MONDAY + DAY + HOUR),
        estimate(0.1, 3.0, due_at=MONDAY + 3 * DAY + HOUR),
    )
    (head,) = compare_heads(made, compare_days(made))
    # Neither the labels of Wednesday, without an estimate, nor the estimate of Thursday, without a label, count.
    assert head.estimated.metrics["AC"] == pytest.approx((0.75, 0.73, 0.77))
    assert head.realised.samples == 40


def test_without_labels_the_last_estimate_stands_alone_and_the_newest_head_is_last():
    made = evidence(
        labelled_at((MONDAY, 2, *decided(40, 0))),
        estimate(0.8, 0.8, head=2),
        estimate(0.7, 0.9, head=1, due_at=MONDAY + DAY + HOUR),
        estimate(0.6, 1.0, head=1, due_at=MONDAY + 2 * DAY + HOUR),
    )
    heads = compare_heads(made, compare_days(made))
    assert [head.head_version for head in heads] == [2, 1]
    assert heads[1].estimated.metrics["AC"].value == 0.6
    assert heads[1].realised is None


def test_after_a_rollback_on_the_same_day_the_head_that_was_judged_last_is_last():
    made = evidence(
        labelled_at((MONDAY, 2, *decided(40, 0))),
        estimate(0.9, 0.1, head=2, due_at=MONDAY + HOUR),
        estimate(0.7, 0.2, head=1, due_at=MONDAY + 2 * HOUR),
    )
    assert [one.head_version for one in compare_heads(made, compare_days(made))] == [2, 1]


def test_known_labelling_probabilities_weigh_and_leave_out_other_labels():
    labels, decisions = decided(40, 40)
    known = np.array([0.1] * 40 + [0.4] * 40)
    labelled = labelled_at((MONDAY, 1, labels, decisions), propensities=known)
    found = realised_figures(labelled, np.arange(80), BINARY, error_rates=None, confidence=0.95)
    # 40 right ones stand for 10 each, 40 wrong ones for 2.5.
    assert found.metrics["AC"].value == pytest.approx(400 / 500)
    mixed = replace(labelled, propensities=np.where(np.arange(80) < 40, known, np.nan))
    assert select_rows(mixed, np.arange(80)).rows.tolist() == list(range(40))
    few = replace(labelled, propensities=np.where(np.arange(80) < 29, known, np.nan))
    chosen = select_rows(few, np.arange(80))
    assert (chosen.rows.size, chosen.propensities) == (80, None)


def test_assumed_wrong_labels_widen_the_interval():
    labelled = labelled_at((MONDAY, 1, *decided(60, 20)))
    sure, unsure = (
        realised_figures(labelled, np.arange(80), BINARY, error_rates=rates, confidence=0.95)
        for rates in (None, np.array([0.1, 0.1]))
    )
    assert unsure.metrics["AC"].low < sure.metrics["AC"].low
    assert unsure.metrics["AC"].high > sure.metrics["AC"].high


def judge(store: Store, model: Model, accuracy: float, *, due_at: datetime | None = None) -> Cycle:
    """Record a cycle in clinic whose report holds an estimate."""
    due_at = due_at or datetime.now(UTC)
    performance = replace(
        estimate(accuracy, 1 - accuracy).estimate,
        prevalence=np.full(3, 1 / 3),
        confusion_matrix=np.eye(3) / 3,
    )
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=model.id,
        environment="clinic",
        due_at=due_at,
        started_at=due_at,
        finished_at=due_at,
        outcome="keep",
        report={"performance": performance.to_document()},
        window_samples=600,
        log_position=store.predictions.log_position(),
        head_version=1,
        published_version=None,
    )
    return store.cycles.finish(cycle, candidate=None, expected_sequence=None)


def compared(store: Store, model: Model, **changes: Any) -> PopulationPerformance | None:
    comparer = PerformanceComparer(store, Settings(**changes))
    task, population = store.tasks.get("lesions"), (model.id, "clinic")
    labels, cycles = store.watching.labels(), store.watching.newest_cycles()
    inputs = comparer.digest_inputs(task, "clinic", labels.get(population), cycles.get(population))
    if inputs is None:
        return None
    return comparer.compare(task, model, "clinic", inputs=inputs, now=datetime.now(UTC))


def test_a_population_is_compared_and_stored(store: Store, model: Model):
    assert compared(store, model) is None
    drawn = draw(BALANCED, 600, seed=2)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids[:300], list(drawn.labels[:300]))
    cycle = judge(store, model, 0.8)
    found = compared(store, model)
    assert (found.newest.estimated.cycle, found.newest.realised.samples) == (cycle.id, 300)
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits[:300]).decisions
    costs = np.array(COSTS)[drawn.labels[:300], made]
    assert found.newest.realised.metrics["EC"].value == pytest.approx(costs.mean())
    assert (found.calibration_drift.rejected, found.selection.rejected) == (False, False)
    assert found.swaps == ()
    stored = store.performance.get(model.id, "clinic")
    assert stored.to_document() == found.to_document()


def test_only_changed_inputs_are_compared_again(store: Store, model: Model, monkeypatch: pytest.MonkeyPatch):
    drawn = draw(BALANCED, 90, seed=2)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids[:40], list(drawn.labels[:40]))
    first = compared(store, model)
    again = compared(store, model)
    assert again.computed_at == first.computed_at
    for change in (
        lambda: label(store, ids[40:50], list(drawn.labels[40:50])),
        lambda: judge(store, model, 0.8),
        lambda: monkeypatch.setenv("LIFELONG_LABEL_ERROR_RATE", "0.01"),
    ):
        change()
        renewed = compared(store, model)
        assert renewed.computed_at > first.computed_at
        first = renewed


def test_labels_of_one_class_only_are_noticed(store: Store, model: Model):
    drawn = draw(BALANCED, 600, seed=2)
    ids = predict(store, model, "clinic", drawn)
    chosen = np.flatnonzero(drawn.labels == 2)
    label(store, [ids[row] for row in chosen], list(drawn.labels[chosen]))
    found = compared(store, model)
    assert found.selection.rejected


def test_probabilities_that_labels_contradict_are_noticed(store: Store, model: Model):
    drawn = draw(BALANCED, 600, seed=2)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids, list((drawn.labels + (np.arange(600) % 3 == 0)) % 3))
    found = compared(store, model)
    assert found.calibration_drift.rejected


def test_days_before_the_newest_thirty_are_left_out_and_swaps_within_are_named(store: Store, model: Model):
    drawn = draw(BALANCED, 60, seed=2)
    predict(store, model, "clinic", drawn)
    now = datetime.now(UTC)
    judge(store, model, 0.7, due_at=now - 31 * DAY)
    judge(store, model, 0.8, due_at=now - 5 * DAY)
    judge(store, model, 0.9, due_at=now)
    head: PostProcessingHead = store.heads.get(model.reference, 1).head
    store.heads.publish(model.reference, head, environment="clinic", actor="tests")
    found = compared(store, model)
    values = [day.estimated.metrics["AC"].value for day in found.days if day.estimated is not None]
    assert values == [0.8, 0.9]
    assert [swap.head_version for swap in found.swaps] == [2]


def test_deleted_labels_empty_the_comparison(store: Store, model: Model):
    group = b"g" * 16
    ids = predict(store, model, "clinic", draw(BALANCED, 3, seed=2), groups=[group] * 3)
    label(store, ids, [0, 1, 2])
    found = compared(store, model)
    assert found.selection is None
    assert found.calibration_drift is None
    judge(store, model, 0.8, due_at=logged_at(ids[0]) - 40 * DAY)
    store.erasure.erase([group], actor="tests")
    assert compared(store, model) is not None  # the old estimate is all that is left
    emptied = store.performance.get(model.id, "clinic")
    assert [day.realised for day in emptied.days] == [None]


def test_a_label_sent_with_its_labelling_probability_weighs(store: Store, model: Model):
    drawn = draw(BALANCED, 90, seed=2)
    ids = predict(store, model, "clinic", drawn)
    made = store.heads.get(model.reference, 1).head.apply(drawn.logits).decisions
    is_right = made == drawn.labels
    store.labels.record(
        [
            NewLabel(one, int(true), propensity=0.2 if right else 1.0)
            for one, true, right in zip(ids, drawn.labels, is_right, strict=True)
        ]
    )
    found = compared(store, model)
    assert found.heads[0].realised is None  # no estimate to compare with
    right, wrong = 5 * is_right.sum(), (~is_right).sum()
    assert found.days[0].realised.metrics["AC"].value == pytest.approx(right / (right + wrong))
