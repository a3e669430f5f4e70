import math
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lifelong_core.metrics.computation import compute_metrics
from lifelong_core.metrics.counting.one_versus_rest import (
    f_beta,
    fall_out,
    miss_rate,
    negative_likelihood_ratio,
    negative_predictive_value,
    positive_likelihood_ratio,
    positive_share,
    precision,
    sensitivity,
    specificity,
    youden_index,
)
from lifelong_core.metrics.scores.at_target import (
    best_threshold,
    choose_threshold,
    metric_at_target,
    value_at_threshold,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled, simulated

LABELS = [1, 0, 1, 1, 0, 0]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]


def all_values(labels, scores, metric):
    """The metric of class 1 at every cut-off that makes a difference, by definition."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    values = []
    for threshold in [math.inf, *sorted(set(scores), reverse=True)]:
        decided = scores >= threshold
        rows = [[(decided & of).sum(), (~decided & of).sum()] for of in (labels == 1, labels != 1)]
        values.append(metric(np.array(rows, dtype=float))[0])
    return np.array(values)


@given(
    labelled(max_classes=2),
    st.sampled_from([specificity, precision, f_beta, negative_predictive_value, positive_likelihood_ratio]),
    st.sampled_from([sensitivity, specificity, precision]),
    st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]),
)
def test_is_the_best_value_among_the_cut_offs_that_reach_the_target(cases, metric, target_metric, target):
    labels, probabilities = cases
    assume(metric is not target_metric)
    found = metric_at_target(
        labels, probabilities, metric=metric, target_metric=target_metric, target=target
    )[1]
    values = all_values(labels, probabilities[:, 1], metric)
    reached = all_values(labels, probabilities[:, 1], target_metric) >= target
    expected = values[reached & ~np.isnan(values)]
    if expected.size == 0:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(expected.max(), abs=1e-12)


@given(labelled(max_classes=2), st.sampled_from([0.0, 0.2, 0.5]))
def test_error_rates_reach_a_target_from_above(cases, target):
    labels, probabilities = cases
    found = metric_at_target(labels, probabilities, metric=miss_rate, target_metric=fall_out, target=target)[
        1
    ]
    values = all_values(labels, probabilities[:, 1], miss_rate)
    reached = all_values(labels, probabilities[:, 1], fall_out) <= target
    expected = values[reached & ~np.isnan(values)]
    assert math.isnan(found) if expected.size == 0 else found == pytest.approx(expected.min(), abs=1e-12)


def test_a_target_that_equals_a_share_is_reached():
    labels = [1] * 20 + [0] * 3
    scores = np.linspace(1, 0, 23)
    threshold = choose_threshold(labels, scores, positive=1, metric=sensitivity, target=0.95)
    assert value_at_threshold(labels, scores, positive=1, threshold=threshold, metric=sensitivity) == 0.95


def test_just_reaches_the_target_unless_told_what_should_be_best():
    # Sensitivities are 1/3, 2/3 and 1 from 0.9, 0.7 and 0.6 on, the precision is highest at 0.9, then at 0.6.
    chosen = partial(choose_threshold, LABELS, SCORES, positive=1, metric=sensitivity)
    assert chosen(target=0.5) == 0.7
    assert chosen(target=0.5, best=precision) == 0.6
    assert chosen(target=0) == math.inf
    assert chosen(target=1) == 0.6


def test_among_equals_the_highest_youden_index_wins():
    # The specificity is 0.5 at 0.9, 0.8 and 0.7, and more is found at 0.7.
    labels, scores = [0, 1, 1, 0], [0.9, 0.8, 0.7, 0.1]
    assert choose_threshold(labels, scores, positive=1, metric=specificity, target=0.5) == 0.7


def test_the_cut_off_comes_from_the_split():
    labels, probabilities = simulated(400)
    here, there = (labels[:200], probabilities[:200]), (labels[200:], probabilities[200:])
    values = metric_at_target(*here, target=0.9, split=there)
    for k in range(3):
        threshold = choose_threshold(
            there[0], there[1][:, k], positive=k, metric=sensitivity, target=0.9, best=specificity
        )
        expected = value_at_threshold(
            here[0], here[1][:, k], positive=k, threshold=threshold, metric=specificity
        )
        assert values[k] == expected
    assert not np.array_equal(values, metric_at_target(*here, target=0.9))


def test_a_metric_that_says_the_same_as_its_target_just_reaches_it():
    labels, probabilities = [1, 1, 1, 0], [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]]
    assert metric_at_target(labels, probabilities, metric=sensitivity, target=0.6)[1] == pytest.approx(2 / 3)
    assert metric_at_target(labels, probabilities, metric=miss_rate, target=0.6)[1] == pytest.approx(1 / 3)


def test_a_target_that_no_cut_off_reaches_gives_nan():
    labels, scores = [0, 1], [0.9, 0.1]
    threshold = choose_threshold(labels, scores, positive=1, metric=precision, target=0.9)
    assert math.isnan(threshold)
    assert math.isnan(value_at_threshold(labels, scores, positive=1, threshold=threshold, metric=precision))


def test_is_undefined_without_a_case_of_the_class():
    probabilities = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]
    assert np.isnan(metric_at_target([0, 0, 0], probabilities, target=0.8)).all()
    np.testing.assert_array_equal(
        metric_at_target([0, 0, 0], probabilities, metric=precision, target=0.8), [1, np.nan]
    )
    assert np.isnan(metric_at_target([], np.empty((0, 2)), target=0.8)).all()


def test_scores_can_be_any_numbers():
    logits = np.log(SCORES)
    threshold = choose_threshold(LABELS, logits, positive=1, metric=sensitivity, target=0.5)
    assert threshold == np.log(0.7)
    low = value_at_threshold(
        LABELS, logits, positive=1, threshold=threshold, metric=negative_likelihood_ratio
    )
    assert low == pytest.approx((1 / 3) / (2 / 3))


def test_a_threshold_between_scores_counts_what_is_above():
    value = partial(value_at_threshold, LABELS, SCORES, positive=1, metric=precision)
    assert value(threshold=0.65) == value(threshold=0.7) == pytest.approx(2 / 3)
    assert value(threshold=-5) == 0.5
    assert math.isnan(value(threshold=math.inf))


@pytest.mark.parametrize(
    ("labels", "scores", "positive", "target", "field"),
    [
        ([0, 1], [0.5], 1, 0.5, "scores"),
        ([0, 1], [0.5, math.nan], 1, 0.5, "scores"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], 1, 0.5, "scores"),
        ([0, 1], ["a", "b"], 1, 0.5, "scores"),
        ([0, -1], [0.5, 0.5], 1, 0.5, "labels"),
        ([0, 1], [0.5, 0.5], 1, math.nan, "target"),
        ([0, 1], [0.5, 0.5], -1, 0.5, "positive"),
    ],
)
def test_bad_arguments_are_named(labels, scores, positive, target, field):
    with pytest.raises(InvalidInputError) as caught:
        choose_threshold(labels, scores, positive=positive, metric=sensitivity, target=target)
    assert caught.value.field == field


def test_a_split_with_other_classes_is_named():
    with pytest.raises(InvalidInputError) as caught:
        metric_at_target([0], [[0.5, 0.5]], target=0.8, split=([0], [[0.5, 0.25, 0.25]]))
    assert caught.value.field == "split"


def in_population(labels, scores, shares, positive=1):
    """Confusion matrices at every cut-off, the class first, in a population with these class shares."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    thresholds = [math.inf, *sorted(set(scores.tolist()), reverse=True)]
    rows = []
    for threshold in thresholds:
        rates = {k: (scores[labels == k] >= threshold).mean() for k in np.unique(labels)}
        others = [k for k in rates if k != positive]
        found = shares[positive] * rates[positive]
        alarms = sum(shares[k] * rates[k] for k in others)
        rest = sum(shares[k] for k in others)
        rows.append([[found, shares[positive] - found], [alarms, rest - alarms]])
    return thresholds, np.array(rows)


