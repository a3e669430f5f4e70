import math

import numpy as np
import pytest
from scipy import stats

from lifelong_core.metrics.counting.confusion import confusion_matrix
from lifelong_core.metrics.counting.multiclass import (
    accuracies,
    accuracy,
    balanced_accuracies,
    expected_costs,
    matthews_correlations,
)
from lifelong_core.metrics.counting.one_versus_rest import precision, sensitivity
from lifelong_core.metrics.resampling.bootstrap import DELETIONS, bootstrap, bootstrap_confusions
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import EVERY, STACKED


def simulated(size, *, classes=3, right=0.7, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, size=size, p=np.arange(1, classes + 1) / sum(range(classes + 1)))
    return labels, np.where(rng.random(size) < right, labels, rng.integers(classes, size=size))


def test_replicates_are_confusion_matrices_of_as_many_samples():
    labels, decisions = simulated(200)
    resampled = bootstrap_confusions(labels, decisions, classes=3, replicates=4000)
    assert (resampled.observed == confusion_matrix(labels, decisions, classes=3)).all()
    assert (resampled.replicates.sum(axis=(1, 2)) == 200).all()
    shares = resampled.observed / 200
    counts = resampled.replicates.reshape(4000, 9)
    expected = 200 * (np.diag(shares.ravel()) - np.outer(shares, shares))
    error = np.sqrt(expected.diagonal() / 4000)
    assert (np.abs(counts.mean(axis=0) - 200 * shares.ravel()) <= 4.5 * error).all()
    assert np.abs(np.cov(counts.T, ddof=0) - expected).max() < 0.1 * expected.max()


def test_strata_keep_their_sizes():
    labels, decisions = simulated(200)
    resampled = bootstrap_confusions(labels, decisions, classes=3, stratified=True)
    assert (resampled.replicates.sum(axis=2) == np.bincount(labels)).all()
    assert resampled.replicates[:, 0, 0].std() > 0
    assert len(resampled.left_out) == 3


def test_groups_are_drawn_together():
    """The same as putting the samples of the drawn patients together one by one."""
    labels, decisions = simulated(150)
    groups = np.random.default_rng(1).choice([f"patient {i}" for i in range(40)], size=150)
    resampled = bootstrap_confusions(labels, decisions, classes=3, groups=groups, replicates=20, rng=7)
    keys, rng = np.unique(groups), np.random.default_rng(7)
    for found in resampled.replicates:
        drawn = [np.flatnonzero(groups == keys[i]) for i in rng.integers(keys.size, size=keys.size)]
        rows = np.concatenate(drawn)
        assert (found == confusion_matrix(labels[rows], decisions[rows], classes=3)).all()
    (part,) = resampled.left_out
    expected = [confusion_matrix(labels[groups != key], decisions[groups != key], classes=3) for key in keys]
    order = np.lexsort(part.values.reshape(len(keys), -1).T)
    sorted_expected = np.array(expected)[np.lexsort(np.array(expected).reshape(len(keys), -1).T)]
    assert (part.values[order] == sorted_expected).all()


def test_groups_may_be_drawn_within_classes():
    labels = np.repeat([0, 1], [30, 60])
    decisions = np.where(np.arange(90) % 4, labels, 1 - labels)
    groups = np.arange(90) // 3
    resampled = bootstrap_confusions(labels, decisions, classes=2, groups=groups, stratified=True)
    assert (resampled.replicates.sum(axis=2) == [30, 60]).all()
    assert [len(part.values) for part in resampled.left_out] == [10, 20]


def test_two_models_are_judged_on_the_same_draws():
    """Given groups and seed: so the spread of their difference is far below that of either."""
    labels, decisions = simulated(300, right=0.6)
    changed = np.where(np.arange(300) % 30 == 0, labels, decisions)
    one, other = (
        bootstrap_confusions(labels, given, classes=3, groups=np.arange(300), rng=3).of(accuracies).replicates
        for given in (decisions, changed)
    )
    assert (one - other).std() < 0.4 * one.std()


