"""Performance on labelled samples alone: weights, groups and wrong labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.checks import as_level, as_whole_number
from lifelong_core.deploy.numerics.newton import member_sums, one_hot
from lifelong_core.deploy.performance.derived_metrics import (
    MetricGradients,
    metric_gradients,
    metric_intervals,
)
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_column,
    as_costs,
    as_groups,
    as_labels,
    as_parameter,
    read_only,
)
from lifelong_core.values.errors import InvalidInputError

_LARGEST_ERROR_RATE = 0.5
_UNSEEN = 4.0
"""Samples with independent class and decision, the least that the variances count: without a single error among few
labels, the error rate is not exactly 0 (Agresti and Coull 1998)."""


Target: TypeAlias = Literal["population", "window"]
"""Target of an interval: performance in the population from which the window comes, or on the window's samples."""


class MetricSpread(NamedTuple):
    """Variance of an estimated metric, by source."""

    labels: float
    """because only some samples of the window have labels"""
    window: float
    """because the window is a sample of the population; 0 where the target is the window"""
    degrees_of_freedom: float
    """of the t distribution of the interval"""


@dataclass(frozen=True, eq=False)
class LabelledEstimate(ArrayValue):
    """Performance of decisions in a population or window, estimated with the labels of some samples."""

    method: Literal["difference", "combined", "weighted"]
    estimates: Mapping[str, EstimatedMetric]
    """by the keys of a PerformanceEstimate's `estimates`: "AC", "TPR[2]"; nan where a metric is undefined"""
    spreads: Mapping[str, MetricSpread]
    """by the same keys"""
    bounds: Mapping[str, tuple[float, float]]
    """by the same keys: least and largest possible value"""
    confusion_matrix: Floats
    """shape (C, D), shares of true class and decision; they sum to 1"""
    confidence: float
    """nominal coverage of each interval"""
    target: Target
    samples: int
    """samples in the window, with and without label; of method "weighted": those with label"""
    labelled: int
    """samples with label"""
    effective_labelled: float
    """equivalent number of labelled samples of equal weight, (sum w)^2 / sum w^2 (Kish 1965)"""
    cautions: tuple[str, ...] = ()
    """limits that the intervals do not include, as sentences"""

    def __post_init__(self) -> None:
        """Freeze the fields."""
        confusion = as_parameter(self.confusion_matrix, field="confusion_matrix")
        object.__setattr__(self, "confusion_matrix", read_only(confusion))
        object.__setattr__(self, "estimates", MappingProxyType(dict(self.estimates)))
        object.__setattr__(self, "spreads", MappingProxyType(dict(self.spreads)))
        object.__setattr__(self, "bounds", MappingProxyType(dict(self.bounds)))

    def to_document(self) -> dict[str, Any]:
        """The estimate as JSON values; undefined numbers are null."""
        return {
            "schema_version": 1,
            "method": self.method,
            "estimates": {
                name: [float(number) if np.isfinite(number) else None for number in three]
                for name, three in self.estimates.items()
            },
            "confusion_matrix": self.confusion_matrix.tolist(),
            "confidence": self.confidence,
            "target": self.target,
            "samples": self.samples,
            "labelled": self.labelled,
            "effective_labelled": self.effective_labelled,
            "cautions": list(self.cautions),
        }


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
    found = metric_gradients(confusion, metrics, matrix, beta=beta)
    number = effective_number(weights, keys)
    variances = _variances(found, true, decided, weights, keys)
    variances = np.maximum(variances, _unseen_variances(found, confusion, number))
    freedom = max(number - 1, 1.0)
    estimates = metric_intervals(found, variances, degrees_of_freedom=freedom, confidence=level)
    if rates.any():
        estimates = _widened(
            estimates,
            found,
            confusion,
            rates,
            lambda moved: metric_gradients(moved, metrics, matrix, beta=beta).values,
        )
    spreads = {
        name: MetricSpread(variance, 0.0, freedom)
        for name, variance in zip(found.names, variances.tolist(), strict=True)
    }
    return LabelledEstimate(
        method="weighted",
        estimates=estimates,
        spreads=spreads,
        bounds=found.bounds_by_name,
        confusion_matrix=confusion,
        confidence=level,
        target="population",
        samples=true.size,
        labelled=true.size,
        effective_labelled=number,
    )


