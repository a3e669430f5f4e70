"""Estimates of performance without labels: contract of all methods, references, limits."""

import json
from functools import cache

import numpy as np
import pytest

from lifelong_core.deploy import (
    AdaptationPolicy,
    AdaptationReport,
    LabeledLogits,
    PerformanceEstimate,
    adapt,
    estimate_performance,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.deploy.performance.choice import choose_method
from lifelong_core.deploy.performance.estimate_performance import PERFORMANCE_METHODS
from lifelong_core.metrics import confusion_matrix, expected_cost
from lifelong_core.values.errors import InvalidInputError

METRICS = ("AC", "EC", "BA", "TPR", "PPV", "NPV", "F_beta", "MCC", "AUROC")
COSTS = np.array([[0.0, 1, 2, 0.4], [4, 0, 1, 0.4], [9, 1, 0, 0.4]])
"""the last decision is to abstain"""


def sample(counts, seed, *, scale=2.0, noise=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    logits = 2 * np.eye(len(counts))[labels] + rng.normal(scale=noise, size=(labels.size, len(counts)))
    return LabeledLogits(scale * logits, labels)


@cache
def fitted():
    return quantifier("auto").fit(sample([500, 300, 200], 10))


@cache
def head():
    return fit_head(fitted().calibration, COSTS)


@pytest.mark.parametrize("method", PERFORMANCE_METHODS)
def test_every_method_gives_all_metrics_with_intervals(method):
    window = sample([700, 200, 100], 1).logits
    found = estimate_performance(fitted(), window, head(), method=method, metrics=METRICS)
    assert found.confusion_matrix.shape == (3, 4)
    assert found.confusion_matrix.sum() == pytest.approx(1)
    assert (found.confusion_matrix >= 0).all()
    shares = np.bincount(head().apply(window).decisions, minlength=4) / len(window)
    if method not in ("rates", "matched", "auto"):
        assert found.confusion_matrix.sum(axis=0) == pytest.approx(shares)
    assert list(found.estimates)[:4] == ["AC", "EC", "BA", "TPR[0]"]
    for name, (value, low, high) in found.estimates.items():
        assert low <= value <= high, name
        # A threshold may judge every prediction of a class right, in each fold of the calibration set.
        assert high - low > 1e-4 or "ATC" in method, name
    assert found.estimates["EC"].value == pytest.approx((found.confusion_matrix * COSTS).sum())
    assert found.samples == 1000
    assert found.assumptions
    assert PerformanceEstimate.from_document(found.to_document()) == found


@pytest.mark.parametrize("method", ["matched", "posteriors", "rates"])
@pytest.mark.parametrize("counts", [[700, 200, 100], [100, 1700, 200], [50, 50, 900]])
def test_estimates_are_right_under_prevalence_shift(method, counts):
    window = sample(counts, 12)
    found = estimate_performance(fitted(), window.logits, head(), method=method, metrics=METRICS)
    decisions = head().apply(window.logits).decisions
    truth = confusion_matrix(window.labels, decisions, classes=3, decisions_count=4)
    accuracy, cost = found.estimates["AC"], found.estimates["EC"]
    assert accuracy.low <= np.mean(decisions == window.labels) <= accuracy.high
    assert accuracy.high - accuracy.low < 0.15
    assert cost.low <= expected_cost(truth, COSTS) <= cost.high


def test_only_the_matched_method_follows_scaled_logits():
    window = sample([600, 250, 150], 3)
    scaled = (window.logits * 0.4).astype(np.float32)
    accuracy = np.mean(head().apply(scaled).decisions == window.labels)
    errors = {
        method: abs(
            estimate_performance(fitted(), scaled, head(), method=method).estimates["AC"].value - accuracy
        )
        for method in ("matched", "posteriors")
    }
    assert errors["matched"] < 0.03
    assert errors["posteriors"] > 2 * errors["matched"]


def test_warnings_state_what_fails():
    window = sample([600, 250, 150], 4).logits
    moved = window + np.array([0, 3, 0], np.float32)
    codes = {one.code for one in estimate_performance(fitted(), moved, head()).warnings}
    assert "assumption_rejected" in codes
    assert "logits_rescaled" in {
        one.code for one in estimate_performance(fitted(), 2 * window, head()).warnings
    }
    assert "few_samples" in {one.code for one in estimate_performance(fitted(), window[:20], head()).warnings}
    assert estimate_performance(fitted(), window, head()).warnings == ()


@pytest.mark.parametrize("method", ["posteriors", "rates", "matched", "AC", "DoC", "ATC", "CS-TS"])
def test_a_summary_gives_the_estimate_of_its_rows(method):
    window = sample([1400, 400, 200], 5).logits
    groups = np.arange(2000) // 4
    summary = fitted().summarize(window[:900], groups[:900]) + fitted().summarize(window[900:], groups[900:])
    rows = estimate_performance(fitted(), window, head(), method=method, metrics=METRICS, groups=groups)
    merged = estimate_performance(fitted(), summary, head(), method=method, metrics=METRICS)
    for name, one in rows.estimates.items():
        assert merged.estimates[name].value == pytest.approx(one.value, abs=0.02), name
        width = one.high - one.low
        if "CS" not in method:
            assert merged.estimates[name].high - merged.estimates[name].low == pytest.approx(
                width, rel=0.2
            ), name


def test_groups_widen_the_interval():
    window = np.repeat(sample([210, 60, 30], 6).logits, 10, axis=0)
    groups = np.arange(3000) // 10
    alone = estimate_performance(fitted(), window, head(), method="posteriors").estimates["AC"]
    grouped = estimate_performance(fitted(), window, head(), method="posteriors", groups=groups).estimates[
        "AC"
    ]
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)


def test_one_class_of_a_metric_can_be_asked_for():
    window = sample([700, 200, 100], 7).logits
    found = estimate_performance(fitted(), window, head(), metrics=["PPV[2]", "AC"])
    assert list(found.estimates) == ["PPV[2]", "AC"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"method": "guess"}, "method"),
        ({"metrics": ["ECE"]}, "metrics"),
        ({"metrics": ["TPR[3]"]}, "metrics"),
        ({"confidence": 1.0}, "confidence"),
        ({"window": np.zeros((0, 3))}, "logits"),
        ({"window": np.full((4, 3), np.nan)}, "logits"),
        ({"window": np.zeros((4, 2))}, "logits"),
        ({"groups": [1]}, "groups"),
    ],
)
def test_illegal_arguments_are_named(changes, field):
    arguments = {"window": sample([7, 2, 1], 8).logits, "head": head()} | changes
    for method in ("AC", "rates"):
        with pytest.raises(InvalidInputError) as caught:
            estimate_performance(fitted(), **{"method": method, **arguments})
        assert caught.value.field == field


