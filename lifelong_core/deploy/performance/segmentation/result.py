"""An estimate of Dice as a value, and the warnings of its limits."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceWarning
from lifelong_core.values.arrays import Integers
from lifelong_core.values.errors import InvalidInputError

CODES: Mapping[str, str] = MappingProxyType(
    {
        "class_never_predicted": "a class is never predicted in the calibration cases",
        "parameter_limit": "confidence cannot be matched to the calibration cases",
        "few_cases": "few independent calibration cases or maps",
        "few_cases_of_class": "few calibration cases in which Dice of a class is defined",
        "unpredicted_cases": "maps without a predicted pixel of a class",
    }
)
"""Codes of the warnings, with their meaning."""
FEW_CASES = 10
"""With fewer independent cases, intervals cover less often than they say."""


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


def dice_warnings(
    classes: Iterable[ClassDice],
    *,
    fallback: Iterable[int],
    at_limit: Iterable[int],
    background: int,
    calibration_groups: Integers,
    map_groups: Integers,
) -> tuple[PerformanceWarning, ...]:
    """All warnings of an estimate.

    Args:
        classes: the estimates, in the order of the classes.
        fallback: classes that have the parameter of all pixels.
        at_limit: classes whose parameter is at the end of its range.
        background: number of the background.
        calibration_groups: shape (Z,), group of each calibration case.
        map_groups: shape (M,), group of each map.
    """
    found = [
        PerformanceWarning(
            "class_never_predicted",
            f"Class {k} is never predicted in the calibration cases: it has the parameter of all pixels.",
        )
        for k in fallback
    ]
    found += [
        PerformanceWarning(
            "parameter_limit",
            f"The parameter of class {k} is at the end of its range: confidence does not match the calibration cases.",
        )
        for k in at_limit
    ]
    for what, groups in (("calibration cases", calibration_groups), ("maps", map_groups)):
        count = np.unique(groups).size
        if count < FEW_CASES:
            also = (
                ": there is no interval"
                if count < 2
                else f", fewer than {FEW_CASES}: intervals are unreliable"
            )
            found.append(PerformanceWarning("few_cases", f"{count} independent {what}{also}."))
    for k, one in enumerate(classes):
        if k != background:
            found += _of_class(k, one)
    return tuple(found)


def _of_class(k: int, one: ClassDice) -> list[PerformanceWarning]:
    found: list[PerformanceWarning] = []
    if one.calibration_cases < FEW_CASES:
        found.append(
            PerformanceWarning(
                "few_cases_of_class",
                f"Class {k} is predicted or present in {one.calibration_cases} calibration cases, fewer than "
                f"{FEW_CASES}.",
            )
        )
    if one.unpredicted_cases and one.missed_share is None:
        found.append(
            PerformanceWarning(
                "unpredicted_cases",
                f"{one.unpredicted_cases} maps have no predicted pixel of class {k} and no calibration case is like "
                "them: they count as missed, with Dice 0.",
            )
        )
    elif one.unpredicted_cases:
        found.append(
            PerformanceWarning(
                "unpredicted_cases",
                f"{one.unpredicted_cases} maps have no predicted pixel of class {k}; of such calibration cases, "
                f"{100 * (one.missed_share or 0):.3g} % contain the class: this share of the maps counts, with Dice 0.",
            )
        )
    return found
