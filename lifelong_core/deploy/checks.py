"""Argument checks of the deployment loop."""

from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from lifelong_core.arrays import LARGEST_NUMBER, Floats, as_number, as_parameter, read_only
from lifelong_core.errors import InvalidInputError

SMALLEST_TEMPERATURE = 1 / LARGEST_NUMBER

LONGEST_CLASS_NAME = 200


def as_whole_number(value: float, smallest: int, largest: int, *, field: str) -> int:
    """A whole number within bounds.

    Raises:
        InvalidInputError: it is not.
    """
    if not smallest <= value <= largest or value != int(value):
        raise InvalidInputError(f"expected a whole number in {smallest}..{largest}.", field=field)
    return int(value)


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
    if not (array >= SMALLEST_TEMPERATURE).all():
        raise InvalidInputError(
            f"expected a positive temperature, at least {SMALLEST_TEMPERATURE:g}.", field="temperature"
        )
    return float(array) if array.ndim == 0 else read_only(array)


def as_level(value: float, field: str) -> float:
    """A number strictly between 0 and 1.

    Raises:
        InvalidInputError: it is not.
    """
    number = as_number(value, field=field)
    if not 0 < number < 1:
        raise InvalidInputError(f"expected a number between 0 and 1, got {number}.", field=field)
    return number


def as_class_names(values: Any) -> tuple[str, ...]:
    """At least two different names that can be printed: no control characters, no lone surrogates.

    Raises:
        InvalidInputError: they are not.
    """
    hint = "Name every class once, in the order of the logits."
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInputError("expected a list of names.", field="class_names", hint=hint)
    names: list[str] = []
    for name in cast(Sequence[Any], values):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInputError(
                f"{name!r} is not a name of printable characters.", field="class_names", hint=hint
            )
        if len(name) > LONGEST_CLASS_NAME:
            raise InvalidInputError(
                f"expected names of at most {LONGEST_CLASS_NAME} characters.", field="class_names", hint=hint
            )
        names.append(name)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidInputError(
            f"expected at least two different class names, got {names}.", field="class_names", hint=hint
        )
    return tuple(names)
