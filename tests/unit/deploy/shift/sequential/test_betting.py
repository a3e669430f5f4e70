from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import fit_head
from lifelong_core.deploy.shift.betting import (
    LARGEST_STAKE,
    SHIFTS,
    BucketScores,
    fixed_bets,
    learned_bets,
    log_growth,
    precision,
)
from lifelong_core.deploy.shift.reference import ScoreReference

SCORES = np.array([[0.9, 0.06, 0.04], [0.1, 0.7, 0.2], [0.05, 0.15, 0.8], [0.3, 0.4, 0.3]])
"""All the scores that occur in a small world, with these probabilities:"""
PROBABILITIES = np.array([0.5, 0.2, 0.1, 0.2])
EXPECTATION = PROBABILITIES @ SCORES


def bucket(*groups):
    """One bucket; each group an array of scores, shape (m, 3)."""
    sums = np.array([group.sum(axis=0) for group in groups])
    sizes = [group.shape[0] for group in groups]
    return BucketScores(sum(sizes), sums.sum(axis=0), sums.T @ sums, max(sizes))


def bets(count=30, size=1.0, seed=0):
    return size * np.random.default_rng(seed).normal(size=(count, 3))


@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("samples", [1, 2, 3])
def test_no_bet_grows_on_average_while_the_mean_score_is_in_the_zone(size, samples):
    """Exactly, over all buckets that can come; the truth is where a bet's toll is just paid."""
    placed = bets(size=size)
    for move in permutations(range(4), 2):
        changed = PROBABILITIES + 0.05 * (np.eye(4)[move[0]] - np.eye(4)[move[1]])
        tolls = np.maximum(placed @ (changed @ SCORES - EXPECTATION), 0)
        expected = np.zeros(30)
        for drawn in product(range(4), repeat=samples):
            growth = log_growth(placed, tolls, EXPECTATION, bucket(*SCORES[list(drawn)][:, np.newaxis]))
            expected += changed[list(drawn)].prod() * np.exp(growth)
        assert (expected <= 1 + 1e-12).all()
        if size == 0.05:
            assert expected.max() > 0.9999  # and the bets are fair, not worthless


def test_a_bet_grows_where_the_mean_score_is_outside():
    changed = np.array([0.2, 0.6, 0.1, 0.1])
    towards = (changed @ SCORES - EXPECTATION)[np.newaxis]
    expected = sum(
        chance * np.exp(log_growth(towards, np.zeros(1), EXPECTATION, bucket(row[np.newaxis])))
        for chance, row in zip(changed, SCORES, strict=True)
    )
    assert expected > 1.01


@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
def test_samples_of_a_group_may_be_all_the_same(size):
    """A group of three equal samples and one of one: the dependence that is worst for independent bets."""
    placed = bets(size=size)
    expected = np.zeros(30)
    careless = np.zeros(30)
    for one, other in product(range(4), repeat=2):
        chance = PROBABILITIES[one] * PROBABILITIES[other]
        group, single = np.repeat(SCORES[[one]], 3, axis=0), SCORES[[other]]
        expected += chance * np.exp(log_growth(placed, np.zeros(30), EXPECTATION, bucket(group, single)))
        alone = bucket(*group[:, np.newaxis], single)
        careless += chance * np.exp(log_growth(placed, np.zeros(30), EXPECTATION, alone))
    assert (expected <= 1 + 1e-12).all()
    assert careless.max() > 1 + 1e-6  # taken as independent they would break the rule


def test_is_the_inequality_of_fan_grama_and_liu():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet([1, 1, 1], size=40)
    placed, tolls = bets(size=0.3), rng.uniform(0, 0.05, size=30)
    found = log_growth(placed, tolls, EXPECTATION, bucket(*rows[:, np.newaxis]), dispersion=1.7)
    for bet, toll, value in zip(placed, tolls, found, strict=True):
        ruin = bet @ EXPECTATION + toll - bet.min()
        scale = min(1, LARGEST_STAKE / ruin)
        payoffs = scale * (rows @ bet - EXPECTATION @ bet - toll)
        stake = scale * ruin
        curvature = (-np.log(1 - stake) - stake) / stake**2
        assert value == pytest.approx((payoffs - 1.7 * curvature * payoffs**2).sum())
        assert value <= np.log1p(payoffs).sum()


@given(
    st.lists(st.floats(-100, 100), min_size=3, max_size=3),
    st.integers(1, 10**9),
    st.floats(1, 10**6),
    st.floats(0, 1),
)
def test_a_bucket_just_at_the_expectation_never_grows(bet, samples, largest, toll):
    mean = np.array([0.5, 0.3, 0.2])
    exact = BucketScores(
        samples, samples * mean, samples * max(largest, 1) * np.outer(mean, mean), largest=largest
    )
    growth = log_growth(np.array([bet]), np.array([toll]), mean, exact)
    assert np.isfinite(growth).all()
    # Nothing but rounding of sums as large as the bucket.
    assert growth[0] <= 1e-12 * samples * max(np.abs(bet).max(), 1)


@given(st.integers(0, 3), st.floats(0.01, 1e6), st.integers(0, 1000))
def test_one_sample_never_costs_more_than_the_largest_stake(which, size, seed):
    growth = log_growth(bets(size=size, seed=seed), np.zeros(30), EXPECTATION, bucket(SCORES[[which]]))
    assert growth.min() >= np.log(1 - LARGEST_STAKE) - 1e-9