@given(
    labelled(max_classes=4),
    st.sampled_from([precision, negative_predictive_value, positive_share, sensitivity]),
    st.sampled_from([0.1, 0.3, 0.5, 0.8]),
    st.integers(0, 2**16),
)
def test_the_cut_off_for_other_class_shares_is_that_of_brute_force(cases, metric, target, seed):
    labels, probabilities = cases
    assume(np.unique(labels).size == probabilities.shape[1])
    shares = np.random.default_rng(seed).dirichlet(np.ones(probabilities.shape[1]))
    best = sensitivity if metric in (precision, positive_share) else specificity
    scores = probabilities[:, 1]
    given = {"positive": 1, "prevalence": shares}
    found = choose_threshold(labels, scores, metric=metric, target=target, best=best, **given)
    thresholds, confusions = in_population(labels, scores, shares)
    values, objective = metric(confusions)[:, 0], best(confusions)[:, 0]
    reached = values <= target + 1e-9 if metric is positive_share else values >= target - 1e-9
    if not reached.any():
        assert math.isnan(found)
        return
    at = thresholds.index(found)
    assert reached[at]
    assert objective[at] == pytest.approx(np.nanmax(objective[reached]))
    reported = value_at_threshold(labels, scores, threshold=found, metric=metric, **given)
    assert reported == pytest.approx(values[at], nan_ok=True)


