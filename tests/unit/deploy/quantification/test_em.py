"""MLLS, beyond the contract of all quantifiers."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_affine, quantifier
from lifelong_core.deploy.labeled import stratified_folds
from lifelong_core.deploy.quantification.em import FOLDS


@pytest.mark.parametrize("separation", [2.0, 12.0])
def test_crossfitted_scores_are_those_of_affine_scaling_without_the_fold(separation):
    """Also on separable data, where any temperature is as good as another once every probability is 0 or 1."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(4).repeat(2), rng.integers(4, size=200)])
    data = LabeledLogits(separation * np.eye(4)[labels] + rng.normal(size=(208, 4)), labels)
    partner = quantifier("MLLS").fit(data)._partner
    folds = stratified_folds(data, FOLDS)
    for fold in range(FOLDS):
        rest = data.select(folds != fold)
        expected = fit_affine(rest.logits, rest.labels).probabilities(data.logits[folds == fold])
        found = np.exp(partner.crossfitted[folds == fold])
        found /= found.sum(axis=1, keepdims=True)
        assert found == pytest.approx(expected, abs=1e-6)


def test_the_second_solution_solves_the_mean_posterior_equation():
    """A direct transcription: mean posterior of the window = mix of the classes' mean crossfitted posteriors."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([0, 1, 2], 200))
    data = LabeledLogits(2 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels)
    mlls = quantifier("MLLS").fit(data)
    rows = 2 * np.eye(3)[rng.choice(3, size=800, p=[0.6, 0.3, 0.1])] + rng.normal(size=(800, 3))
    features = mlls._features(rows.astype(np.float32))
    assumed = np.array([0.6, 0.3, 0.1])
    scores = np.log(features) + np.log(assumed / data.prevalence)
    own = mlls._partner.crossfitted + np.log(assumed / data.prevalence)
    posteriors, calibration = (
        np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (scores, own)
    )
    means = np.column_stack([calibration[labels == k].mean(axis=0) for k in range(3)])
    expected = np.linalg.solve(means, posteriors.mean(axis=0))
    assert expected.min() > 0
    assert mlls._partner.solve(np.log(features), np.ones(800), assumed) == pytest.approx(expected, abs=1e-9)
