"""Tests of a shift of the prevalence away from the prevalence that the head assumes."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import t_probability

_SMALLEST_ERROR = 1e-9


@dataclass(frozen=True)
class ShiftTest(FlatDocument):
    """Test of "the population has the prevalence that the head assumes", on one window or over many looks."""

    statistic: float
    """one window: largest distance of a class's estimate from the assumed prevalence, in standard errors; many looks:
    natural logarithm of the e-value"""
    p_value: float | None
    """one window: the smallest p-value of a class, times the number of classes (Bonferroni); many looks: None"""
    log_e_value: float | None
    """many looks: natural logarithm of the evidence against the hypothesis; one window: None"""
    level: float
    """one window: largest probability of a false rejection; many looks: largest rate of false alarms per look, in the
    long run"""
    rejected: bool
    """p_value < level, or the e-value reaches 1 / level"""


def sequential_shift_test(log_e_value: float, average_run_length: float) -> ShiftTest:
    """Test whether the evidence over all looks reaches an alarm.

    Examples:
        >>> sequential_shift_test(11.0, 175_200).rejected, sequential_shift_test(13.0, 175_200).rejected
        (False, True)
    """
    return ShiftTest(
        statistic=log_e_value,
        p_value=None,
        log_e_value=log_e_value,
        level=1 / average_run_length,
        rejected=bool(log_e_value >= np.log(average_run_length)),
    )


def prevalence_shift_test(
    estimate: PrevalenceEstimate, assumed_prevalence: Floats, level: float
) -> ShiftTest:
    """Test "the population has the assumed prevalence" with an estimate and its covariance.

    The test is valid for one window: with repeated looks, each look adds false alarms at the level.

    Args:
        estimate: estimate of the population's prevalence.
        assumed_prevalence: shape (C,).
        level: largest probability of a rejection when the hypothesis is true.

    Examples:
        >>> import numpy as np
        >>> estimate = PrevalenceEstimate(
        ...     prevalence=[0.8, 0.2], low=[0.72, 0.12], high=[0.88, 0.28], confidence=0.95, n=100, effective_n=100,
        ...     method="MLLS", covariance=0.04**2 * np.array([[1, -1], [-1, 1]]), degrees_of_freedom=[99, 99])
        >>> test = prevalence_shift_test(estimate, np.array([0.5, 0.5]), level=0.01)
        >>> round(test.statistic, 2), test.rejected
        (7.5, True)
    """
    errors = np.sqrt(np.maximum(np.diag(estimate.covariance), _SMALLEST_ERROR**2))
    known = estimate.degrees_of_freedom > 0
    statistics = np.where(known, np.abs(estimate.prevalence - assumed_prevalence) / errors, 0.0)
    p_values = 2 * t_probability(np.where(known, estimate.degrees_of_freedom, 1.0), -statistics)
    # With two classes both tests are equal.
    tests = 1 if statistics.size == 2 else statistics.size
    p_value = min(1.0, tests * float(p_values.min()))
    return ShiftTest(float(statistics.max()), p_value, None, level, p_value < level)
