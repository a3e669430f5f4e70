"""Patterns of temporary changes of the prevalence: jitter, and rhythms of the day or the week."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from lifelong_core.deploy.numerics.rows import one_hot
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import f_tail

Pattern: TypeAlias = Literal["time of day", "day of week", "jitter"]

LEVEL = 0.001
"""Probability of a false rhythm."""
LEAST_EXPLAINED = 0.5
"""Smallest share of the scatter beyond chance that a rhythm must explain."""
LEAST_CHANGES = 4
"""Fewest changes that distinguish jitter from successive changes."""
LEAST_RETURN = 0.25
"""Smallest negative correlation (absolute value) of successive changes that indicates jitter; 1/2 around a mean."""
HARMONICS = 4
"""Harmonics of a day; enough for a work shift that begins and ends at a given hour."""
_LEAST_SEGMENTS = 2
"""Fewest segments before a change of a jittering prevalence."""
OUTSTANDING = 2.0
"""A change this many times larger than every other one is lasting."""
LONGEST_AFTER = 3.0
"""A last segment this many times longer than every earlier one no longer jitters."""
_DAY = 86_400.0
_PERIODS = 1.9
_TINY = 1e-300


def find_pattern(
    sums: Floats, sizes: Floats, times: Floats | None, begins: Sequence[int], price: float
) -> Pattern | None:
    """Find the pattern of the prevalence in a window; None: its changes are lasting.

    Args:
        sums: shape (B, K), whitened sums of each block, centred over the window.
        sizes: shape (B,), effective samples.
        times: shape (B,), ascending, seconds since 1970 (UTC) of the begin of each block; None: unknown.
        begins: first block of each segment between changes, 0 first.
        price: threshold for twice the log likelihood gain of a change.
    """
    if times is not None:
        segments = (np.add.reduceat(sums, begins) ** 2).sum(axis=1) / np.add.reduceat(sizes, begins)
        least = max(float(segments.sum()) - price * (len(begins) - 1), 0.0) + price
        if _explained(sums, sizes, times, _time_of_day(times), _DAY) > least:
            return "time of day"
        if _explained(sums, sizes, times, _day_of_week(times), 7 * _DAY) > least:
            return "day of week"
    steps = np.diff(_means(sums, sizes, begins), axis=0)
    if len(steps) < LEAST_CHANGES:
        return None
    lengths = np.add.reduceat(sizes, begins)
    if lengths[-1] > LONGEST_AFTER * lengths[:-1].max():
        return None
    # One lasting change may be larger than all changes by jitter.
    largest = int((steps**2).sum(axis=1).argmax())
    return "jitter" if _undo_each_other(steps) or _undo_each_other(steps, without=largest) else None


def _undo_each_other(steps: Floats, without: int | None = None) -> bool:
    kept = np.arange(len(steps)) != without
    products = (steps[1:] * steps[:-1]).sum(axis=1)[kept[1:] & kept[:-1]]
    return len(products) + 1 >= LEAST_CHANGES and products.sum() < -LEAST_RETURN * (steps[kept] ** 2).sum()


def find_lasting_change(sums: Floats, sizes: Floats, begins: Sequence[int], level: float) -> int | None:
    """First segment of a jittering window after a lasting change; None: there is none.

    The change far exceeds all others, or the segments on both sides differ by more than their scatter, by an F-test
    whose degrees of freedom count the directions of the jitter (Box 1954).

    Args:
        sums: as for `find_pattern`, as are `sizes` and `begins`.
        sizes: shape (B,).
        begins: first blocks of the segments.
        level: largest probability of a false lasting change by the F-test.
    """
    means = _means(sums, sizes, begins)
    number = len(means)
    lengths = np.sqrt((np.diff(means, axis=0) ** 2).sum(axis=1))
    largest = int(lengths.argmax())
    if lengths[largest] > OUTSTANDING * np.delete(lengths, largest).max():
        return largest + 1
    best, smallest = None, level
    for first in range(_LEAST_SEGMENTS, number):
        before, after = means[:first], means[first:]
        residuals = np.vstack([before - before.mean(axis=0), after - after.mean(axis=0)])
        scatter = float((residuals**2).sum()) / (number - 2)
        difference = float(((after.mean(axis=0) - before.mean(axis=0)) ** 2).sum())
        ratio = difference / (1 / first + 1 / (number - first)) / max(scatter, _TINY)
        products = residuals @ residuals.T
        directions = float(np.trace(products) ** 2 / max(float((products**2).sum()), _TINY))
        tests = number - _LEAST_SEGMENTS
        probability = f_tail(directions, directions * (number - 2), ratio) * tests
        if probability < smallest:
            best, smallest = first, probability
    return best


def remove_rhythm(sums: Floats, sizes: Floats, times: Floats, pattern: Pattern) -> Floats:
    """Remove the rhythm from the sums of each block, shape (B, K); arguments as for `find_pattern`."""
    inputs = _time_of_day(times) if pattern == "time of day" else _day_of_week(times)
    design, target = _weighted(sums, sizes, inputs)
    weights = np.sqrt(sizes)[:, np.newaxis]
    return sums - weights * (design @ np.linalg.lstsq(design, target, rcond=None)[0])


def _means(sums: Floats, sizes: Floats, begins: Sequence[int]) -> Floats:
    return np.add.reduceat(sums, begins, axis=0) / np.add.reduceat(sizes, begins)[:, np.newaxis]


def _time_of_day(times: Floats) -> Floats:
    phase = 2 * np.pi * times[:, np.newaxis] / _DAY * np.arange(1, HARMONICS + 1)
    return np.hstack([np.sin(phase), np.cos(phase)])


def _day_of_week(times: Floats) -> Floats:
    day = np.floor(times / _DAY).astype(np.int64) % 7
    return one_hot(day, 6)


def _explained(sums: Floats, sizes: Floats, times: Floats, inputs: Floats, period: float) -> float:
    """Twice the log likelihood gain of a linear model of the blocks' means; 0 where it may be chance."""
    blocks, dimensions = sums.shape
    width = inputs.shape[1]
    if times[-1] - times[0] < _PERIODS * period or blocks < 2 * width + 2:
        return 0.0
    weights = np.sqrt(sizes)[:, np.newaxis]
    design, target = _weighted(sums, sizes, inputs)
    level = weights * (weights * target).sum(axis=0) / sizes.sum()
    total = float(((target - level) ** 2).sum())
    fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    left = float(((target - fitted) ** 2).sum())
    rest = (blocks - 1 - width) * dimensions
    ratio = (total - left) / (width * dimensions) / max(left / rest, _TINY)
    beyond_chance = total - (blocks - 1) * dimensions
    # Jitter resembles some rhythm in every window, but one period does not predict the other.
    missed = _missed(design, target, np.floor((times - times[0]) / period))
    explains = total - missed >= LEAST_EXPLAINED * beyond_chance
    if beyond_chance <= 0 or not explains or f_tail(width * dimensions, rest, ratio) >= LEVEL:
        return 0.0
    return total - left - width * dimensions


def _weighted(sums: Floats, sizes: Floats, inputs: Floats) -> tuple[Floats, Floats]:
    """Design with an intercept, (B, W + 1), and target, (B, K), of the regression of the blocks' means."""
    weights = np.sqrt(sizes)[:, np.newaxis]
    return np.hstack([np.ones((sizes.size, 1)), inputs]) * weights, sums / weights


def _missed(design: Floats, target: Floats, periods: Floats) -> float:
    """Squared error of the blocks of each period, predicted from the other periods."""
    error = 0.0
    for one in np.unique(periods):
        held = periods == one
        found = np.linalg.lstsq(design[~held], target[~held], rcond=None)[0]
        error += float(((target[held] - design[held] @ found) ** 2).sum())
    return error