def _error_rates(values: ArrayLike | None, classes: int) -> Floats:
    found = as_parameter(0.0 if values is None else values, field="error_rates")
    if found.shape not in ((), (classes,)):
        raise InvalidInputError(f"expected one number or shape ({classes},).", field="error_rates")
    if (found < 0).any() or (found > _LARGEST_ERROR_RATE).any():
        raise InvalidInputError(f"expected numbers in 0..{_LARGEST_ERROR_RATE:g}.", field="error_rates")
    return np.broadcast_to(found, (classes,))


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
    found: dict[str, EstimatedMetric] = {}
    for index, name in enumerate(metrics.names):
        value, low, high = estimates[name]
        gradient, bounds = metrics.gradients[index], metrics.bounds[index].tolist()
        if not np.isfinite(gradient).all():
            found[name] = EstimatedMetric(value, low, high)
            continue
        moves: list[float] = []
        for sign in (-1.0, 1.0):
            moved = _relabelled(confusion, sign * gradient, rates)
            exact = values_of(moved)[index] - value
            linear = float(((moved - confusion) * gradient).sum())
            # A metric that is not linear may be farther off at the end of the move, or undefined there.
            moves.append(sign * max(sign * linear, sign * exact if np.isfinite(exact) else 0.0, 0.0))
        found[name] = EstimatedMetric(value, max(low + moves[0], bounds[0]), min(high + moves[1], bounds[1]))
    return found


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


def as_inclusion_probabilities(values: ArrayLike, count: int) -> Floats:
    """Probabilities in (0, 1], one for each labelled sample.

    Raises:
        InvalidInputError: another shape, or a number that is no such probability.
    """
    found = as_parameter(as_column(values, samples=count, field="propensities"), field="propensities")
    if (found <= 0).any() or (found > 1).any():
        raise InvalidInputError("expected numbers above 0 and at most 1.", field="propensities")
    return found


def costs_of_decisions(costs: ArrayLike | None, decisions: Integers, classes: int) -> Floats:
    """Cost matrix (C, D); None: 0-1 costs, with D = C + 1 where a decision abstains.

    Raises:
        InvalidInputError: another shape, or a decision without costs.
    """
    # Here and not above: a service never comes here, and starts earlier without the metric pool.
    from lifelong_core.metrics.counting.cost import zero_one_costs

    most = int(decisions.max(initial=0))
    if costs is None:
        return zero_one_costs(classes, classes + 1 if most == classes else classes)
    matrix = as_costs(costs, classes=classes)
    if most >= matrix.shape[1]:
        raise InvalidInputError(f"expected decisions below {matrix.shape[1]}.", field="decisions")
    return matrix


def effective_number(weights: Floats, groups: NDArray[np.generic] | None) -> float:
    """Equivalent number of independent samples of equal weight, (sum w)^2 / sum w^2 over samples or groups (Kish
    1965).
    """
    sums = weights if groups is None else member_sums(weights, np.unique(groups, return_inverse=True)[1])
    return float(sums.sum() ** 2 / (sums**2).sum())


def clustered_covariance(influences: Floats, groups: NDArray[np.generic] | None) -> Floats:
    """Covariance (K, K) of the sum of independent influences (m, K), or of dependent ones within groups."""
    sums = influences
    if groups is not None:
        sums = member_sums(influences, np.unique(groups, return_inverse=True)[1])
    count = sums.shape[0]
    return sums.T @ sums * (count / (count - 1) if count > 1 else 1.0)
