"""Meta metrics: how good a ranking of source tasks was, given what each transfer achieved (Defs. 5.14 to 5.17).

Sources lie on the last axis of `outcomes`, `values` and `scores`; all other axes (targets, seeds, scenarios, ...) are
computed at once.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.errors import InvalidInputError


def improvement(outcomes: ArrayLike, baseline: ArrayLike) -> Floats:
    """Performance with each source minus that without transfer (Def. 5.14).

    Args:
        outcomes: performance with each source, shape (..., n).
        baseline: performance without transfer, shape (...).

    Returns:
        shape (..., n); positive: the transfer helps (for a positively oriented measure).

    Examples:
        >>> improvement([0.75, np.nan, 0.25], 0.5).tolist()
        [0.25, nan, -0.25]
    """
    return as_floats(outcomes) - as_floats(baseline)[..., np.newaxis]


def gain(outcomes: ArrayLike, baseline: ArrayLike) -> Floats:
    """1 for each source that improves on training without transfer, else 0 (Zamir et al. 2018), shape (..., n).

    Examples:
        >>> gain([0.75, np.nan, 0.5], 0.5).tolist()
        [1.0, nan, 0.0]
    """
    found = improvement(outcomes, baseline)
    return np.where(np.isnan(found), np.nan, found > 0)


def percentile(outcomes: ArrayLike) -> Floats:
    """Average rank of each source among all, divided by their number (Def. 5.15): 1 for a unique best source.

    A random choice has the expectation (n + 1) / 2n, whatever is equal. Definition 5.15 gives all equal outcomes the
    highest of their ranks, so that a random choice looks better the more outcomes are equal.

    Examples:
        >>> percentile([0.5, 0.75, 0.5, 1.0]).tolist()
        [0.375, 0.75, 0.375, 1.0]
    """
    values = as_floats(outcomes)
    above, equal = places(values)
    sources = _sources(values)[..., np.newaxis]
    ranks = sources - above - (equal - 1) / 2
    return np.where(np.isnan(values) | (sources < 2), np.nan, ranks / np.maximum(sources, 1))


def regret(outcomes: ArrayLike, *, upper_bound: float = 1.0) -> Floats:
    """Share of the gap between each source and the upper bound of the measure that the best source closes (Def. 5.16).

    Returns:
        shape (..., n), in [0, 1]; 0 for the best source, also where it reaches the upper bound.

    Raises:
        InvalidInputError: an outcome lies above the upper bound.

    Examples:
        >>> regret([0.5, 0.75, 0.0]).tolist()
        [0.5, 0.0, 0.75]
    """
    values = as_floats(outcomes)
    if (values > upper_bound).any():
        raise InvalidInputError(
            f"expected at most {upper_bound:g}, got {np.nanmax(values)}.",
            field="outcomes",
            hint="Give the upper bound of the measure.",
        )
    best = _largest(values, ~np.isnan(values))
    gap = upper_bound - values
    shares = np.divide(best - values, gap, out=np.zeros_like(gap), where=gap > 0)
    return np.where(np.isnan(values) | (_sources(values)[..., np.newaxis] < 2), np.nan, shares)


def mean_of_top(values: ArrayLike, scores: ArrayLike, k: int = 1) -> Floats:
    """Mean value of the k sources with the highest scores (multi-shot by mean; thesis, section 5.1.2).

    Args:
        values: one meta metric of each source, such as `improvement`, shape (..., n); nan: no candidate.
        scores: shape (..., n), broadcast against `values`; k = 1 is the single choice.
        k: number of suggestions; all sources where there are fewer.

    Returns:
        shape (...); nan where no source is a candidate.

    Raises:
        InvalidInputError: k is below 1.

    Examples:
        >>> mean_of_top([0.0, 1.0, 5.0], [3, 2, 1], k=2).item()
        0.5
        >>> mean_of_top([0.0, 1.0, 5.0], [1, 1, 1]).round(3).item()  # equal scores: expectation of a random choice
        2.0
    """
    values, scores = _candidates(values, scores)
    above, equal = places(scores)
    chosen = np.clip((_shots(k) - above) / np.maximum(equal, 1), 0, 1)  # probability of each source
    total = np.where(np.isnan(values), 0.0, chosen * np.nan_to_num(values)).sum(axis=-1)
    number = np.minimum(_sources(values), k)
    return np.where(number == 0, np.nan, total / np.maximum(number, 1))


def max_of_top(values: ArrayLike, scores: ArrayLike, k: int = 1) -> Floats:
    """Largest value of the k sources with the highest scores (multi-shot by maximum), as in `mean_of_top`.

    The best of several noisy outcomes is too good on average: compare it with that of equal scores, which is the exact
    expectation of k random sources.

    Examples:
        >>> max_of_top([0.0, 1.0, 5.0], [3, 2, 1], k=2).item()
        1.0
        >>> max_of_top([0.0, 1.0, 5.0], [1, 1, 1], k=2).round(3).item()  # (1 + 5 + 5) / 3
        3.667
    """
    values, scores = _candidates(values, scores)
    above, equal = places(scores)
    legal = ~np.isnan(values)
    certain = legal & (above + equal <= _shots(k))
    possible = legal & (above < k) & ~certain  # equal scores of which only some are among the k
    best = _largest(values, certain)
    group = count(possible)[..., np.newaxis]
    drawn = np.where(group > 0, k - count(certain)[..., np.newaxis], 0)
    ordered = np.sort(np.where(possible, values, np.inf), axis=-1)
    # P(the largest of the drawn is the j-th smallest of the group or below), j = 0..n
    n = values.shape[-1]
    j = np.arange(n + 1, dtype=np.float64)
    at_most = np.ones((*values.shape[:-1], n + 1))
    for i in range(min(k, n)):
        factor = np.maximum(j - i, 0) / np.maximum(group - i, 1)
        at_most = np.where(i < drawn, at_most * np.minimum(factor, 1), at_most)
    reached = np.where(np.isinf(ordered), 0.0, np.maximum(ordered, best))
    steps = at_most[..., 1:] - at_most[..., :-1]
    found = np.where(group[..., 0] > 0, (steps * reached).sum(axis=-1), best[..., 0])
    return np.where(_sources(values) == 0, np.nan, found)


def weightedtau(outcomes: ArrayLike, scores: ArrayLike) -> Floats:
    """Weighted rank correlation of scores with outcomes, best sources weighted most (Vigna 2015; Def. 5.17).

    Mean of two weighted Kendall correlations: pairs are weighted by 1 / rank of both sources, once by the ranks of the
    outcomes and once by those of the scores. Definition 5.17 read literally weights the worst sources most; the text of
    the thesis, `scipy.stats.weightedtau` and this function weight the best.

    With equal outcomes or scores it is the expectation over random orders of the equal ones: a pair without an order
    counts 0 and stays in the denominator, and equal sources share the mean of their weights. So a random ranking has
    the expectation 0, and constant scores have the value 0. Without equal values it is `scipy.stats.weightedtau`; that
    orders equal outcomes by the scores, so that the best-scored of them has the largest weight, which favours any
    scores: there the expectation of a random ranking is above 0.

    Args:
        outcomes: performance with each source, positively oriented, shape (..., n).
        scores: shape (..., n), broadcast against `outcomes`.

    Returns:
        shape (...), in [-1, 1]; nan with fewer than two sources. Memory grows with the square of n.

    Examples:
        >>> weightedtau([0.9, 0.8, 0.7, np.nan], [3, 2, 1, 7]).item()
        1.0
        >>> weightedtau([0.9, 0.8, 0.7], [1, 2, 3]).round(3).item()
        -1.0
        >>> weightedtau([0.9, 0.8, 0.7], [0, 0, 0]).item()
        0.0
    """
    outcomes, scores = _candidates(outcomes, scores)
    # Each pair has the weight w_i + w_j, so that its sum over pairs is one over sources.
    concordant = (signs(outcomes) * signs(scores)).sum(axis=-1, dtype=np.int64)
    n = outcomes.shape[-1]
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1, dtype=np.float64))])
    weights = np.zeros(outcomes.shape)
    for values in (outcomes, scores):
        above, equal = places(values)
        weights += (harmonic[above + equal] - harmonic[above]) / np.maximum(equal, 1) / 2
    sources = _sources(outcomes)
    total = np.maximum(sources - 1, 1) * harmonic[np.maximum(sources, 1)]
    return np.where(sources < 2, np.nan, (weights * concordant).sum(axis=-1) / total)


def _sources(values: Floats) -> Integers:
    """Number of sources with a value, shape (...)."""
    return count(~np.isnan(values))


def _largest(values: Floats, mask: Mask) -> Floats:
    """Largest value of each row where the mask is true, -inf if it is nowhere, shape (..., 1)."""
    return np.where(mask, values, -np.inf).max(axis=-1, keepdims=True)


def _candidates(values: ArrayLike, scores: ArrayLike) -> tuple[Floats, Floats]:
    """Both of one shape; scores are nan where values are, and -inf where only the score is missing."""
    array, given = np.broadcast_arrays(as_floats(values), as_floats(scores))
    return array, np.where(np.isnan(array), np.nan, np.where(np.isnan(given), -np.inf, given))


def _shots(k: int) -> int:
    if k < 1:
        raise InvalidInputError(f"expected at least 1, got {k}.", field="k")
    return k


def as_floats(values: ArrayLike) -> Floats:
    """The values as float64."""
    return np.asarray(values, dtype=np.float64)


def places(values: Floats) -> tuple[Integers, Integers]:
    """For each entry, how many entries of its row are larger, and how many are equal (itself included); 0 for nan.

    Examples:
        >>> [one.tolist() for one in places(np.array([5.0, 7.0, np.nan, 5.0]))]
        [[1, 0, 0, 1], [2, 1, 0, 2]]
    """
    other, own = values[..., np.newaxis, :], values[..., :, np.newaxis]
    return count(other > own), count(other == own)


def count(mask: Mask) -> Integers:
    """Number of true entries along the last axis."""
    return np.asarray(np.sum(mask, axis=-1), dtype=np.int64)


def signs(values: Floats) -> NDArray[np.int8]:
    """Order of each pair, shape (..., n, n): 1 if the first is larger, -1 if smaller, 0 if equal or nan."""
    own, other = values[..., :, np.newaxis], values[..., np.newaxis, :]
    return (own > other).astype(np.int8) - (own < other).astype(np.int8)
