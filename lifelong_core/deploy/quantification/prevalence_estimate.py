"""Estimate of the prevalence with its interval, and the parts of its covariance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.documents import FlatDocument, take_fields
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.uncertainty import (
    Clusters,
    Influence,
    Spread,
    combine,
)
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_parameter, as_prevalence, read_only
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile


@dataclass(frozen=True, eq=False)
class PrevalenceEstimate(FlatDocument, ArrayValue):
    """The prevalence of a population, estimated from a window of its unlabelled samples (thesis Def. 6.6)."""

    prevalence: Floats
    """shape (C,), on the simplex"""
    low: Floats
    """shape (C,), lower bounds of the intervals; the confidence is that of each class alone"""
    high: Floats
    """shape (C,), upper bounds"""
    confidence: float
    """nominal coverage of each interval, e.g. 0.95"""
    n: int
    """samples in the window"""
    effective_n: float
    """equivalent number of independent samples: n, or less where samples come in groups"""
    method: str
    """name of the quantifier"""
    covariance: Floats
    """shape (C, C), covariance of the estimate, due to window and calibration set together"""
    degrees_of_freedom: Floats
    """shape (C,), of the t distribution of each interval; 0: the spread is unknown, and the interval is [0, 1]"""
    cautions: tuple[str, ...] = ()
    """limits of the estimate that the interval does not include, as sentences; empty for a sound calibration set"""

    def __post_init__(self) -> None:
        """Check and freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        prevalence = as_prevalence(self.prevalence)
        object.__setattr__(self, "prevalence", read_only(np.array(self.prevalence, dtype=np.float64)))
        for name, shape in (
            ("low", prevalence.shape),
            ("high", prevalence.shape),
            ("covariance", prevalence.shape * 2),
            ("degrees_of_freedom", prevalence.shape),
        ):
            array = as_parameter(getattr(self, name), field=name)
            if array.shape != shape:
                raise InvalidInputError(f"expected shape {shape}, got {array.shape}.", field=name)
            object.__setattr__(self, name, read_only(array))
        if not all(isinstance(caution, str) for caution in cast("tuple[object, ...]", self.cautions)):
            raise InvalidInputError("expected sentences.", field="cautions")
        object.__setattr__(self, "cautions", tuple(self.cautions))

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper bounds, shape (C,) each, of intervals with another confidence.

        Raises:
            InvalidInputError: the confidence is not between 0 and 1.
        """
        return t_interval(
            self.prevalence, self.covariance, self.degrees_of_freedom, as_level(confidence, "confidence")
        )

    def to_document(self) -> dict[str, Any]:
        """The estimate as JSON values; every number survives the round trip exactly."""
        return {**super().to_document(), "cautions": list(self.cautions)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, 1, required=tuple(cls.__dataclass_fields__))
        if not isinstance(found["cautions"], list):
            raise InvalidInputError("expected a list of sentences.", field="cautions")
        return cls(**found)


def t_interval(
    centre: Floats, covariance: Floats, degrees_of_freedom: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Interval centre +- t quantile * standard error, clipped to 0..1; [0, 1] without degrees of freedom."""
    known = degrees_of_freedom > 0
    quantile = t_quantile(np.where(known, degrees_of_freedom, 1.0), (1 + confidence) / 2)
    reach = np.where(known, quantile * np.sqrt(np.maximum(np.diag(covariance), 0)), 1.0)
    return np.maximum(centre - reach, 0), np.minimum(centre + reach, 1)


@dataclass(frozen=True)
class Analysis:
    """Estimate with the parts of its covariance."""

    estimate: PrevalenceEstimate
    influence: Influence
    doubt: Floats
    """shape (C, C), covariance that more samples do not reduce: the squared difference from the method's second
    solution, and changes of the prevalence that may not show in its features; common to all windows"""
    calibration: LabeledLogits
    counts: Floats
    """shape (U,), samples at each distinct row of the window, one for each row of `influence.window`"""
    clusters: Clusters | None
    """groups of the window's samples"""
    change_doubt: Floats
    """shape (C, C), covariance due to changes of the prevalence in this window"""

    def with_change_doubt(self, doubt: Floats) -> Self:
        """Return the analysis with more covariance, shape (C, C), due to changes of the prevalence in this window."""
        estimate = self.estimate
        covariance = estimate.covariance + doubt
        low, high = t_interval(
            estimate.prevalence, covariance, estimate.degrees_of_freedom, estimate.confidence
        )
        wider = replace(estimate, low=low, high=high, covariance=covariance)
        return replace(self, estimate=wider, change_doubt=self.change_doubt + doubt)

    def spread(self, influence: Influence) -> Spread:
        """Covariance of a statistic with these influences of the window's and the calibration set's samples."""
        return combine(influence, self.calibration, self.counts, self.clusters)
