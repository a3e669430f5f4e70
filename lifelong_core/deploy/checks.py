"""Argument checks that only this package needs."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, frozen
from lifelong_core.errors import InvalidInputError


def as_parameter(values: ArrayLike, *, field: str) -> Floats:
    """Finite numbers as a float64 array of their own.

    Raises:
        InvalidInputError: not numbers, or not finite.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected numbers.", field=field) from error
    if not np.isfinite(array).all():
        raise InvalidInputError("expected finite numbers.", field=field)
    return array


def as_temperature(values: float | ArrayLike, *, classes: int) -> float | Floats:
    """A positive temperature: one number, or shape (C,), read-only.

    Raises:
        InvalidInputError: not finite, not positive, or another shape.
    """
    array = as_parameter(values, field="temperature")
    if array.shape not in ((), (classes,)):
        raise InvalidInputError(
            f"expected one number or shape ({classes},), got {array.shape}.", field="temperature"
        )
    if not (array > 0).all():
        raise InvalidInputError("expected a positive temperature.", field="temperature")
    return float(array) if array.ndim == 0 else frozen(array)


def as_level(value: float, field: str) -> float:
    """A number strictly between 0 and 1.

    Raises:
        InvalidInputError: it is not.
    """
    number = float(as_parameter(value, field=field))
    if not 0 < number < 1:
        raise InvalidInputError(f"expected a number between 0 and 1, got {number}.", field=field)
    return number
