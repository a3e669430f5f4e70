# pyright: basic
"""Functions of numpy and scipy with the types that this package needs; scipy publishes none.

scipy is imported where it is used: it takes a third of the time that a serving process needs to start, and that
process only applies heads.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers

SparseMatrix: TypeAlias = Any
"""A scipy.sparse.csr_array."""


def sparse_rows(values: Sequence[Integers], columns: Sequence[Integers], *, width: int) -> SparseMatrix:
    """The sparse matrix whose rows hold these values in these columns, shape (len(values), width)."""
    from scipy import sparse

    ends = np.cumsum([0, *(row.size for row in columns)])
    data = np.concatenate([np.asarray(row, dtype=np.float64) for row in values])
    return sparse.csr_array((data, np.concatenate(columns), ends), shape=(len(columns), width))


def cholesky(matrix: Floats) -> Floats:
    """The lower triangular factor.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite.
    """
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def solve(matrix: Floats, target: Floats) -> Floats:
    """matrix^-1 @ target."""
    return np.asarray(np.linalg.solve(matrix, target), dtype=np.float64)


def lower_solve(factor: Floats, target: Floats) -> Floats:
    """factor^-1 @ target for a lower triangular factor."""
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


def t_quantile(degrees_of_freedom: ArrayLike, probability: float) -> Floats:
    """Quantile of the t distribution, shape of the degrees of freedom."""
    from scipy import special

    return np.asarray(special.stdtrit(degrees_of_freedom, probability))


def t_probability(degrees_of_freedom: ArrayLike, value: ArrayLike) -> Floats:
    """Probability that a t-distributed number is below the value, shape of both broadcast."""
    from scipy import special

    return np.asarray(special.stdtr(degrees_of_freedom, value))


def chi_square_quantile(degrees_of_freedom: float, probability: float) -> float:
    """Quantile of the chi-square distribution."""
    from scipy import special

    return float(special.chdtri(degrees_of_freedom, 1 - probability))


def f_tail(numerator: float, denominator: float, value: float) -> float:
    """Probability that an F-distributed number exceeds the value."""
    from scipy import special

    return float(special.fdtrc(numerator, denominator, max(value, 0.0)))


def normal_quantile(tail: float) -> float:
    """The number that a standard normal one exceeds with this probability."""
    from scipy import special

    return float(-special.ndtri(tail))


def t_tail(degrees_of_freedom: float, value: float) -> float:
    """Probability that a t-distributed number exceeds the value."""
    from scipy import special

    return float(special.stdtr(degrees_of_freedom, -value))


def best_assignment(scores: Floats) -> Integers:
    """The permutation p of the columns with the largest sum of scores[k, p[k]], shape (C,)."""
    from scipy import optimize

    _, columns = optimize.linear_sum_assignment(scores, maximize=True)
    return columns.astype(np.int64)


def log_gamma(value: float) -> float:
    """Logarithm of the gamma function of a positive number."""
    from scipy import special

    return float(special.gammaln(value))
