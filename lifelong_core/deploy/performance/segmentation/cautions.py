"""Limits of an estimate of Dice that its intervals do not include."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from lifelong_core.deploy.performance.estimate import PerformanceWarning
from lifelong_core.deploy.performance.segmentation.result import ClassDice
from lifelong_core.values.arrays import Integers

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
