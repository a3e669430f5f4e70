"""Optimal partition of a sequence of means into segments, with a threshold that bounds false changes."""

import math

import numpy as np

from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import log_gamma

SHORTEST_SEGMENT = 60.0
"""Effective samples; with fewer, a mean of posteriors is not approximately normal."""


def change_threshold(dimensions: float, *, level: float, shortest_share: float) -> float:
    """Threshold for twice the log likelihood gain of one change, exceeded by chance with probability `level`.

    It is a quantile of the largest |B(t)|^2 / (t (1 - t)) over shortest_share <= t <= 1 - shortest_share, B a Brownian
    bridge in that many dimensions (Csoergoe and Horvath 1997, theorem A.3.4; Estrella 2003).

    Args:
        dimensions: dimensions of the sequence, positive.
        level: probability, between 0 and 1.
        shortest_share: smallest share of the sequence on either side of a change, between 0 and 1/2.

    Examples:
        >>> round(change_threshold(1, level=0.05, shortest_share=0.15), 1)  # Andrews (1993): 8.85
        8.7
    """
    spread = 2 * math.log((1 - shortest_share) / shortest_share)
    constant = -dimensions / 2 * math.log(2) - float(log_gamma(dimensions / 2))

    def log_tail(value: float) -> float:
        rate = max(spread * (1 - dimensions / value), 0.0) + 2 / value
        return constant + dimensions / 2 * math.log(value) - value / 2 + math.log(rate)

    # Beyond its mode the tail falls.
    low, high = dimensions + 2.0, 4 * (dimensions + 30 - math.log(level))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_tail(middle) > math.log(level) else (low, middle)
    return high


def block_bounds(ends: Floats, most: int) -> Integers:
    """Bounds of at most `most` blocks of about equal size, in pieces, shape (B + 1,), from 0 to P.

    Args:
        ends: shape (P + 1,), samples up to the end of each piece, 0 first.
        most: largest number of blocks.
    """
    blocks = min(most, ends.size - 1)
    wanted: Floats = np.arange(blocks + 1) * (ends[-1] / blocks)
    return np.unique(np.searchsorted(ends, wanted * (1 - 1e-12))).astype(np.int64)


def best_partition(sums: Floats, weights: Floats, *, penalty: float, shortest: float) -> list[int]:
    """First blocks of the segments of the best partition, without the first one (Jackson et al. 2005).

    It maximises sum over segments of |S|^2 / w - penalty, S and w the segment's sums of `sums` and `weights`: twice the
    log likelihood of independent normal means, whitened, minus `penalty` for each change.

    Args:
        sums: shape (B, K), sums of whitened deviations in each block.
        weights: shape (B,), positive; samples of each block if there is no other variation.
        penalty: penalty for each change, positive.
        shortest: least weight of a segment.
    """
    blocks = weights.size
    total = np.vstack([np.zeros(sums.shape[1]), np.cumsum(sums, axis=0)])
    reach = np.concatenate([[0.0], np.cumsum(weights)])
    best = np.full(blocks + 1, -np.inf)
    best[0] = 0.0
    previous = np.zeros(blocks + 1, dtype=np.int64)
    for end in range(1, blocks + 1):
        starts = np.flatnonzero(reach[end] - reach[:end] >= shortest) if end < blocks else np.arange(end)
        starts = starts[(reach[end] - reach[starts] >= shortest) | (starts == 0)]
        if starts.size == 0:
            continue
        gains = ((total[end] - total[starts]) ** 2).sum(axis=1) / (reach[end] - reach[starts])
        values = best[starts] + gains - penalty * (starts > 0)
        winner = int(values.argmax())
        best[end], previous[end] = values[winner], starts[winner]
    changes = list[int]()
    end = int(previous[blocks])
    while end > 0:
        changes.append(end)
        end = int(previous[end])
    return changes[::-1]
