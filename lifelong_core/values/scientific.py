# pyright: basic
"""Typed wrappers of numpy and scipy functions without published types.

Each function imports scipy itself: the import takes a third of the start of a serving process, which only applies
heads.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Floats, Integers

SparseMatrix: TypeAlias = Any
"""A scipy.sparse.csr_array."""


def error_function(values: ArrayLike) -> Floats:
    """Error function of each value, of the same shape."""
    from scipy import special

    return np.asarray(special.erf(values))


def log_gamma(values: ArrayLike) -> Floats:
    """Natural logarithm of the gamma function of positive numbers, of the same shape."""
    from scipy import special

    return np.asarray(special.gammaln(values))


def normal_probability(values: ArrayLike) -> Floats:
    """Probability that a standard normal number is below each value, of the same shape."""
    from scipy import special

    return np.asarray(special.ndtr(values))


def normal_quantile(probabilities: ArrayLike) -> Floats:
    """Quantiles of the standard normal distribution: a standard normal number is below them with these probabilities.

    Examples:
        >>> [round(float(normal_quantile(probability)), 2) for probability in (0.025, 0.5, 0.975)]
        [-1.96, 0.0, 1.96]
    """
    from scipy import special

    return np.asarray(special.ndtri(probabilities))


def t_probability(degrees_of_freedom: ArrayLike, value: ArrayLike) -> Floats:
    """Probability that a t-distributed number is below the value, shape of both broadcast.

    The probability that it exceeds the value is that at -value.
    """
    from scipy import special

    return np.asarray(special.stdtr(degrees_of_freedom, value))


def t_quantile(degrees_of_freedom: ArrayLike, probability: float) -> Floats:
    """Quantile of the t distribution, shape of the degrees of freedom."""
    from scipy import special

    return np.asarray(special.stdtrit(degrees_of_freedom, probability))


def chi_square_quantile(degrees_of_freedom: float, probability: float) -> float:
    """Quantile of the chi-square distribution."""
    from scipy import special

    return float(special.chdtri(degrees_of_freedom, 1 - probability))


def f_tail(numerator: float, denominator: float, value: float) -> float:
    """Probability that an F-distributed number exceeds the value."""
    from scipy import special

    return float(special.fdtrc(numerator, denominator, max(value, 0.0)))


def mean_ranks(values: Floats) -> Floats:
    """Ranks 1..N; equal values share their mean rank. Shape (N,)."""
    from scipy import stats

    return np.asarray(stats.rankdata(values))


def kendall_tau_b(first: Floats, second: Floats) -> float:
    """Kendall's tau-b of two vectors (N,) that are not constant, in O(N log N)."""
    from scipy import stats

    return float(np.asarray(stats.kendalltau(first, second))[0])


def gaussian_blur(values: NDArray[np.float32], widths: Sequence[float]) -> NDArray[np.float32]:
    """Values blurred by a Gaussian with these standard deviations, one for each axis; the edge goes on outside."""
    from scipy import ndimage

    return np.asarray(ndimage.gaussian_filter(values, widths, mode="nearest"), dtype=np.float32)


def weighted_counts(cells: Integers, weights: Floats, *, size: int) -> Floats:
    """Sum of the weights of each cell, shape (size,)."""
    return np.bincount(cells, weights, minlength=size).astype(np.float64)


def distances(first: Floats, second: Floats) -> Floats:
    """Euclidean distance of each row (N, C) from each of (M, C), shape (N, M); exactly 0 for equal rows."""
    from scipy.spatial import distance

    return np.asarray(distance.cdist(first, second), dtype=np.float64)


def distances_of_pairs(rows: Floats) -> Floats:
    """Euclidean distances of all pairs of rows (N, C), shape (N (N - 1) / 2,); exactly 0 for equal rows."""
    from scipy.spatial import distance

    return np.asarray(distance.pdist(rows), dtype=np.float64)


def sparse_rows(values: Sequence[Integers], columns: Sequence[Integers], *, width: int) -> SparseMatrix:
    """The sparse matrix whose rows hold these values in these columns, shape (len(values), width)."""
    from scipy import sparse

    ends = np.cumsum([0, *(row.size for row in columns)])
    data = np.concatenate([np.asarray(row, dtype=np.float64) for row in values])
    return sparse.csr_array((data, np.concatenate(columns), ends), shape=(len(columns), width))


def cholesky(matrix: Floats) -> Floats:
    """Lower triangular Cholesky factor of a matrix.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite.
    """
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def solve(matrix: Floats, target: Floats) -> Floats:
    """Return matrix^-1 @ target."""
    return np.asarray(np.linalg.solve(matrix, target), dtype=np.float64)


def lower_solve(factor: Floats, target: Floats) -> Floats:
    """Return factor^-1 @ target for a lower triangular factor."""
    from scipy import linalg

    return np.asarray(linalg.solve_triangular(factor, target, lower=True))


def non_negative_least_squares(matrix: Floats, target: Floats) -> Floats:
    """argmin |matrix @ x - target| over x >= 0, exactly (Lawson and Hanson 1974), shape (C,)."""
    from scipy import optimize

    return optimize.nnls(matrix, target, maxiter=50 * matrix.shape[1])[0]


def bounded_least_squares(matrix: Floats, target: Floats, lower: Floats, upper: Floats) -> Floats:
    """argmin |matrix @ x - target| over lower <= x <= upper, by active sets (Stark and Parker 1995), shape (C,)."""
    from scipy import optimize

    return optimize.lsq_linear(matrix, target, (lower, upper), method="bvls", tol=1e-14).x


def smooth_minimum(
    loss_and_gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    lower: Floats,
    upper: Floats,
    largest_slope: float,
) -> tuple[Floats, bool]:
    """A local minimum in lower..upper by L-BFGS-B (Byrd et al. 1995), shape (P,): no slope exceeds `largest_slope`. And
    whether it is another point than the start.
    """
    from scipy import optimize

    found: Any = optimize.minimize(
        loss_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper, strict=True)),
        options={"maxcor": 20, "maxiter": 500, "maxfun": 1000, "ftol": 0.0, "gtol": largest_slope},
    )
    return np.asarray(found.x, dtype=np.float64), found.nit > 0


def best_assignment(scores: Floats) -> Integers:
    """The permutation p of the columns with the largest sum of scores[k, p[k]], shape (C,)."""
    from scipy import optimize

    _, columns = optimize.linear_sum_assignment(scores, maximize=True)
    return columns.astype(np.int64)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a continuous function in low..high (Brent 1973); without a change of sign, the better of the two ends.

    Examples:
        >>> round(root(lambda number: number**3 - 8, 0, 10), 9), root(lambda number: number + 1, 0, 10)
        (2.0, 0.0)
    """
    from scipy import optimize

    at_low, at_high = function(low), function(high)
    if at_low * at_high > 0:
        return float(low if abs(at_low) <= abs(at_high) else high)
    found: Any = optimize.brentq(function, low, high, xtol=1e-13)
    return float(found)


def minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """A local minimum of a function in low..high, or an end if that is lower.

    Examples:
        >>> round(minimum(lambda number: (number - 2) ** 2, 0, 10), 6), minimum(abs, 0, 10)
        (2.0, 0.0)
    """
    from scipy import optimize

    found: Any = optimize.minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    return min((float(low), float(high), float(found.x)), key=function)
