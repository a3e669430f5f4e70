"""Intrinsic dimension of features by maximum likelihood."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_ROWS_AT_ONCE = 256


def estimate_intrinsic_dimension(features: ArrayLike, *, neighbours: int = 20) -> float | None:
    """Maximum likelihood estimate of Levina and Bickel (2004), pooled as Pope et al. (2021) do.

    With T_j(x) the Euclidean distance of x to its j-th neighbour, the estimate is the inverse of the mean of
    log(T_k(x) / T_j(x)) over all x and j < k (MacKay and Ghahramani 2005). Equal rows count once. Pope et al. take
    the pixels of the images; features of a network give other, usually lower, values.

    Args:
        features: (n, m).
        neighbours: k >= 2.

    Returns:
        The dimension, > 0; None where there are not more than `neighbours` different rows, or all are equally far.

    Raises:
        InvalidInputError: not two-dimensional or not finite, or `neighbours` below 2.
    """
    rows = np.unique(np.asarray(features, dtype=np.float64), axis=0)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidInputError("expected finite features of shape (n, m).", field="features")
    if neighbours < 2:
        raise InvalidInputError(f"expected at least 2, got {neighbours}.", field="neighbours")
    if len(rows) <= neighbours:
        return None
    rows = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    total, counted = 0.0, 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        nearest = _nearest_squares(rows, squares, start, neighbours)
        ratios = 0.5 * np.log(nearest[:, -1:] / nearest[:, :-1])
        total += float(ratios.sum())
        counted += ratios.size
    return counted / total if total > 0 else None


def _nearest_squares(rows: Floats, squares: Floats, start: int, neighbours: int) -> Floats:
    """Squared distances of some rows to their neighbours, ascending, without themselves."""
    some = rows[start : start + _ROWS_AT_ONCE]
    found = squares[start : start + len(some), None] + squares - 2 * some @ rows.T
    found[np.arange(len(some)), start + np.arange(len(some))] = np.inf
    nearest = np.sort(np.partition(found, neighbours - 1, axis=1)[:, :neighbours], axis=1)
    smallest = np.finfo(np.float64).eps * max(float(squares.max()), np.finfo(np.float64).tiny)
    return np.maximum(nearest, smallest)  # rounding can leave nothing of a small difference
