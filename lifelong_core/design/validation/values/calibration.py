"""Calibration in a validation: errors of calibrated predictions, calibration slope and O:E ratio of each class."""

import math
from typing import Any

import numpy as np
from pydantic import Field

from lifelong_core.design.validation.values.evaluation import Recipe, mean_over_classes
from lifelong_core.design.validation.values.metric_value import Number, finite
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics.calibration.reference import CALIBRATION_ERRORS, reference_of
from lifelong_core.metrics.calibration.slope import Influenced, ratio_of_class, slope_of_class
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.documents import Frozen
from lifelong_core.values.scientific import normal_quantile

MOST_DRAWS = 200

KERNEL_DRAWS = 60

FEWEST_DRAWS = 20

DRAWN_PROBABILITIES = 20_000_000
"""Most probabilities from which labels are drawn, over all draws: 0.2 s"""

KERNELS = ("KCE", "ECE_KDE")

HIGH = 0.95
"""Quantile of the reference"""


FEWEST_CASES = 10
"""Independent cases of the class, and of the others, below which there is no interval"""


def calibrated_draws(recipe: Recipe, own: Samples) -> Floats | None:
    """A calibration error with labels drawn from the probabilities, shape (R,) or (R, C); None for other metrics.

    Samples without a valid output have no part in it, and so count fully in the excess.
    """
    valid = own.part(own.is_valid)
    if recipe.acronym not in CALIBRATION_ERRORS or valid.size < 2:
        return None
    most = KERNEL_DRAWS if recipe.acronym in KERNELS else MOST_DRAWS
    draws = int(np.clip(DRAWN_PROBABILITIES // (valid.size * valid.classes), FEWEST_DRAWS, most))
    found = reference_of(
        recipe.acronym,
        valid.labels,
        valid.scores,
        valid.unit,
        recipe.parameters,
        draws=draws,
        seed=recipe.seed,
    ).draws
    if np.isnan(found).any():
        return None
    errors = mean_over_classes(found, recipe.weights) if recipe.acronym == "CWCE" else found
    return errors * (valid.size / own.size)


def is_unbiased(recipe: Recipe) -> bool:
    """Whether the metric is 0 on average for calibrated predictions."""
    return recipe.acronym == "KCE" and recipe.parameters.estimator == "unbiased"


def reference_fields(estimate: float, drawn: Floats) -> dict[str, Any] | None:
    """The fields of a `CalibrationReference` from the errors of calibrated predictions, shape (R,)."""
    if math.isnan(estimate):
        return None
    mean = float(drawn.mean())
    high = float(np.quantile(drawn, HIGH))
    return {"mean": mean, "high": high, "excess": estimate - mean, "draws": drawn.size}


def debias(values: Bootstrap, chance: float) -> Bootstrap:
    """A value of shape () less its bias by chance, with the spread of the replicates around it.

    Examples:
        >>> found = debias(Bootstrap(np.array(0.5), np.array([0.5, 0.75]), ()), 0.25)
        >>> float(found.estimate), found.replicates.tolist()
        (0.25, [0.125, 0.375])
    """
    defined = values.replicates[~np.isnan(values.replicates)]
    moved = float(values.estimate) - chance
    centre = float(defined.mean()) if defined.size else 0.0
    return Bootstrap(
        np.asarray(moved),
        values.replicates - centre + moved,
        tuple(LeftOut(part.values - chance, part.multiplicity) for part in values.left_out),
    )


class Agreement(Frozen):
    """A number that is best at 1, with its interval."""

    estimate: Number = Field(description="None: undefined or infinite.")
    low: Number = Field(description="Lower end of the interval; None: there is none.")
    high: Number = Field(description="Upper end of the interval; None: there is none.")


class CalibrationAgreement(Frozen):
    """Calibration of the probability of one class in two numbers (Van Calster et al. 2019)."""

    class_index: int
    slope: Agreement = Field(
        description="Below 1, probabilities are too extreme; above 1, too close to each other."
    )
    observed_expected: Agreement = Field(
        description="Cases of the class over the sum of its probabilities: below 1, it is predicted too often."
    )


def calibration_agreement(samples: Samples, *, level: float) -> tuple[CalibrationAgreement, ...]:
    """Slope and O:E of each class; empty without probabilities.

    Intervals are those of the normal distribution with sandwich variances, by group where there are groups; of O:E on
    the logarithmic scale (Debray et al. 2017).

    Args:
        samples: those without a valid output are left out.
        level: nominal coverage of the intervals.
    """
    if samples.probabilities is None:
        return ()
    valid = samples.part(samples.is_valid)
    unit = np.unique(valid.unit, return_inverse=True)[1].astype(np.int64)
    quantile = float(normal_quantile((1 + level) / 2))
    found: list[CalibrationAgreement] = []
    for k, scores in enumerate(valid.scores.T):
        is_class = valid.labels == k
        cases = min(np.unique(unit[rows]).size for rows in (is_class, ~is_class))
        half = quantile if cases >= FEWEST_CASES else float("nan")
        slope, observed = slope_of_class(scores, is_class), ratio_of_class(scores, is_class)
        by_slope, by_ratio = half * _spread(slope, unit), half * _spread(observed, unit)
        found.append(
            CalibrationAgreement(
                class_index=k,
                slope=_agreement(slope.value, slope.value - by_slope, slope.value + by_slope),
                observed_expected=_agreement(
                    observed.value, observed.value * np.exp(-by_ratio), observed.value * np.exp(by_ratio)
                ),
            )
        )
    return tuple(found)


def _spread(found: Influenced, unit: Integers) -> float:
    """Standard error; nan where it is unknown."""
    if unit.size == 0:
        return float("nan")
    sums = np.bincount(unit, found.influences)
    return float(np.sqrt(np.square(sums).sum() * sums.size / max(sums.size - 1, 1)))


def _agreement(estimate: float, low: float, high: float) -> Agreement:
    return Agreement(estimate=finite(estimate), low=finite(float(low)), high=finite(float(high)))
