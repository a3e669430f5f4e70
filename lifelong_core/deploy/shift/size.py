"""The size of a shift, as one number with its interval."""

import numpy as np

from lifelong_core.values.arrays import Floats


def shift_size(assumed: Floats, prevalence: Floats, low: Floats, high: Floats) -> tuple[float, float, float]:
    """L1 distance (0 to 2) of a prevalence from an assumed one, and bounds of that of all prevalences in its intervals.

    Prevalences sum to 1: what some classes gain the others lose, so the distance is twice either sum. The lower bound
    is reached; the upper one may be larger than needed where a class may both gain and lose.

    The bounds have the confidence of the intervals only if these hold for all classes together. Intervals of each class
    alone do not: with many classes some leave out the truth, and the lower bound may exceed 0 without a shift.

    Args:
        assumed: shape (C,), sums to 1.
        prevalence: shape (C,), sums to 1.
        low: lower bounds by class, shape (C,).
        high: upper bounds by class, shape (C,).
    """
    least, most = low - assumed, high - assumed
    nearest = 2 * max(least.clip(0).sum(), (-most).clip(0).sum())
    farthest = 2 * min(most.clip(0).sum(), (-least).clip(0).sum(), 1)
    by_class = np.maximum(np.abs(least), np.abs(most)).sum()
    return float(np.abs(prevalence - assumed).sum()), float(nearest), float(min(farthest, by_class))
