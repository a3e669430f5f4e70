"""Fluctuations of the prevalence: temporary changes, daily and weekly rhythms, lasting changes, error of the mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self, TypeAlias

import numpy as np

from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.shift.location import LOCATION_DROP, Mixture, Split
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.deploy.shift.partition import SHORTEST_SEGMENT, EfficientScores, best_partition
from lifelong_core.values.arrays import Floats, Integers
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


@dataclass(frozen=True)
class Fluctuation:
    """Blocks of a window, and the pattern of its changes."""

    pieces: Integers
    """shape (B + 1,), bounds of the blocks"""
    sums: Floats
    sizes: Floats
    times: Floats | None
    begins: Sequence[int]
    """first blocks of the segments"""
    pattern: Pattern | None

    @classmethod
    def of(
        cls,
        scores: EfficientScores,
        splits: Sequence[Split],
        effect: float,
        times: Floats | None,
        price: float,
    ) -> Self:
        """Find the pattern in the changes of a window.

        Args:
            scores: scores of the window.
            splits: changes of the window.
            effect: design effect of the groups.
            times: shape (P,), times of the pieces; None: unknown.
            price: threshold for twice the log likelihood gain of a change, in a window of independent samples.
        """
        sums, sizes = scores.whiten()
        sums, sizes = sums / effect, sizes / effect
        # Two changes within one block count as one.
        first = np.minimum(
            np.searchsorted(scores.bounds, [0, *(split.at for split in splits)]), sizes.size - 1
        )
        begins: list[int] = np.unique(first).tolist()
        moments = None if times is None else times[scores.bounds[:-1]]
        found = find_pattern(sums, sizes, moments, begins, price)
        return cls(scores.bounds, sums, sizes, moments, begins, found)

    def lasting_change(self, level: float) -> int | None:
        """First piece after a lasting change beyond the jitter; None: there is none."""
        segment = find_lasting_change(self.sums, self.sizes, self.begins, level)
        return None if segment is None else int(self.pieces[self.begins[segment]])

    def change_beside_rhythm(self, price: float) -> list[Split]:
        """Last change after removal of the rhythm, located to whole blocks."""
        if self.times is None or self.pattern is None:
            return []
        rest = remove_rhythm(self.sums, self.sizes, self.times, self.pattern)
        found = best_partition(rest, self.sizes, penalty=price, shortest=SHORTEST_SEGMENT)
        if not found:
            return []
        begin = found[-2] if len(found) > 1 else 0
        sums, sizes = np.cumsum(rest[begin:], axis=0), np.cumsum(self.sizes[begin:])
        level = sums[-1] / sizes[-1]
        left = (sums - sizes[:, np.newaxis] * level)[:-1]
        gains = (left**2).sum(axis=1) * sizes[-1] / (sizes * (sizes[-1] - sizes))[:-1] / 2
        near = np.flatnonzero(gains >= gains.max() - LOCATION_DROP) + begin + 1
        at, low, high = found[-1], min(found[-1], int(near[0])), max(found[-1], int(near[-1]))
        piece = self.pieces
        return [
            Split(
                int(piece[begin]),
                int(piece[low]),
                int(piece[at]),
                int(piece[high]),
                int(piece[-1]),
                float(gains.max()),
            )
        ]


def scatter_since(window: OrderedWindow, changes: Sequence[int], *, since: int) -> Floats:
    """Covariance of the prevalence after a piece, (C, C), if each segment's prevalence is a random draw."""
    later = [since, *(piece for piece in changes if piece > since)]
    if since == 0 or len(later) > 1:
        return _scatter_of_mean(window, [*later, window.pieces])
    # One segment has no scatter of its own: that of the earlier mix is used, and decreases with the segment's length.
    before, after = window.ends[since], window.ends[-1] - window.ends[since]
    earlier = [piece for piece in changes if piece < since]
    return _scatter_of_mean(window, [0, *earlier, since]) * (float(before) / float(after))


def _scatter_of_mean(window: OrderedWindow, bounds: Sequence[int]) -> Floats:
    """Covariance of the mean prevalence, (C, C), of segments between these pieces with random prevalences."""
    pairs = list(pairwise(bounds))
    found = np.array([Mixture.of(window, begin, end).prevalence for begin, end in pairs])
    shares = np.diff(window.ends[[*bounds]])
    shares /= shares.sum()
    moves = (found - shares @ found) * shares[:, np.newaxis]
    return moves.T @ moves * (len(pairs) / max(len(pairs) - 1, 1))


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
