"""Posteriors of a window, recalibrated on its labelled samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Floats, Integers, softmax
from lifelong_core.deploy.numerics.newton import minimize_convex
from lifelong_core.deploy.numerics.scores import one_hot

FOLDS = 5
_SLOPE_SPREAD = 0.5
_BIAS_SPREAD = 1.0
"""Standard deviations of slope and biases beforehand; half and twice as much give the same widths within 2 %."""
_SMALLEST = 1e-6
_LARGEST_BIAS = 20.0


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
    scores = np.log(np.maximum(posteriors, _SMALLEST))
    scores -= scores.mean(axis=1, keepdims=True)
    keys = np.arange(sample.size) if groups is None else np.unique(groups[sample], return_inverse=True)[1]
    folds = keys % FOLDS
    everywhere, own = np.zeros_like(posteriors), np.empty((sample.size, posteriors.shape[1]))
    for fold in range(FOLDS):
        held = folds == fold
        problem = _Problem(scores[sample[~held]], one_hot(labels[~held], posteriors.shape[1]))
        parameters = problem.solve()
        fitted = softmax(parameters[0] * scores + parameters[1:])
        everywhere += fitted / FOLDS
        own[held] = fitted[sample[held]]
    everywhere[sample] = own
    return Recalibrated(everywhere, own)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Penalised log loss of slope and biases, parameters (1 + C,)."""

    scores: Floats
    classes: Floats

    def solve(self) -> Floats:
        count = self.scores.shape[1]
        unchanged = self._unchanged
        lower = np.concatenate([[0.0], np.full(count, -_LARGEST_BIAS)])
        upper = np.concatenate([[10.0], np.full(count, _LARGEST_BIAS)])
        return minimize_convex(self, unchanged, lower, upper)

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
        return float(losses.sum() + self._penalties @ (parameters - self._unchanged) ** 2 / 2)

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        probabilities = softmax(parameters[0] * self.scores + parameters[1:])
        errors = probabilities - self.classes
        penalties = self._penalties
        gradient = np.concatenate([[(errors * self.scores).sum()], errors.sum(axis=0)])
        means = (probabilities * self.scores).sum(axis=1)
        hessian = np.diag(penalties)
        hessian[0, 0] += (probabilities * self.scores**2).sum() - (means**2).sum()
        across = (probabilities * (self.scores - means[:, np.newaxis])).sum(axis=0)
        hessian[0, 1:] += across
        hessian[1:, 0] += across
        hessian[1:, 1:] += np.diag(probabilities.sum(axis=0)) - probabilities.T @ probabilities
        return gradient + penalties * (parameters - self._unchanged), hessian
