"""Posteriors of a window, recalibrated on its labelled samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.numerics.newton import minimize_convex
from lifelong_core.deploy.numerics.rows import one_hot
from lifelong_core.values.arrays import Floats, Integers, softmax

FOLDS = 5
_SLOPE_SPREAD = 0.5
_BIAS_SPREAD = 1.0
"""Standard deviations of slope and biases beforehand; half and twice as much give the same widths within 2 %."""
_SMALLEST = 1e-6
_LARGEST_BIAS = 20.0
_LARGEST_SLOPE = 10.0


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Posteriors of a window; no sample's posterior knows its own label."""

    all: Floats
    """shape (N, C)"""
    labelled: Floats
    """shape (m, C), the rows of the labelled samples"""


def recalibrate(
    posteriors: Floats, sample: Integers, labels: Integers, groups: NDArray[np.generic] | None
) -> Recalibrated:
    """Recalibrate posteriors by a slope and a bias per class of their logarithms, cross-fitted over the labelled
    samples.

    A moved class or scaled logits so cost little precision (cross-prediction, Zrnic and Candes 2024). With few labels
    the parameters stay close to those that change nothing; with fewer than two per fold the posteriors stay as they
    are.

    Args:
        posteriors: shape (N, C).
        sample: shape (m,), indices of the labelled samples.
        labels: shape (m,).
        groups: shape (N,); a group is in one fold.
    """
    if sample.size < 2 * FOLDS:
        return Recalibrated(posteriors, posteriors[sample])
    scores = log_scores(posteriors)
    keys = np.arange(sample.size) if groups is None else np.unique(groups[sample], return_inverse=True)[1]
    folds = keys % FOLDS
    everywhere, own = np.zeros_like(posteriors), np.empty((sample.size, posteriors.shape[1]))
    for fold in range(FOLDS):
        held = folds == fold
        parameters = fit_slope_and_biases(scores[sample[~held]], labels[~held])
        fitted = softmax(parameters[0] * scores + parameters[1:])
        everywhere += fitted / FOLDS
        own[held] = fitted[sample[held]]
    everywhere[sample] = own
    return Recalibrated(everywhere, own)


def log_scores(probabilities: Floats) -> Floats:
    """Logarithms of probabilities (N, C), centred per row; those below 1e-6 count as 1e-6."""
    scores = np.log(np.maximum(probabilities, _SMALLEST))
    return scores - scores.mean(axis=1, keepdims=True)


def fit_slope_and_biases(scores: Floats, labels: Integers, weights: Floats | None = None) -> Floats:
    """Slope and biases that fit softmax(slope * scores + biases) to labels, shape (1 + C,).

    By log loss, with normal distributions of slope and biases around 1 and 0 beforehand, so that few labels change
    little and separable ones give finite parameters.
    """
    count = scores.shape[1]
    problem = _Problem(scores, one_hot(labels, count), np.ones(len(scores)) if weights is None else weights)
    unchanged = np.concatenate([[1.0], np.zeros(count)])
    lower = np.concatenate([[0.0], np.full(count, -_LARGEST_BIAS)])
    upper = np.concatenate([[_LARGEST_SLOPE], np.full(count, _LARGEST_BIAS)])
    return minimize_convex(problem, unchanged, lower, upper)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Penalised log loss of slope and biases, parameters (1 + C,)."""

    scores: Floats
    classes: Floats
    weights: Floats

    @property
    def _unchanged(self) -> Floats:
        return np.concatenate([[1.0], np.zeros(self.scores.shape[1])])

    @property
    def _penalties(self) -> Floats:
        return np.concatenate([[_SLOPE_SPREAD**-2], np.full(self.scores.shape[1], _BIAS_SPREAD**-2)])

    def loss(self, parameters: Floats) -> float:
        scores = parameters[0] * self.scores + parameters[1:]
        scores -= scores.max(axis=1, keepdims=True)
        losses = np.log(np.exp(scores).sum(axis=1)) - (scores * self.classes).sum(axis=1)
        return float(self.weights @ losses + self._penalties @ (parameters - self._unchanged) ** 2 / 2)

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        probabilities = softmax(parameters[0] * self.scores + parameters[1:])
        weights = self.weights[:, np.newaxis]
        errors = (probabilities - self.classes) * weights
        weighted = probabilities * weights
        penalties = self._penalties
        gradient = np.concatenate([[(errors * self.scores).sum()], errors.sum(axis=0)])
        means = (probabilities * self.scores).sum(axis=1)
        hessian = np.diag(penalties)
        hessian[0, 0] += (weighted * self.scores**2).sum() - self.weights @ means**2
        across = (weighted * (self.scores - means[:, np.newaxis])).sum(axis=0)
        hessian[0, 1:] += across
        hessian[1:, 0] += across
        hessian[1:, 1:] += np.diag(weighted.sum(axis=0)) - weighted.T @ probabilities
        return gradient + penalties * (parameters - self._unchanged), hessian
