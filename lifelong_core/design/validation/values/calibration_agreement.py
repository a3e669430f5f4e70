"""Do a model's probabilities agree with how often the classes occur: calibration slope and O:E ratio of each class."""

import numpy as np
from pydantic import Field

from lifelong_core.design.validation.outputs import Samples
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.design.validation.values.parts import finite
from lifelong_core.metrics.calibration.slope import Influenced, ratio_of_class, slope_of_class
from lifelong_core.values.arrays import Integers
from lifelong_core.values.documents import Frozen
from lifelong_core.values.scientific import normal_quantile

FEWEST_CASES = 10
"""Independent cases of the class, and of the others, below which there is no interval"""


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