def test_a_head_of_other_classes_is_refused():
    other = fit_head(sample([50, 50], 9), [[0, 1], [1, 0]])
    with pytest.raises(InvalidInputError, match="classes"):
        estimate_performance(fitted(), sample([7, 2, 1], 8).logits, other)


def test_the_choice_is_deterministic_and_states_its_error():
    choice = choose_method(fitted())
    assert choice.errors == choose_method(fitted()).errors
    assert choice.method == "matched"
    assert 0 < choice.validated_error < 0.05


def test_calibration_sets_that_cannot_be_divided_have_no_validated_error():
    tiny = LabeledLogits([[2.0, 0], [3, 0], [0, 2]], [0, 0, 1])
    found = estimate_performance(tiny, sample([30, 70], 1).logits, fit_head(tiny, [[0, 1], [1, 0]]))
    assert found.validated_error is None
    assert found.method == "matched"


def test_a_cycle_reports_both_heads():
    window = sample([100, 1700, 200], 2)
    policy = AdaptationPolicy()
    report = adapt(fitted(), window.logits, head(), policy, performance_metrics=("EC", "TPR"))
    assert report.performance is not None
    assert report.candidate_performance is not None
    assert report.candidate is not None
    assert report.performance.head_digest == head().digest
    assert report.candidate_performance.head_digest == report.candidate.digest
    assert report.candidate_performance.estimates["EC"].value < report.performance.estimates["EC"].value
    for judged, found in (
        (head(), report.performance),
        (report.candidate, report.candidate_performance),
    ):
        cost = COSTS[window.labels, judged.apply(window.logits).decisions].mean()
        assert found.estimates["EC"].low <= cost <= found.estimates["EC"].high
    assert AdaptationReport.from_json(report.to_json()) == report
    assert adapt(fitted(), window.logits, head(), policy).performance is None


def test_a_cycle_of_a_small_window_has_an_estimate():
    report = adapt(
        fitted(), sample([20, 5, 5], 2).logits, head(), AdaptationPolicy(), performance_metrics=["AC"]
    )
    assert report.reasons[0].code == "window_too_small"
    assert report.performance is not None
    assert "few_samples" in {one.code for one in report.performance.warnings}


def test_an_infinite_metric_is_undefined_so_that_the_document_is_legal_json() -> None:
    labels = np.repeat([0, 1], 200)
    calibration = LabeledLogits(
        np.random.default_rng(0).normal(size=(400, 2)) + 12 * np.eye(2)[labels], labels
    )
    head = fit_head(calibration, [[0, 1], [1, 0]])
    found = estimate_performance(calibration, calibration.logits, head, metrics=["LR+", "AC"])
    assert np.isnan(found.estimates["LR+"].value)
    document = json.loads(json.dumps(found.to_document(), allow_nan=False))
    assert document["estimates"]["LR+"] == [None, None, None]
    assert PerformanceEstimate.from_document(document) == found


@pytest.mark.parametrize("method", [method for method in PERFORMANCE_METHODS if method != "auto"])
@pytest.mark.parametrize(
    "window",
    [np.ones((1, 3)) * [1, 2, 0], np.tile([[1, 2, 0]], (50, 1)), np.zeros((20, 3)), 1e30 * np.eye(3)],
    ids=["one row", "equal rows", "no information", "huge"],
)
def test_extreme_windows_have_an_estimate(method, window):
    found = estimate_performance(fitted(), window.astype(np.float32), head(), method=method, metrics=METRICS)
    for name, (value, low, high) in found.estimates.items():
        assert np.isnan(value) or low <= value <= high, name
    assert PerformanceEstimate.from_document(found.to_document()) == found


def test_a_class_of_one_calibration_sample_leaves_the_whole_range():
    data = sample([50, 1], 3)
    found = estimate_performance(
        data, sample([90, 10], 4).logits, fit_head(data, [[0, 1], [1, 0]]), method="VS"
    )
    assert found.estimates["AC"][1:] == (0, 1)


def test_a_head_is_held_out_after_a_match_too():
    data = sample([12, 12, 12], 5)
    own = fit_head(data, 1 - np.eye(3))
    direct = own.apply((2 * data.logits).astype(np.float32))
    held_out = held_out_output(data, own, factor=2.0)
    assert not np.array_equal(held_out.probabilities, direct.probabilities)
    other = fit_head(sample([40, 40, 40], 6), 1 - np.eye(3))
    assert held_out_output(data, other, factor=2.0) == other.apply((2 * data.logits).astype(np.float32))
