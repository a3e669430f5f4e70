"""Affine scaling of logits: temperature and bias that minimise the importance-weighted cross entropy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.cross_entropy import AffineProblem, typical_size
from lifelong_core.deploy.checks import as_temperature
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.numerics.newton import affine_scores, minimize_convex, minimize_large
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    MANY_CLASSES,
    Floats,
    Integers,
    Logits,
    as_logits,
    as_parameter,
    as_prevalence,
    centre_rows,
    read_only,
    softmax,
)
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError

MINIMUM_SCALED_INVERSE = 1e-6
MAXIMUM_SCALED_INVERSE = 1e3
"""Bounds of (typical size of a centred logit) / temperature. Below the first bound the logits carry no information,
above the second every probability is 0 or 1. Data that some temperature separates perfectly have no optimum inside."""

ABSENT_BIAS = 1e3
"""Distance by which the score of a class without weight lies below the others: its probability is 0 in float64."""


@dataclass(frozen=True, eq=False)
class AffineCalibration(ArrayValue):
    """Affine scaling of logits (thesis Def. 6.8); with bias 0 it is temperature scaling (Def. 2.67).

    The probabilities are softmax(scores), and the scores are centred logits / temperature + bias.

    Examples:
        >>> AffineCalibration(2.0, [0.0, 0.5]).scores([[2.0, 0.0]]).tolist()
        [[0.5, 0.0]]
        >>> AffineCalibration(2.0, [0.0, 0.0]).probabilities([[2.0, 0.0]]).round(4).tolist()
        [[0.7311, 0.2689]]
    """

    temperature: float | Floats
    """positive; one number, or shape (C,) for one per class"""
    bias: Floats
    """shape (C,), zero mean when fitted: a constant would change nothing"""

    def __post_init__(self) -> None:
        """Check and freeze the parameters.

        Raises:
            InvalidInputError: a value is not finite, the temperature not positive, or the shapes do not fit.
        """
        bias = as_parameter(self.bias, field="bias")
        if bias.ndim != 1 or bias.size < 2:
            raise InvalidInputError(f"expected shape (C,) with C >= 2, got {bias.shape}.", field="bias")
        object.__setattr__(self, "temperature", as_temperature(self.temperature, classes=bias.size))
        object.__setattr__(self, "bias", read_only(bias))

    def probabilities(self, logits: ArrayLike) -> Floats:
        """Calibrated class probabilities, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return softmax(self.scores(logits))

    def scores(self, logits: ArrayLike) -> Floats:
        """Affine scores, shape (N, C): the logarithms of the probabilities up to a constant per row.

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return affine_scores(as_logits(logits, classes=self.bias.size), self.temperature, self.bias)


def fit_affine(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    target_prevalence: ArrayLike | None = None,
    bias: bool = True,
    per_class_temperature: bool = False,
) -> AffineCalibration:
    """Fit the affine scaling that minimises the cross entropy, weighted by importance (thesis Def. 6.8, section 6.1.3).

    The loss is sum_i w[y_i] * -log softmax(logits_i / temperature + bias)[y_i] / sum_i w[y_i] with weights
    w_k = target_prevalence[k] / share of class k among the labels. It is convex in inverse temperature and
    bias and is minimised to optimality. Bounds hold where there is no optimum: the temperature stays between
    a thousandth and a million times the typical size of a centred logit, and a class without weight (target
    prevalence 0, or no sample) gets a bias so low that its probability vanishes.

    Args:
        logits: shape (N, C).
        labels: shape (N,), true classes.
        target_prevalence: shape (C,), the prevalence to calibrate for; None: that of the labels.
        bias: False fits the temperature alone.
        per_class_temperature: one temperature per class instead of one for all.

    Raises:
        InvalidInputError: a shape or a value does not fit.
        UnidentifiableError: a class has a positive target prevalence but no sample (thesis section 6.1.3,
            assumption i).

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(3, size=600)
        >>> logits = 6 * np.eye(3)[labels] + 4 * rng.normal(size=(600, 3))  # too confident
        >>> fitted = fit_affine(logits, labels)
        >>> round(fitted.temperature, 2), fitted.bias.round(2).tolist()
        (2.74, [-0.13, -0.1, 0.23])
    """
    data = LabeledLogits(as_logits(logits), np.asarray(labels))
    weights = class_weights(data, target_prevalence)
    return fit_weighted(
        data.logits, data.labels, weights[data.labels], bias=bias, per_class_temperature=per_class_temperature
    )


def class_weights(data: LabeledLogits, target_prevalence: ArrayLike | None) -> Floats:
    """Importance weights of the classes, target prevalence / share in the data, shape (C,); 1 without a target.

    Raises:
        UnidentifiableError: a class has a positive target prevalence but no sample.
    """
    if target_prevalence is None:
        return np.ones(data.classes)
    target = as_prevalence(target_prevalence, classes=data.classes, field="target_prevalence")
    absent = (data.counts == 0) & (target > 0)
    if absent.any():
        raise UnidentifiableError(
            f"class {int(np.argmax(absent))} has target prevalence {target[np.argmax(absent)]:.3g} "
            "but no calibration sample.",
            field="target_prevalence",
            hint="Add labelled samples of this class, or set its target prevalence to 0.",
        )
    return np.divide(target, data.prevalence, out=np.zeros(data.classes), where=data.counts > 0)


def fit_weighted(
    logits: Logits,
    labels: np.ndarray,
    weights: Floats,
    *,
    bias: bool = True,
    per_class_temperature: bool = False,
    near: AffineCalibration | None = None,
) -> AffineCalibration:
    """Fit like `fit_affine`, with one weight per sample, shape (N,), not negative and not all zero.

    From a similar solution, `near`, a fit of many classes takes a fraction of the time; others do without.
    """
    classes = logits.shape[1]
    rows = centre_rows(logits)
    used = weights > 0
    present = np.bincount(labels[used], minlength=classes) > 0
    # Without a bias nothing can push a class without weight away: it stays in the softmax as it is.
    kept: Integers = np.flatnonzero(present if bias else np.ones(classes)).astype(np.int64)
    if kept.size == 1:
        # One class has all the weight: whatever the temperature, the bias alone is optimal.
        size = typical_size(rows)
        temperatures = np.full(classes, size, dtype=np.float64)
        lonely = _exclude(rows / size, np.zeros_like(temperatures), present)
        return AffineCalibration(temperatures if per_class_temperature else size, lonely)
    position = np.searchsorted(kept, labels[used])
    large = kept.size > MANY_CLASSES and not per_class_temperature
    problem = AffineProblem(
        rows if used.all() and kept.size == classes else rows[used][:, kept],
        position,
        weights[used],
        bias=bias or large,
        per_class_temperature=per_class_temperature,
        scale=typical_size(rows),
    )
    start, bounds = problem.start(), problem.bounds(MINIMUM_SCALED_INVERSE, MAXIMUM_SCALED_INVERSE)
    if large and not bias:
        for one in (start, *bounds):
            one[1:] = 0
    if large and near is not None and np.ptp(near.bias[kept]) < ABSENT_BIAS:
        start = problem.pack(near.temperature, near.bias[kept])
    parameters = (minimize_large if large else minimize_convex)(problem, start, *bounds)
    inverse, offsets = problem.unpack(parameters)
    all_inverse = np.full(classes, np.exp(np.mean(np.log(inverse))))
    all_inverse[kept] = inverse
    all_bias = np.zeros(classes)
    all_bias[kept] = offsets
    if bias and present.all():
        all_bias -= all_bias.mean()
    elif bias:
        all_bias = _exclude(rows * all_inverse, all_bias, present)
    return AffineCalibration(
        1 / all_inverse if per_class_temperature else float(1 / all_inverse[0]), all_bias
    )


def _exclude(scores: Floats, bias: Floats, present: np.ndarray) -> Floats:
    """Return the bias with absent classes below all others on every row of `scores`, and with zero mean."""
    absent = np.flatnonzero(~present)
    if absent.size:
        best = (scores + bias)[:, present].max(axis=1)
        lead = (scores[:, absent] - best[:, np.newaxis]).max(axis=0)
        bias = bias.copy()
        bias[absent] = -np.maximum(lead, 0) - ABSENT_BIAS
    return bias - bias.mean()
