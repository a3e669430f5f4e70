"""Are the served probabilities still calibrated? A test on labelled samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.numerics.newton import member_sums, minimize_convex, one_hot
from lifelong_core.deploy.numerics.simplex import tangent_basis
from lifelong_core.deploy.performance.labelled.estimate import as_inclusion_probabilities, effective_number
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_column,
    as_groups,
    as_labels,
    as_probabilities,
    softmax,
)
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import f_tail

_SMALLEST_AXIS = 1e-6
_MANY = 1e9

FOLDS = 5
_SLOPE_SPREAD = 0.5
_BIAS_SPREAD = 1.0
"""Standard deviations of slope and biases beforehand; half and twice as much give the same widths within 2 %."""
_SMALLEST = 1e-6
_LARGEST_BIAS = 20.0
_LARGEST_SLOPE = 10.0


@dataclass(frozen=True, eq=False)
class CalibrationDrift(ArrayValue):
    """Test of "the served probabilities are calibrated" against affine miscalibration."""

    statistic: float
    p_value: float
    level: float
    rejected: bool
    slope: float
    """by which the logarithms of the probabilities have to be multiplied: below 1, the head is too sure"""
    intercepts: Floats
    """shape (C,), sum 0: what has to be added to them; positive: the class is more frequent than the head says"""
    samples: int
    text: str
    """one sentence"""


def calibration_drift(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.01,
) -> CalibrationDrift:
    """Test the calibration of served probabilities on labelled samples.

    Score test of slope 1 and intercepts 0 in softmax(slope * log p + intercepts) (Cox 1958, for C classes): it needs no
    fit, so that it is valid with classes that have no label. The variance of the scores is that of calibrated
    probabilities; dependence within groups multiplies it by the design effect.

    Args:
        probabilities: shape (m, C), as served.
        labels: shape (m,), true classes.
        propensities: shape (m,), probability with which each sample was chosen for labelling; None: equal.
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        level: largest probability of a rejection where the probabilities are calibrated.

    Raises:
        InvalidInputError: a shape or a value does not fit, or there is no sample.
    """
    shares = as_probabilities(probabilities)
    samples, classes = shares.shape
    true = as_labels(labels, classes=classes)
    as_column(true, samples=samples, field="labels", what="label")
    if samples == 0:
        raise InvalidInputError("expected at least one labelled sample.", field="labels")
    weights = np.ones(samples)
    if propensities is not None:
        weights = 1 / as_inclusion_probabilities(propensities, samples)
    weights *= samples / weights.sum()
    keys = as_groups(groups, samples=samples)
    accepted = as_level(level, "level")
    statistic, degrees, freedom = _score_statistic(shares, true, weights, keys)
    p_value = 1.0 if degrees == 0 else f_tail(degrees, freedom, statistic / degrees)
    parameters = fit_slope_and_biases(log_scores(shares), true, weights)
    intercepts = parameters[1:] - parameters[1:].mean()
    rejected = p_value < accepted
    return CalibrationDrift(
        statistic=statistic,
        p_value=p_value,
        level=accepted,
        rejected=rejected,
        slope=float(parameters[0]),
        intercepts=intercepts,
        samples=samples,
        text=_sentence(float(parameters[0]), intercepts, p_value, accepted, samples),
    )


def _score_statistic(
    shares: Floats, labels: NDArray[np.int64], weights: Floats, groups: NDArray[np.generic] | None
) -> tuple[float, int, float]:
    """Statistic, approximately chi square, its degrees of freedom and those of its denominator."""
    logs = log_scores(shares)
    basis = tangent_basis(shares.shape[1])
    errors = one_hot(labels, shares.shape[1]) - shares
    scores = np.column_stack([(errors * logs).sum(axis=1), errors @ basis]) * weights[:, np.newaxis]
    means = (shares * logs).sum(axis=1, keepdims=True)
    squares = weights**2
    across = (shares * (logs - means) * squares[:, np.newaxis]).sum(axis=0) @ basis
    inner = np.diag(squares @ shares) - (shares * squares[:, np.newaxis]).T @ shares
    covariance = np.block(
        [
            [np.array([[squares @ (shares * (logs - means) ** 2).sum(axis=1)]]), across[np.newaxis]],
            [across[:, np.newaxis], basis.T @ inner @ basis],
        ]
    )
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(np.float64).tiny))
    sizes, axes = np.linalg.eigh(covariance / scale / scale[:, np.newaxis])
    kept = sizes > _SMALLEST_AXIS * max(float(sizes.max()), np.finfo(np.float64).tiny)
    whitened = scores / scale @ (axes[:, kept] / np.sqrt(sizes[kept]))
    statistic = float((whitened.sum(axis=0) ** 2).sum())
    if groups is None:
        return statistic, int(kept.sum()), _MANY
    sums = member_sums(whitened, np.unique(groups, return_inverse=True)[1])
    centred = sums - sums.mean(axis=0)
    design_effect = max(1.0, float((centred**2).sum()) / max(1, int(kept.sum())))
    return statistic / design_effect, int(kept.sum()), max(effective_number(weights, groups) - 1, 1.0)


def _sentence(slope: float, intercepts: Floats, p_value: float, level: float, samples: int) -> str:
    counted = f"{samples} labelled samples (p = {p_value:.2g})"
    if p_value >= level:
        return f"The probabilities are compatible with the labels of {counted}."
    k = int(np.argmax(np.abs(intercepts)))
    sure = "too sure" if slope < 1 else "not sure enough"
    often = "more" if intercepts[k] > 0 else "less"
    return (
        f"The probabilities are not calibrated on {counted}: slope {slope:.2f} ({sure}), and class {k} is {often}"
        f" frequent than they say ({intercepts[k]:+.2f} in their logarithms)."
    )


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
