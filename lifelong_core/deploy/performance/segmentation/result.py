"""An estimate of Dice as a value, the warnings of its limits, and means over maps with their variation."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceWarning
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

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
    warnings = [
        PerformanceWarning(
            "class_never_predicted",
            f"Class {k} is never predicted in the calibration cases: it has the parameter of all pixels.",
        )
        for k in fallback
    ]
    warnings += [
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
            warnings.append(PerformanceWarning("few_cases", f"{count} independent {what}{also}."))
    for k, one in enumerate(classes):
        if k != background:
            warnings += _of_class(k, one)
    return tuple(warnings)


def _of_class(k: int, dice: ClassDice) -> list[PerformanceWarning]:
    warnings: list[PerformanceWarning] = []
    if dice.calibration_cases < FEW_CASES:
        warnings.append(
            PerformanceWarning(
                "few_cases_of_class",
                f"Class {k} is predicted or present in {dice.calibration_cases} calibration cases, fewer than "
                f"{FEW_CASES}.",
            )
        )
    if dice.unpredicted_cases and dice.missed_share is None:
        warnings.append(
            PerformanceWarning(
                "unpredicted_cases",
                f"{dice.unpredicted_cases} maps have no predicted pixel of class {k} and no calibration case is like "
                "them: they count as missed, with Dice 0.",
            )
        )
    elif dice.unpredicted_cases:
        warnings.append(
            PerformanceWarning(
                "unpredicted_cases",
                f"{dice.unpredicted_cases} maps have no predicted pixel of class {k}; of such calibration cases, "
                f"{100 * (dice.missed_share or 0):.3g} % contain the class: this share of the maps counts, with Dice"
                " 0.",
            )
        )
    return warnings


@dataclass(frozen=True, eq=False)
class DiceMeans:
    """Mean Dice of each class over maps, with what each map adds to its error."""

    values: Floats
    """shape (C,); nan where no map counts"""
    influences: Floats
    """shape (M, C), they sum to 0 for each class: the change of the mean by each map"""


def mean_over_maps(soft: Floats, missed: Floats, offsets: Floats) -> DiceMeans:
    """Mean Dice of each class over the maps in which it is predicted, and its share of the others as Dice 0.

    Args:
        soft: shape (M, C), soft Dice; nan where the class is not predicted.
        missed: shape (C,), share of the maps without a predicted pixel that count.
        offsets: shape (C,), added to each mean.
    """
    counted = np.where(np.isnan(soft), missed, 1.0)
    totals = counted.sum(axis=0)
    totals[totals == 0] = np.nan
    means = np.nansum(soft, axis=0) / totals
    influences = (np.nan_to_num(soft) - means * counted) / totals
    return DiceMeans(np.clip(means + offsets, 0.0, 1.0), influences)


def foreground_mean(values: Floats, background: int) -> float:
    """Mean over the foreground classes that have a value; nan without any."""
    foreground = np.delete(values, background)
    defined = foreground[~np.isnan(foreground)]
    return float(defined.mean()) if defined.size else float("nan")


def bootstrap_values(
    values_of: Callable[[Floats], Floats],
    groups: Integers,
    *,
    replicates: int,
    rng: int | np.random.Generator,
) -> Floats:
    """Values of each class for calibration sets that are drawn group by group, shape (R, C).

    Args:
        values_of: values (C,) for weights (Z,) of the calibration cases.
        groups: shape (Z,), numbers 0..G-1.
        replicates: number of draws R.
        rng: seed or generator.
    """
    generator, count = np.random.default_rng(rng), int(groups.max()) + 1
    draws = (np.bincount(generator.integers(count, size=count), minlength=count) for _ in range(replicates))
    return np.stack([values_of(times[groups].astype(np.float64)) for times in draws])


def interval(
    value: float,
    influences: Floats,
    groups: Integers,
    replicates: Floats,
    calibration_groups: int,
    *,
    confidence: float,
) -> EstimatedMetric:
    """A t interval within [0, 1] from the variance between maps and that of the calibration.

    The degrees of freedom are those of Welch and Satterthwaite for the two variances.

    Args:
        value: the estimate.
        influences: shape (M,), of each map.
        groups: shape (M,), group of each map.
        replicates: shape (R,), values for drawn calibration sets; nan where undefined.
        calibration_groups: independent calibration cases.
        confidence: nominal coverage.

    Returns:
        The bounds are nan with fewer than two groups of maps or of calibration cases.
    """
    maps = int(groups.max()) + 1
    defined = replicates[~np.isnan(replicates)]
    if np.isnan(value) or maps < 2 or calibration_groups < 2 or defined.size < 2:
        return EstimatedMetric(value, float("nan"), float("nan"))
    sums = np.bincount(groups, influences, minlength=maps)
    # A bootstrap variance is smaller than the variance by (G - 1) / G.
    parts = np.array(
        [
            float(sums @ sums) * maps / (maps - 1),
            float(defined.var(ddof=1)) * calibration_groups / (calibration_groups - 1),
        ]
    )
    total = float(parts.sum())
    if total == 0:
        return EstimatedMetric(value, value, value)
    freedom = total**2 / float((parts**2 / np.array([maps - 1, calibration_groups - 1])).sum())
    half = float(t_quantile(freedom, (1 + confidence) / 2)) * total**0.5
    return EstimatedMetric(value, max(value - half, 0.0), min(value + half, 1.0))
