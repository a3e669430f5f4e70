"""Probabilities for other class shares, against Bayes' theorem."""

import numpy as np
import pytest
from scipy.stats import norm

from lifelong_core.metrics import corrected_probabilities
from lifelong_core.values.errors import InvalidInputError


def posterior(features, prevalence):
    """P(class | feature) of normally distributed features by Bayes' theorem."""
    joint = np.stack([share * norm.pdf(features, loc=k) for k, share in enumerate(prevalence)], axis=1)
    return joint / joint.sum(axis=1, keepdims=True)


def test_they_are_the_posteriors_of_the_other_population():
    features = np.linspace(-4, 6, 50)
    given, wanted = [0.2, 0.3, 0.5], [0.9, 0.09, 0.01]
    found = corrected_probabilities(posterior(features, given), given=given, wanted=wanted)
    np.testing.assert_allclose(found, posterior(features, wanted), rtol=1e-9)


def test_a_class_that_is_not_wanted_gets_none():
    found = corrected_probabilities([[0.2, 0.8], [0.0, 1.0]], given=[0.5, 0.5], wanted=[1, 0])
    assert found.tolist() == [[1, 0], [1, 0]]


def test_a_class_without_a_share_cannot_be_corrected_to():
    with pytest.raises(InvalidInputError, match="without class 1") as error:
        corrected_probabilities([[0.2, 0.8]], given=[1, 0], wanted=[0.5, 0.5])
    assert error.value.field == "given"
