"""Are the served probabilities still calibrated? A test on labelled samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.numerics.rows import member_sums, one_hot
from lifelong_core.deploy.numerics.simplex import tangent_basis
from lifelong_core.deploy.performance.labelled.estimate import as_inclusion_probabilities, effective_number
from lifelong_core.deploy.performance.labelled.recalibration import fit_slope_and_biases, log_scores
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_column, as_groups, as_labels, as_probabilities
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import f_tail

_SMALLEST_AXIS = 1e-6
_MANY = 1e9


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