@pytest.mark.parametrize("stratified", [False, True])
def test_counts_and_samples_agree(stratified):
    """Resampling counts is resampling samples: the same spread, and the same acceleration exactly."""
    labels, decisions = simulated(120)

    def statistic(chosen, decided):
        return precision(confusion_matrix(chosen, decided, classes=3))

    fast = bootstrap_confusions(labels, decisions, classes=3, stratified=stratified).of(precision)
    slow = bootstrap(statistic, [labels, decisions], strata=labels if stratified else None)
    assert fast.estimate == pytest.approx(slow.estimate)
    assert fast.acceleration() == pytest.approx(slow.acceleration())
    assert fast.replicates.std(axis=0) == pytest.approx(slow.replicates.std(axis=0), rel=0.12)
    for found, expected in zip(fast.intervals(), slow.intervals(), strict=True):
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.025)


def test_agrees_with_scipy():
    """By their own draws, and ours."""
    labels, decisions = simulated(60, classes=2)

    def statistic(chosen, decided):
        return matthews_correlations(confusion_matrix(chosen, decided, classes=2))

    expected = stats.bootstrap(
        (labels, decisions), statistic, paired=True, vectorized=False, n_resamples=2000, rng=0
    ).confidence_interval
    for found in (
        bootstrap_confusions(labels, decisions, classes=2, replicates=4000).of(matthews_correlations),
        bootstrap(statistic, [labels, decisions], replicates=2000),
    ):
        interval = found.interval()
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.03)


def test_blocks_estimate_the_same_acceleration():
    """More parts than are left out one by one."""
    labels, decisions = simulated(6000, classes=2, right=0.98)
    counted = bootstrap_confusions(labels, decisions, classes=2, replicates=1)
    in_blocks = bootstrap_confusions(labels, decisions, classes=2, replicates=1, groups=np.arange(6000))
    assert len(in_blocks.left_out[0].values) == DELETIONS
    assert in_blocks.left_out[0].values.sum(axis=(1, 2)).tolist() == [5970] * DELETIONS
    expected, found = (data.of(accuracies).acceleration() for data in (counted, in_blocks))
    assert -0.03 < expected < -0.01
    assert found == pytest.approx(expected, abs=0.006)


def test_many_classes_are_left_out_in_blocks_too():
    rng = np.random.default_rng(0)
    labels, decisions = rng.integers(30, size=(2, 3000))
    resampled = bootstrap_confusions(labels, decisions, classes=30, replicates=5)
    assert len(resampled.left_out[0].values) == DELETIONS
    assert resampled.of(sensitivity).replicates.shape == (5, 30)


