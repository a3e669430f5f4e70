"""Means over maps with their variation: between the maps, and between calibration cases (bootstrap)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import t_quantile


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
