"""An estimated performance with its intervals, assumptions and warnings; names and assumptions of the methods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import numpy as np

from lifelong_core.deploy.documents import FlatDocument, take_fields
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_parameter, as_prevalence, read_only
from lifelong_core.values.errors import InvalidInputError

POSTERIORS: Final = "posteriors"
RATES: Final = "rates"
MATCHED: Final = "matched"
AUTO: Final = "auto"
_PREVALENCE_ONLY = "Within each class, the model's outputs are distributed as in the calibration set"
ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        POSTERIORS: f"{_PREVALENCE_ONLY}, and the calibrated probabilities are right there.",
        RATES: f"{_PREVALENCE_ONLY}: only the prevalence has changed.",
        MATCHED: f"{_PREVALENCE_ONLY}, up to a common factor of all logits: the prevalence and the logits' scale may"
        " have changed, nothing else. A constant shift of one class's logit biases the estimate.",
    }
)
"""Assumptions of the methods that use the estimated prevalence."""


class EstimatedMetric(NamedTuple):
    """Value of a metric with its interval; nan where the metric is undefined, or infinite (LR+ without an error)."""

    value: float
    low: float
    high: float

    def to_numbers(self) -> list[float | None]:
        """Value and ends as JSON values; undefined ones are null."""
        return [None if np.isnan(number) else float(number) for number in self]

    @classmethod
    def from_numbers(cls, numbers: Iterable[float | None]) -> Self:
        """Read what `to_numbers` wrote."""
        return cls(*(np.nan if number is None else float(number) for number in numbers))


@dataclass(frozen=True)
class PerformanceWarning(FlatDocument):
    """A limit of an estimate that its intervals do not include."""

    code: str
    """one of the keys of `warnings.CODES`"""
    text: str


@dataclass(frozen=True, eq=False)
class PerformanceEstimate(ArrayValue):
    """Performance of a head's decisions in a population, estimated from a window of its unlabelled samples."""

    method: str
    """name of the method that was used: with `auto`, the chosen one"""
    estimates: Mapping[str, EstimatedMetric]
    """by acronym; for a metric of one class against the rest by acronym and class, "TPR[2]", in a binary task by the
    acronym alone, for class 1"""
    confusion_matrix: Floats
    """shape (C, D), shares of true class and decision; they sum to 1"""
    prevalence: Floats
    """shape (C,), estimated prevalence"""
    confidence: float
    """nominal coverage of each interval"""
    samples: int
    """samples in the window"""
    effective_samples: float
    """equivalent number of independent samples"""
    validated_error: float | None
    """mean absolute error of the accuracy in simulated windows from the calibration set; None: it was not simulated"""
    assumptions: tuple[str, ...]
    """what the method assumes, as sentences"""
    warnings: tuple[PerformanceWarning, ...]
    head_digest: str
    """of the head whose decisions are judged"""

    def __post_init__(self) -> None:
        """Check and freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        confusion = as_parameter(self.confusion_matrix, field="confusion_matrix")
        classes = as_prevalence(self.prevalence).size
        if confusion.ndim != 2 or confusion.shape[0] != classes or confusion.shape[1] < classes:
            raise InvalidInputError("expected a row for each class.", field="confusion_matrix")
        object.__setattr__(self, "confusion_matrix", read_only(confusion))
        object.__setattr__(self, "prevalence", read_only(np.array(self.prevalence, dtype=np.float64)))
        estimates = {
            name: EstimatedMetric(*(number if np.isfinite(number) else np.nan for number in three))
            for name, three in self.estimates.items()
        }
        object.__setattr__(self, "estimates", MappingProxyType(estimates))

    def to_document(self) -> dict[str, Any]:
        """The estimate as JSON values; undefined numbers are null."""
        return {
            "schema_version": 1,
            "method": self.method,
            "estimates": {
                name: [None if np.isnan(number) else number for number in three]
                for name, three in self.estimates.items()
            },
            "confusion_matrix": self.confusion_matrix.tolist(),
            "prevalence": self.prevalence.tolist(),
            "confidence": self.confidence,
            "samples": self.samples,
            "effective_samples": self.effective_samples,
            "validated_error": self.validated_error,
            "assumptions": list(self.assumptions),
            "warnings": [{"code": one.code, "text": one.text} for one in self.warnings],
            "head_digest": self.head_digest,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, 1, required=tuple(cls.__dataclass_fields__))
        try:
            found["estimates"] = {
                name: EstimatedMetric(
                    *(float("nan") if number is None else float(number) for number in three)
                )
                for name, three in found["estimates"].items()
            }
            found["warnings"] = tuple(PerformanceWarning(**one) for one in found["warnings"])
            found["assumptions"] = tuple(str(one) for one in found["assumptions"])
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError("a value has another form than expected.", field="document") from error
        return cls(**found)