@pytest.mark.parametrize("decisions_count", [3, 4])
def test_every_counting_metric_has_intervals(decisions_count):
    """And none warns, though classes are absent from some replicates."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [12, 10, 1])
    decisions = np.where(rng.random(23) < 0.8, labels, decisions_count - 1)
    resampled = bootstrap_confusions(labels, decisions, classes=3, decisions_count=decisions_count)
    for name in EVERY:
        for found in resampled.of(STACKED[name]).intervals():
            if not math.isnan(found.estimate):
                assert found.low <= found.high, name
                assert 0 < found.replicates <= 1000, name


def test_metrics_with_parameters_have_intervals():
    labels, decisions = simulated(300)
    resampled = bootstrap_confusions(labels, decisions, classes=3)
    costs = np.array([[0, 1, 4], [1, 0, 1], [4, 1, 0]])
    found = resampled.of(lambda stack: expected_costs(stack, costs, prevalence=[0.6, 0.3, 0.1])).interval()
    assert 0 < found.low < found.estimate < found.high


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_cover_the_truth(method):
    """Of the balanced accuracy of a model whose sensitivities are known."""
    rng, inside = np.random.default_rng(0), []
    labels = np.repeat([0, 1], [60, 40])
    for _ in range(300):
        decisions = (rng.random(100) < np.where(labels == 1, 0.8, 0.15)).astype(int)
        resampled = bootstrap_confusions(
            labels, decisions, classes=2, replicates=300, stratified=True, rng=rng
        )
        interval = resampled.of(balanced_accuracies).interval(level=0.9, method=method)
        inside.append(interval.low <= 0.825 <= interval.high)
    assert 0.84 < np.mean(inside) < 0.95  # 0.9 is meant; 0.017 is the standard error


def test_groups_widen_the_interval_to_what_covers_the_truth():
    """All images of a patient are right or wrong together: samples alone are far too sure (FP4.3)."""
    rng, inside = np.random.default_rng(0), {"samples": [], "groups": []}
    groups = np.repeat(np.arange(40), 5)
    for _ in range(150):
        decisions = np.repeat(rng.random(40) < 0.75, 5).astype(int)
        for name, given in (("samples", None), ("groups", groups)):
            resampled = bootstrap_confusions(
                np.ones(200), decisions, classes=2, groups=given, replicates=200, rng=rng
            )
            interval = resampled.of(accuracies).interval(level=0.9)
            inside[name].append(interval.low <= 0.75 <= interval.high)
    assert np.mean(inside["samples"]) < 0.65
    assert 0.82 < np.mean(inside["groups"]) < 0.97


def test_generic_groups_are_drawn_together():
    groups = np.array([3, 1, 1, 2, 2, 2, 3])
    seen = []

    def record(values):
        seen.append(sorted(values.tolist()))
        return float(len(values))

    found = bootstrap(record, [groups], groups=groups, replicates=50)
    sizes = {1: 2, 2: 3, 3: 2}
    for values in seen:
        assert all(values.count(key) % size == 0 for key, size in sizes.items())
    assert sorted(found.left_out[0].values) == [4, 5, 5]
    assert found.estimate == 7


def test_generic_statistics_may_have_several_values():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2))
    found = bootstrap(lambda values: values.mean(axis=0), [rows], replicates=300)
    first, second = found.intervals(method="percentile")
    spread = 1.96 * rows.std(axis=0) / np.sqrt(50)
    assert first.high - first.low == pytest.approx(2 * spread[0], rel=0.2)
    assert second.high - second.low == pytest.approx(2 * spread[1], rel=0.2)


def test_the_seed_decides():
    labels, decisions = simulated(50)
    one, same, other = (
        bootstrap_confusions(labels, decisions, classes=3, replicates=5, rng=rng).replicates
        for rng in (1, np.random.default_rng(1), 2)
    )
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"labels": [0, 3]}, "labels"),
        ({"decisions": [0, 3]}, "decisions"),
        ({"decisions": [0]}, "decisions"),
        ({"groups": [1]}, "groups"),
        ({"groups": [1, 1], "stratified": True}, "groups"),
        ({"replicates": 0}, "replicates"),
        ({"labels": [], "decisions": []}, "labels"),
    ],
)
def test_bad_arguments_are_named(changed, field):
    with pytest.raises(InvalidInputError) as caught:
        bootstrap_confusions(**({"labels": [0, 1], "decisions": [0, 1], "classes": 2} | changed))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("samples", "changed", "field"),
    [
        ([], {}, "samples"),
        ([1.0], {}, "samples"),
        ([[1, 2], [1]], {}, "samples"),
        ([[1, 2]], {"strata": [1]}, "strata"),
        ([[1, 2]], {"strata": [1, 2], "groups": [1, 1]}, "groups"),
        ([[1, 2]], {"replicates": 0}, "replicates"),
    ],
)
def test_bad_arguments_of_the_generic_one_are_named(samples, changed, field):
    with pytest.raises(InvalidInputError) as caught:
        bootstrap(lambda *_: 0.0, samples, **changed)
    assert caught.value.field == field


def test_a_metric_of_one_matrix_is_refused():
    resampled = bootstrap_confusions([0, 1], [0, 1], classes=2)
    with pytest.raises(InvalidInputError):
        resampled.of(accuracy)
