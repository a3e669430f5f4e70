"""Checked numbers per sample, for metrics without classes."""

import math

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


def as_values(
    values: ArrayLike,
    *,
    field: str,
    samples: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    finite: bool = True,
) -> Floats:
    """Check numbers of shape (N,) between `low` and `high`; return float64, finite, or nan where allowed.

    Raises:
        InvalidInputError: not numeric, another shape, another number than `samples`, or a value outside.

    Examples:
        >>> as_values([0, 1], field="scores").tolist()
        [0.0, 1.0]
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected one number per sample.", field=field) from error
    if array.ndim != 1 or (samples is not None and array.size != samples):
        raise InvalidInputError(
            f"expected one number per sample, shape ({'N' if samples is None else samples},), got {array.shape}.",
            field=field,
        )
    outside = (array < low) | (array > high)
    if finite:
        outside |= ~np.isfinite(array)
    if outside.any():
        index = int(np.argmax(outside))
        raise InvalidInputError(
            f"expected numbers in [{low:g}, {high:g}], got {array[index]} at index {index}.", field=field
        )
    return array