@given(st.floats(1, 1000), st.integers(0, 100))
def test_dispersion_only_tempers(dispersion, seed):
    rows = SCORES[np.random.default_rng(seed).integers(4, size=20)][:, np.newaxis]
    placed, tolls = bets(seed=seed), np.zeros(30)
    plain = log_growth(placed, tolls, EXPECTATION, bucket(*rows))
    assert (log_growth(placed, tolls, EXPECTATION, bucket(*rows), dispersion) <= plain).all()


def reference_of(population, classes):
    data = population(classes).draw([400] * classes, np.random.default_rng(0))
    return ScoreReference.of(data, fit_head(data, 1 - np.eye(classes)))


@pytest.mark.parametrize(("classes", "sides"), [(2, 2), (3, 6), (10, 20)])
def test_fixed_bets_look_both_ways_in_every_class(population, classes, sides):
    found = fixed_bets(reference_of(population, classes), 0.01)
    assert found.shape == (sides * len(SHIFTS), classes)
    assert len(np.unique(found, axis=0)) == sides * len(SHIFTS)
    centred = found - found.mean(axis=1, keepdims=True)  # a constant of a bet changes nothing
    for k in range(classes):
        assert (centred[:, k] > 0).any()
        assert (centred[:, k] < 0).any()


def test_the_precision_inverts_the_spread_where_scores_can_differ(population):
    reference = reference_of(population, 4)
    differences = np.eye(4) - 0.25
    np.testing.assert_allclose(precision(reference) @ reference.spread, differences, atol=1e-9)


def test_learned_bets_follow_what_lies_outside_the_zone(population):
    reference = reference_of(population, 3)
    recent = np.array([[0.10, -0.06, -0.04], [0.001, -0.001, 0.0], [0.0, 0.0, 0.0]])
    found, tolls = learned_bets(reference, precision(reference), recent, 0.01)
    assert found[0] @ recent[0] > tolls[0] > 0
    assert not found[1:].any()
    assert not tolls[1:].any()
    # With all doubt gone and nothing tolerated, its direction is that of the deviation over the variance.
    sure = ScoreReference(
        reference.expectation,
        reference.class_means,
        reference.spread,
        np.zeros((3, 3)),
        reference.degrees_of_freedom,
    )
    found, _ = learned_bets(sure, precision(sure), recent[:1], 0.0)
    length = (reference.spread @ found[0]) / recent[0]
    np.testing.assert_allclose(length, length[0], atol=1e-9)
    assert 0.5 < length[0] <= 1


def rare(score, assumed=1e-3, error=0.0):
    """A head that is sure of its first class; the second scores so much whenever it comes, the first nothing."""
    means = np.array([[1, 1 - score], [0, score]])
    expectation = means @ [1 - assumed, assumed]
    away = np.array([1, -1])
    return ScoreReference(
        expectation,
        means,
        assumed * (1 - assumed) * score**2 * np.outer(away, away),
        error * np.outer(away, away),
        np.full(2, 100.0),
    )


def growth_per_sample(bets, tolls, reference, prevalence):
    """On average, where the classes have this prevalence."""
    rows = reference.class_means.T
    growths = [
        log_growth(bets, tolls, reference.expectation, BucketScores(1, row, np.outer(row, row)))
        for row in rows
    ]
    return np.array(prevalence) @ growths


@pytest.mark.parametrize("score", [1.0, 0.3])
def test_a_learned_bet_on_a_class_that_was_hardly_assumed_is_no_longer_than_pays(score):
    """By the variance that is assumed it would be a hundred times too long, and lose."""
    reference = rare(score)
    recent = (reference.class_means @ [0.9, 0.1] - reference.expectation)[np.newaxis]
    found, tolls = learned_bets(reference, precision(reference), recent, 0.01)
    assert found.any()
    lengths = np.geomspace(1e-3, 1e3, 200)
    best = growth_per_sample(lengths[:, np.newaxis] * found, lengths * tolls, reference, [0.9, 0.1]).max()
    assert growth_per_sample(found, tolls, reference, [0.9, 0.1])[0] > 0.3 * best > 0


@pytest.mark.parametrize("assumed", [1e-2, 1e-3, 1e-6])
def test_some_fixed_bet_wins_at_the_return_of_a_class_that_was_hardly_assumed(assumed):
    """Even where the calibration set leaves doubts three quarters as large as the change of the mean score."""
    class_two = np.array([[0.0, 1.0]])
    change = 0.5 * (0.1 - assumed)
    error = (0.75 * change / rare(0.5, assumed, error=1.0).tolls(class_two, 0.0)[0]) ** 2
    reference = rare(0.5, assumed, error)
    placed = fixed_bets(reference, 0.01)
    tolls = reference.tolls(placed, 0.01)
    assert growth_per_sample(placed, tolls, reference, [0.9, 0.1]).max() > 1e-4
    assert growth_per_sample(placed, tolls, reference, [1 - assumed, assumed]).max() <= 0


def test_nothing_is_bet_on_scores_that_are_all_the_same():
    reference = rare(0.0)
    assert not fixed_bets(reference, 0.01).any()
    found, tolls = learned_bets(reference, precision(reference), np.array([[-1e-16, 1e-16]]), 0.01)
    assert not found.any()
    assert not tolls.any()
