"""Performance estimated with labels: values, intervals and where their uncertainty comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, as_column, as_costs, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError

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
