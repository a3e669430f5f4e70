"""An estimate of Dice as a value."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.performance.estimate import EstimatedMetric, PerformanceWarning
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True)
class ClassDice:
    """Mean Dice of one class over the maps in which it is predicted or present.

    Dice is 0/0 in a case in which the class is neither predicted nor present; such cases are left out of the mean. In
    maps without a predicted pixel it is not known which ones these are: of them, the share `missed_share` counts, with
    Dice 0.
    """

    value: float | None
    """None: no map counts"""
    low: float | None
    high: float | None
    """interval; None where it cannot be computed"""
    cases: int
    """maps in which the class is predicted"""
    unpredicted_cases: int
    """maps without a predicted pixel of the class"""
    missed_share: float | None
    """share of the calibration cases without a predicted pixel of the class in which it is present; None: there is no
    such case, and all such maps count as missed"""
    calibration_dice: float | None
    """mean Dice of the calibration cases; None: it is defined in none"""
    calibration_cases: int
    """calibration cases in which Dice is defined"""
    undefined_calibration_cases: int
    """calibration cases in which the class is neither predicted nor present"""
    parameter: float | None
    """temperature, threshold of the probability, or offset of the class; None for AC"""


@dataclass(frozen=True)
class DiceEstimate:
    """Estimated Dice of a segmentation model on unlabelled maps."""

    method: str
    classes: tuple[ClassDice, ...]
    """one for each class 0..C-1"""
    foreground: EstimatedMetric
    """mean over the foreground classes that have a value; nan without any"""
    background: int
    """class that is not part of the foreground"""
    confidence: float
    """nominal coverage of each interval"""
    cases: int
    """maps"""
    calibration_cases: int
    assumptions: tuple[str, ...]
    """what the method assumes, as sentences"""
    warnings: tuple[PerformanceWarning, ...]

    def to_document(self) -> dict[str, Any]:
        """The estimate as JSON values; undefined numbers are null."""
        return {
            "schema_version": 1,
            **asdict(self),
            "classes": [asdict(one) for one in self.classes],
            "foreground": [None if math.isnan(number) else number for number in self.foreground],
            "assumptions": list(self.assumptions),
            "warnings": [{"code": one.code, "text": one.text} for one in self.warnings],
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has another form.
        """
        found = take_fields(document, 1, required=tuple(cls.__dataclass_fields__))
        try:
            found["classes"] = tuple(ClassDice(**one) for one in found["classes"])
            found["foreground"] = EstimatedMetric(
                *(float("nan") if number is None else float(number) for number in found["foreground"])
            )
            found["assumptions"] = tuple(str(one) for one in found["assumptions"])
            found["warnings"] = tuple(PerformanceWarning(**one) for one in found["warnings"])
        except (TypeError, ValueError) as error:
            raise InvalidInputError("a value has another form than expected.", field="document") from error
        return cls(**found)