@given(labelled(max_classes=3), st.sampled_from([f_beta, youden_index, precision]), st.integers(0, 2**16))
def test_the_best_cut_off_is_that_of_brute_force(cases, metric, seed):
    labels, probabilities = cases
    assume(np.unique(labels).size == probabilities.shape[1])
    shares = np.random.default_rng(seed).dirichlet(np.ones(probabilities.shape[1]))
    scores = probabilities[:, 1]
    found = best_threshold(labels, scores, positive=1, metric=metric, prevalence=shares)
    thresholds, confusions = in_population(labels, scores, shares)
    values = metric(confusions)[:, 0]
    assert values[thresholds.index(found)] == pytest.approx(np.nanmax(values))


def test_shares_of_the_given_cases_change_nothing():
    labels, probabilities = simulated(200, classes=2)
    shares = np.bincount(labels) / labels.size
    scores = probabilities[:, 1]
    given = {"positive": 1, "metric": precision, "target": 0.8, "best": sensitivity}
    found = choose_threshold(labels, scores, **given)
    assert choose_threshold(labels, scores, **given, prevalence=shares) == found
    assert best_threshold(labels, scores, positive=1, metric=f_beta) == best_threshold(
        labels, scores, positive=1, metric=f_beta, prevalence=shares
    )


def test_cases_of_a_class_that_does_not_occur_hide_no_cut_off():
    found = choose_threshold(
        [1, 2, 1, 0, 2],
        [0.9, 0.8, 0.7, 0.6, 0.5],
        positive=1,
        metric=sensitivity,
        target=1.0,
        best=specificity,
        prevalence=[0, 0.5, 0.5],
    )
    assert found == 0.7


def test_a_share_of_positives_is_reached_from_below():
    found = choose_threshold(LABELS, SCORES, positive=1, metric=positive_share, target=0.5, best=sensitivity)
    assert (np.array(SCORES) >= found).mean() == 0.5


def test_a_class_of_the_population_needs_a_case():
    given = {"positive": 1, "metric": sensitivity, "target": 0.5}
    with pytest.raises(InvalidInputError, match="no case of class 2"):
        choose_threshold(LABELS, SCORES, **given, prevalence=[0.2, 0.3, 0.5])
    with pytest.raises(InvalidInputError, match="share of each of 3 classes"):
        choose_threshold([0, 1, 2], [0.1, 0.2, 0.3], **given, prevalence=[0.5, 0.5])
    assert math.isnan(best_threshold([0, 0], [0.1, 0.2], positive=1, metric=sensitivity))


def test_a_share_of_positives_is_a_target_of_all_metrics():
    labels, probabilities = simulated(200, classes=2)
    found = compute_metrics(["TPR"], labels=labels, probabilities=probabilities, target=("PPR", 0.2))["TPR"]
    limit = np.sort(probabilities[:, 1])[::-1][39]  # 200 different scores
    assert found[1] == pytest.approx((probabilities[labels == 1, 1] >= limit).mean())
