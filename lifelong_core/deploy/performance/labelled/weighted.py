"""Performance on labelled samples alone: weights, groups and wrong labels."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level, as_whole_number
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.performance.derived_metrics import (
    MetricGradients,
    metric_gradients,
    metric_intervals,
)
from lifelong_core.deploy.performance.labelled.estimate import (
    LabelledEstimate,
    MetricSpread,
    as_inclusion_probabilities,
    clustered_covariance,
    costs_of_decisions,
    effective_number,
)
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_column,
    as_groups,
    as_labels,
    as_parameter,
)
from lifelong_core.values.errors import InvalidInputError

_LARGEST_ERROR_RATE = 0.5
_UNSEEN = 4.0
"""Samples with independent class and decision, the least that the variances count: without a single error among few
labels, the error rate is not exactly 0 (Agresti and Coull 1998)."""


def weighted_estimate(
    decisions: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int,
    costs: ArrayLike | None = None,
    metrics: Sequence[str] = ("AC", "EC"),
    propensities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    error_rates: ArrayLike | None = None,
    beta: float = 1.0,
    confidence: float = 0.95,
) -> LabelledEstimate:
    """Performance in the population from labelled samples, with intervals.

    Wrong labels: of the samples of class i, at most the share error_rates[i] has another label, any label and whichever
    samples they are, also those on which the label repeats a wrong decision. The interval reaches from the lower bound
    at the least favourable wrong labels to the upper bound at the most favourable ones.

    Args:
        decisions: shape (m,), 0..D-1, m >= 1.
        labels: shape (m,), true classes.
        classes: number of classes C.
        costs: shape (C, D); None: 0-1 costs, with D = C + 1 where a decision abstains.
        metrics: acronyms of METRICS that count decisions.
        propensities: shape (m,), in (0, 1]: probability with which each sample was chosen for labelling (up to a
            common factor); None: equal.
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        error_rates: shape (C,) or one number, in 0..0.5: largest share of the labels of each class that are wrong; the
            intervals cover the performance against the true classes for all rates up to these. None: no label is
            wrong.
        beta: of F_beta.
        confidence: nominal coverage of each interval.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    level = as_level(confidence, "confidence")
    count = as_whole_number(classes, 2, 1_000_000, field="classes")
    true = as_labels(labels, classes=count)
    decided = as_labels(decisions, classes=count + 1, field="decisions")
    as_column(decided, samples=true.size, field="decisions", what="decision")
    if true.size == 0:
        raise InvalidInputError("expected at least one labelled sample.", field="labels")
    matrix = costs_of_decisions(costs, decided, count)
    weights = np.ones(true.size)
    if propensities is not None:
        weights = 1 / as_inclusion_probabilities(propensities, true.size)
    keys = as_groups(groups, samples=true.size)
    rates = _error_rates(error_rates, count)
    confusion = (one_hot(true, count) * weights[:, np.newaxis]).T @ one_hot(decided, matrix.shape[1])
    confusion /= confusion.sum()
    gradients = metric_gradients(confusion, metrics, matrix, beta=beta)
    number = effective_number(weights, keys)
    variances = _variances(gradients, true, decided, weights, keys)
    variances = np.maximum(variances, _unseen_variances(gradients, confusion, number))
    freedom = max(number - 1, 1.0)
    estimates = metric_intervals(gradients, variances, degrees_of_freedom=freedom, confidence=level)
    if rates.any():
        estimates = _widened(
            estimates,
            gradients,
            confusion,
            rates,
            lambda moved: metric_gradients(moved, metrics, matrix, beta=beta).values,
        )
    spreads = {
        name: MetricSpread(variance, 0.0, freedom)
        for name, variance in zip(gradients.names, variances.tolist(), strict=True)
    }
    return LabelledEstimate(
        method="weighted",
        estimates=estimates,
        spreads=spreads,
        bounds=gradients.bounds_by_name,
        confusion_matrix=confusion,
        confidence=level,
        target="population",
        samples=true.size,
        labelled=true.size,
        effective_labelled=number,
    )


def _error_rates(values: ArrayLike | None, classes: int) -> Floats:
    rates = as_parameter(0.0 if values is None else values, field="error_rates")
    if rates.shape not in ((), (classes,)):
        raise InvalidInputError(f"expected one number or shape ({classes},).", field="error_rates")
    if (rates < 0).any() or (rates > _LARGEST_ERROR_RATE).any():
        raise InvalidInputError(f"expected numbers in 0..{_LARGEST_ERROR_RATE:g}.", field="error_rates")
    return np.broadcast_to(rates, (classes,))


def _variances(
    metrics: MetricGradients,
    labels: Integers,
    decisions: Integers,
    weights: Floats,
    groups: np.ndarray | None,
) -> Floats:
    """Variance of each metric by the influences of the samples, shape (K,)."""
    influences = metrics.gradients[:, labels, decisions] * (weights / weights.sum())
    return np.array(
        [clustered_covariance(row[:, np.newaxis], groups)[0, 0] for row in influences], dtype=np.float64
    )


def _unseen_variances(metrics: MetricGradients, confusion: Floats, number: float) -> Floats:
    """Variance of each metric due to the cells that few labels may lack by chance, shape (K,)."""
    independent = np.outer(confusion.sum(axis=1), confusion.sum(axis=0))
    return np.einsum("kij,ij->k", metrics.gradients**2, independent) * _UNSEEN / number**2


def _widened(
    estimates: Mapping[str, EstimatedMetric],
    metrics: MetricGradients,
    confusion: Floats,
    rates: Floats,
    values_of: Callable[[Floats], Floats],
) -> dict[str, EstimatedMetric]:
    """Intervals moved by what wrong labels can change at most, downwards and upwards."""
    widened: dict[str, EstimatedMetric] = {}
    for index, name in enumerate(metrics.names):
        value, low, high = estimates[name]
        gradient, bounds = metrics.gradients[index], metrics.bounds[index].tolist()
        if not np.isfinite(gradient).all():
            widened[name] = EstimatedMetric(value, low, high)
            continue
        moves: list[float] = []
        for sign in (-1.0, 1.0):
            moved = _relabelled(confusion, sign * gradient, rates)
            exact = values_of(moved)[index] - value
            linear = float(((moved - confusion) * gradient).sum())
            # A metric that is not linear may be farther off at the end of the move, or undefined there.
            moves.append(sign * max(sign * linear, sign * exact if np.isfinite(exact) else 0.0, 0.0))
        widened[name] = EstimatedMetric(
            value, max(low + moves[0], bounds[0]), min(high + moves[1], bounds[1])
        )
    return widened


def _relabelled(confusion: Floats, gradient: Floats, rates: Floats) -> Floats:
    """The true confusion matrix with the largest value along the gradient that these error rates allow."""
    moved = confusion.copy()
    for true in np.flatnonzero(rates):
        # The class has at most its observed share and what is moved to it.
        budget = float(rates[true] / (1 - rates[true]) * confusion[true].sum())
        gains = gradient[true] - gradient
        gains[true] = 0.0
        for cell in np.argsort(-gains, axis=None).tolist():
            row, column = divmod(cell, gains.shape[1])
            if gains[row, column] <= 0 or budget <= 0:
                break
            mass = min(float(moved[row, column]), budget)
            moved[row, column] -= mass
            moved[true, column] += mass
            budget -= mass
    return moved
