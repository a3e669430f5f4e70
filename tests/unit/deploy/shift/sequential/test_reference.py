from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import stratified_folds
from lifelong_core.deploy.shift.betting import precision
from lifelong_core.deploy.shift.reference import ScoreReference
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError

PREVALENCE = np.array([0.6, 0.3, 0.1])
COSTS = 1 - np.eye(3)


def elsewhere(prevalence=PREVALENCE):
    """A head that was fitted on none of the calibration sets below."""
    return PostProcessingHead(0.7, np.log(prevalence), COSTS, prevalence, ("a", "b", "c"))


def test_mixes_the_class_means_of_a_head_from_elsewhere(population):
    data = population(3).draw([40, 30, 20], np.random.default_rng(0))
    scores = elsewhere().apply(data.logits).probabilities
    means = np.column_stack([scores[data.labels == k].mean(axis=0) for k in range(3)])
    reference = ScoreReference.of(data, elsewhere())
    np.testing.assert_allclose(reference.class_means, means)
    np.testing.assert_allclose(reference.expectation, means @ PREVALENCE)
    weights = (PREVALENCE / data.counts)[data.labels]
    np.testing.assert_allclose(reference.spread, np.cov(scores.T, aweights=weights, ddof=0))


def test_a_head_is_not_judged_by_the_samples_that_it_was_fitted_on(population):
    data = population(3).draw([20, 15, 10], np.random.default_rng(0))
    head = fit_head(data, COSTS, target_prevalence=PREVALENCE)
    folds = stratified_folds(data, 5)
    scores = np.empty((45, 3))
    for fold in range(5):
        rest = fit_head(data.select(folds != fold), COSTS, target_prevalence=PREVALENCE)
        scores[folds == fold] = rest.apply(data.logits[folds == fold]).probabilities
    means = np.column_stack([scores[data.labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(ScoreReference.of(data, head).class_means, means)
    assert np.abs(means - ScoreReference.of(data, elsewhere()).class_means).max() > 1e-3


def test_the_error_is_the_covariance_over_redrawn_calibration_sets(population):
    three, rng, head = population(3), np.random.default_rng(0), elsewhere()
    references = [ScoreReference.of(three.draw([150, 100, 60], rng), head) for _ in range(200)]
    real = np.cov(np.array([reference.expectation for reference in references]).T)
    claimed = np.mean([reference.error for reference in references], axis=0)
    assert 0.8 < np.trace(claimed) / np.trace(real) < 1.35
    assert np.abs(claimed - real).max() < 0.3 * real.max()


def test_a_group_of_equal_samples_counts_as_one(population):
    data = population(3).draw([40, 30, 20], np.random.default_rng(0))
    tripled = LabeledLogits(
        np.repeat(data.logits, 3, axis=0), np.repeat(data.labels, 3), np.repeat(np.arange(90), 3)
    )
    one, three = ScoreReference.of(data, elsewhere()), ScoreReference.of(tripled, elsewhere())
    for name in ("expectation", "class_means", "error", "degrees_of_freedom"):
        np.testing.assert_allclose(getattr(three, name), getattr(one, name))


def test_the_zone_holds_the_truth_for_nearly_all_draws(population):
    three, rng = population(3), np.random.default_rng(0)
    new = three.draw([6_000] * 3, rng)
    inside = []
    for _ in range(60):
        data = three.draw([60, 40, 20], rng)
        head = fit_head(data, COSTS, target_prevalence=PREVALENCE)
        reference = ScoreReference.of(data, head)
        scores = head.apply(new.logits).probabilities
        truth = np.column_stack([scores[new.labels == k].mean(axis=0) for k in range(3)]) @ PREVALENCE
        bets = np.vstack([np.eye(3), -np.eye(3), (truth - reference.expectation) @ precision(reference)])
        inside.append((bets @ (truth - reference.expectation) <= reference.tolls(bets, 0.0)).all())
    assert np.mean(inside) >= 0.95
    assert reference.tolls(np.eye(3), 0.0).max() < 0.2  # and is no excuse for seeing nothing


def known(reference):
    """The same without any doubt."""
    return replace(reference, error=np.zeros_like(reference.error))


@pytest.fixture
def reference(population):
    return ScoreReference.of(population(3).draw([80, 60, 40], np.random.default_rng(0)), elsewhere())


def test_the_tolerated_moves_cost_what_the_worst_of_them_brings(reference):
    bets = np.random.default_rng(1).normal(size=(50, 3))
    moves = np.array([np.eye(3)[a] - np.eye(3)[b] for a, b in permutations(range(3), 2)])
    worst = (bets @ reference.class_means @ (0.02 * moves).T).max(axis=1)
    np.testing.assert_allclose(known(reference).tolls(bets, 0.02), worst)


def test_tolls_are_tight_and_grow_with_the_length_of_the_bet(reference):
    bets = np.random.default_rng(1).normal(size=(50, 3))
    tolls = reference.tolls(bets, 0.01)
    np.testing.assert_allclose(reference.tolls(3 * bets, 0.01), 3 * tolls)
    assert (tolls > known(reference).tolls(bets, 0.01)).all()
    # Standard errors of the bets' expectations: the intervals are 99 % ones, for some or for all bets at once.
    errors = np.sqrt(np.einsum("jc,cd,jd->j", bets, reference.error, bets))
    ratio = reference.tolls(bets, 0.0) / errors
    assert ratio.min() > 2.5
    assert ratio.max() < 4.2


def test_the_nearest_point_lies_in_the_zone_and_is_near(reference):
    metric = precision(reference)
    deviations = np.random.default_rng(2).normal(size=(40, 3)) * 0.1
    deviations -= deviations.mean(axis=1, keepdims=True)
    points = reference.nearest(deviations, metric, 0.01)
    bets = np.random.default_rng(3).normal(size=(200, 3))
    errors = np.sqrt(np.einsum("jc,cd,jd->j", bets, reference.error, bets))
    support = known(reference).tolls(bets, 0.01) + errors * 4.2
    assert (bets @ points.T <= support[:, np.newaxis]).all()

    def distance(vectors):
        return np.einsum("kc,cd,kd->k", vectors, metric, vectors)

    assert (distance(deviations - points) < distance(deviations)).all()
    # No point of the zone is much nearer: at the nearest, none lies further along the way that is left.
    left = (deviations - points) @ metric
    further = reference.tolls(left, 0.01) - np.einsum("kc,kc->k", left, points)
    assert (further < 0.1 * distance(deviations)).all()


def test_the_error_contains_one_sample_more_of_each_class(population):
    """Transcription of what `ScoreReference.of` says, class by class."""
    data = population(3).draw([9, 6, 4], np.random.default_rng(0))
    scores = elsewhere().apply(data.logits).probabilities
    means = np.column_stack([scores[data.labels == k].mean(axis=0) for k in range(3)])
    expected = np.zeros((3, 3))
    for k, size in enumerate(data.counts):
        own = PREVALENCE[k] ** 2 / size * np.cov(scores[data.labels == k].T)
        for other in range(3):
            away = (np.eye(3)[k] if other == k else means[:, other]) - means[:, k]
            own += PREVALENCE[k] ** 2 / (size * (size + 1)) * np.outer(away, away) / 3
        expected += own
    reference = ScoreReference.of(data, elsewhere())
    np.testing.assert_allclose(reference.error, expected, atol=1e-12)


@pytest.mark.parametrize("assumed", [0.5, 1e-2, 1e-4])
def test_scores_that_all_agree_leave_a_doubt_that_shrinks_with_what_the_class_scores(assumed):
    """Of 50 samples each; the return of the class to a third is never taken for a doubt."""
    prevalence = np.array([1 - assumed, assumed])
    head = PostProcessingHead(1.0, np.log(prevalence), 1 - np.eye(2), prevalence, ("a", "b"))
    data = LabeledLogits(4 * np.eye(2)[np.repeat([0, 1], 50)], np.repeat([0, 1], 50))
    reference = ScoreReference.of(data, head)
    least, most = reference.class_means[1]
    doubt = reference.tolls(np.array([[0.0, 1.0]]), 0.0)[0]
    assert 0.2 / 50 < doubt / ((1 - assumed) * (most - least)) < 5 / 50


def test_a_class_with_one_sample_is_hardly_known(population):
    three, rng = population(3), np.random.default_rng(0)
    one = ScoreReference.of(three.draw([100, 100, 1], rng), elsewhere(np.array([0.4, 0.3, 0.3])))
    many = ScoreReference.of(three.draw([100, 100, 100], rng), elsewhere(np.array([0.4, 0.3, 0.3])))
    assert np.isfinite(one.tolls(np.eye(3), 0.01)).all()
    assert one.tolls(np.eye(3), 0.01)[2] > 10 * many.tolls(np.eye(3), 0.01)[2]
    # Where the head assumes next to none of it, the class does not matter.
    rare = ScoreReference.of(three.draw([100, 100, 1], rng), elsewhere(np.array([0.6, 0.3999, 0.0001])))
    assert rare.tolls(np.eye(3), 0.0).max() < 0.2


def test_says_what_is_missing(population):
    with pytest.raises(UnidentifiableError):
        ScoreReference.of(population(3).draw([10, 10, 0], np.random.default_rng(0)), elsewhere())
    with pytest.raises(InvalidInputError):
        ScoreReference.of(population(2).draw([10, 10], np.random.default_rng(0)), elsewhere())
