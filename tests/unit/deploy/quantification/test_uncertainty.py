"""From influences to covariances, against transcriptions of the formulas and against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.quantification.uncertainty import (
    PSEUDO_SAMPLES,
    Clusters,
    Influence,
    combine,
)


def calibration_of(labels, groups=None):
    labels = np.asarray(labels)
    return LabeledLogits(np.eye(labels.max() + 1)[labels], labels, groups)


def influence_of(window, calibration, own=None):
    """Nothing comes from the calibration set unless `own` says so."""
    window = np.asarray(window, dtype=float)
    nothing = np.zeros((calibration.samples, window.shape[1]))
    return Influence(window, nothing, nothing if own is None else np.asarray(own, dtype=float))


def spread(window, calibration, *, own=None, counts=None, groups=None):
    window = np.asarray(window, dtype=float)
    counts = np.ones(len(window)) if counts is None else np.asarray(counts, dtype=float)
    clusters = None if groups is None else Clusters.of(np.asarray(groups))
    return combine(influence_of(window, calibration, own), calibration, counts, clusters)


BALANCED = calibration_of([0, 0, 0, 1, 1, 1, 1])


@given(
    member=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    seed=st.integers(0, 100),
)
def test_sums_of_members_are_those_of_a_loop(member, seed):
    member = np.unique(member, return_inverse=True)[1]
    values = np.random.default_rng(seed).normal(size=(member.size, 2))
    expected = [values[member == index].sum(axis=0) for index in range(member.max() + 1)]
    assert member_sums(values, member) == pytest.approx(np.array(expected))


def test_the_variance_of_a_mean_with_pseudo_samples():
    window = np.array([[1.0], [2.0], [4.0], [5.0]])
    found = spread(window, BALANCED)
    squares = ((window - 3) ** 2).sum()
    assert found.covariance[0, 0] == pytest.approx(squares / (4 + 2 * PSEUDO_SAMPLES) ** 2 * 4 / 3)
    assert found.effective_n == 4
    assert found.degrees_of_freedom.tolist() == [3]


def test_pseudo_samples_of_the_calibration_set_add_their_squares():
    pseudo = np.arange(7.0)[:, np.newaxis]
    influence = Influence(np.zeros((4, 1)), pseudo, np.zeros((7, 1)))
    found = combine(influence, BALANCED, np.ones(4), None)
    added = (pseudo[:3] ** 2).mean() + (pseudo[3:] ** 2).mean()
    assert found.covariance[0, 0] == pytest.approx(PSEUDO_SAMPLES * added / (4 + 2) ** 2 * 4 / 3)


def test_counts_are_repeated_rows():
    rows, counts = np.array([[1.0, -1.0], [2.0, 0.5], [4.0, 3.0]]), np.array([3, 1, 2])
    short = spread(rows, BALANCED, counts=counts)
    long = spread(np.repeat(rows, counts, axis=0), BALANCED)
    assert short.covariance == pytest.approx(long.covariance)
    assert short.degrees_of_freedom == pytest.approx(long.degrees_of_freedom)
    assert short.effective_n == long.effective_n == 6


def test_the_calibration_part_adds_the_variance_of_each_class_mean():
    own = np.array([1.0, 2.0, 3.0, 10.0, 10.0, 14.0, 14.0])[:, np.newaxis]
    found = spread(np.zeros((5, 1)), BALANCED, own=own)
    # A constant per class does not matter: only the scatter within the class does.
    expected = np.var([1, 2, 3], ddof=1) / 3 + np.var([10, 10, 14, 14], ddof=1) / 4
    assert found.covariance[0, 0] == pytest.approx(expected)


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite():
    window = np.array([[-1.0], [1.0], [3.0], [-3.0], [0.0]])
    own = np.array([1.0, 2.0, 3.0, 10.0, 10.0, 14.0, 14.0])[:, np.newaxis]
    found = spread(window, BALANCED, own=own)
    parts = np.array([20 / (5 + 2) ** 2 * 5 / 4, 1 / 3, 16 / 3 / 4])
    degrees = np.array([4, 2, 3])
    assert found.covariance[0, 0] == pytest.approx(parts.sum())
    assert found.degrees_of_freedom[0] == pytest.approx(parts.sum() ** 2 / (parts**2 / degrees).sum())


def test_without_any_spread_the_windows_degrees_remain():
    assert spread(np.zeros((5, 1)), BALANCED).degrees_of_freedom.tolist() == [4]


def test_a_single_sample_or_class_members_that_show_no_spread_leave_no_degrees():
    assert spread([[1.0]], BALANCED).degrees_of_freedom.tolist() == [0]
    assert spread(np.eye(2), calibration_of([0, 1])).degrees_of_freedom.tolist() == [0, 0]


def test_a_class_of_one_sample_is_given_the_spread_of_the_others():
    calibration = calibration_of([0, 0, 0, 1])
    found = spread(np.zeros((3, 1)), calibration, own=[[1.0], [2.0], [3.0], [50.0]])
    # Two degrees of freedom within class 0, so 2 / 2 = 1; the single sample's mean is as uncertain as a sample.
    assert found.covariance[0, 0] == pytest.approx(1 / 3 + 1)


def test_groups_add_up_before_they_are_squared():
    window = np.array([[1.0], [1.0], [-1.0], [-1.0], [2.0], [-2.0]])
    found = spread(window, BALANCED, groups=["a", "a", "b", "b", "c", "c"])
    assert found.covariance[0, 0] == pytest.approx((2**2 + 2**2 + 0) / (6 + 2) ** 2 * 3 / 2)
    assert found.effective_n == pytest.approx(6 / (8 / 12) if 8 / 12 > 1 else 6)
    assert found.degrees_of_freedom.tolist() == [2]


def test_the_design_effect_is_at_most_the_largest_group():
    """Two groups whose samples agree, of 1 and 5: the squared sums say more than 5 samples in one could."""
    window = np.array([[5.0], *[[-1.0]] * 5])
    found = spread(window, BALANCED, groups=[0, 1, 1, 1, 1, 1])
    squared_sums, squares = 25 + 25, 25 + 5
    assert found.effective_n == pytest.approx(6 / (squared_sums / squares))
    same = spread(np.full((6, 1), 3.0), BALANCED, groups=[0, 1, 1, 1, 1, 1])
    assert same.effective_n == pytest.approx(6 / 3)  # no spread at all: the mean size of a group
    extreme = spread(np.array([[1.0]] * 3 + [[-3.0]]), BALANCED, groups=[0, 0, 0, 1])
    assert extreme.effective_n == pytest.approx(4 / (18 / 12))
    opposed = spread(np.array([[1.0], [-1.0]] * 3), BALANCED, groups=[0, 0, 1, 1, 2, 2])
    assert opposed.effective_n == 6  # never more than there are samples


def test_a_few_groups_that_agree_are_not_as_sure_as_the_calibration_set():
    own = np.array([1.0, 2.0, 3.0, 10.0, 10.0, 14.0, 14.0])[:, np.newaxis]
    window = np.zeros((6, 1))
    alone, grouped = (
        spread(window, BALANCED, own=own),
        spread(window, BALANCED, own=own, groups=[0, 0, 0, 0, 1, 1]),
    )
    assert grouped.degrees_of_freedom.tolist() == [1]
    assert alone.degrees_of_freedom[0] > 3


def test_where_a_sample_of_the_groups_is_known_it_stands_for_all():
    rng = np.random.default_rng(0)
    window = np.repeat(rng.normal(size=(4000, 1)), 2, axis=0)
    groups = np.repeat(np.arange(4000), 2)
    everything = spread(window, BALANCED, groups=groups)
    known = np.arange(2000)
    part = Clusters(known, groups[known], np.ones(2000))
    sampled = combine(influence_of(window, BALANCED), BALANCED, np.ones(8000), part)
    assert sampled.covariance[0, 0] == pytest.approx(everything.covariance[0, 0], rel=0.1)
    assert sampled.degrees_of_freedom.tolist() == [999]
    assert part.sizes.tolist() == [2] * 1000


def test_calibration_groups_that_cross_classes_are_counted_together():
    groups = ["a", "b", "c", "a", "b", "c", "c"]
    calibration = calibration_of([0, 0, 0, 1, 1, 1, 1], groups)
    own = np.array([1.0, 2.0, 3.0, 10.0, 10.0, 14.0, 14.0])[:, np.newaxis]
    found = spread(np.zeros((50, 1)), calibration, own=own)
    sums = np.array([-1 / 3 - 2 / 4, 0 - 2 / 4, 1 / 3 + 4 / 4])
    assert found.covariance[0, 0] == pytest.approx((sums**2).sum() * 3 / 2)
    assert found.degrees_of_freedom.tolist() == [2]


def test_clusters_of_keys():
    clusters = Clusters.of(np.array(["b", "a", "b"]))
    assert clusters.group.tolist() == [1, 0, 1]
    assert clusters.sizes.tolist() == [1, 2]
    assert clusters.number == pytest.approx(9 / 5)
