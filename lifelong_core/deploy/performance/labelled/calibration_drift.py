"""Are the served probabilities still calibrated? A test on labelled samples."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats
from lifelong_core.values import ArrayValue


@dataclass(frozen=True, eq=False)
class CalibrationDrift(ArrayValue):
    """Test of "the served probabilities are calibrated" against affine miscalibration."""

    statistic: float
    p_value: float
    level: float
    rejected: bool
    slope: float
    """by which the logarithms of the probabilities have to be multiplied: below 1, the head is too sure"""
    intercepts: Floats
    """shape (C,), sum 0: what has to be added to them; positive: the class is more frequent than the head says"""
    samples: int
    text: str
    """one sentence"""


def calibration_drift(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.01,
) -> CalibrationDrift:
    """Test the calibration of served probabilities on labelled samples.

    Args:
        probabilities: shape (m, C), as served.
        labels: shape (m,), true classes.
        propensities: shape (m,), probability with which each sample was chosen for labelling; None: equal.
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        level: largest probability of a rejection where the probabilities are calibrated.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    raise NotImplementedError
