# pyright: basic
"""Functions of numpy and scipy with the types that the metrics need; scipy publishes none.

scipy is imported where it is used: a serving process imports this package, and needs none of it.
"""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers


def error_function(values: ArrayLike) -> Floats:
    """erf, of the same shape."""
    from scipy import special

    return np.asarray(special.erf(values))


def normal_probability(values: ArrayLike) -> Floats:
    """Probability that a standard normal number is below each value, of the same shape."""
    from scipy import special

    return np.asarray(special.ndtr(values))


def normal_quantile(probabilities: ArrayLike) -> Floats:
    """Quantiles of the standard normal distribution, of the same shape."""
    from scipy import special

    return np.asarray(special.ndtri(probabilities))


def log_gamma(values: ArrayLike) -> Floats:
    """ln of the gamma function of positive numbers, of the same shape."""
    from scipy import special

    return np.asarray(special.gammaln(values))


def distances(first: Floats, second: Floats) -> Floats:
    """Euclidean distance of each row (N, C) from each of (M, C), shape (N, M); exactly 0 for equal rows."""
    from scipy.spatial import distance

    return np.asarray(distance.cdist(first, second), dtype=np.float64)


def distances_of_pairs(rows: Floats) -> Floats:
    """Euclidean distances of all pairs of rows (N, C), shape (N (N - 1) / 2,); exactly 0 for equal rows."""
    from scipy.spatial import distance

    return np.asarray(distance.pdist(rows), dtype=np.float64)


def mean_ranks(values: Floats) -> Floats:
    """Ranks 1..N; equal values share their mean rank. Shape (N,)."""
    from scipy import stats

    return np.asarray(stats.rankdata(values))


def kendall_tau_b(first: Floats, second: Floats) -> float:
    """Of two vectors (N,) that are not constant, in O(N log N)."""
    from scipy import stats

    return float(np.asarray(stats.kendalltau(first, second))[0])


def weighted_counts(cells: Integers, weights: Floats, *, size: int) -> Floats:
    """Sum of the weights of each cell, shape (size,)."""
    return np.bincount(cells, weights, minlength=size).astype(np.float64)
