"""Equality and hashing of frozen value types that hold arrays."""

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray


class ArrayValue:
    """Mixin for frozen dataclasses with array fields (declared with `eq=False`): equal if every field is equal.

    Arrays are equal when shape and every element are, nan in the same places included; the generated `__eq__` of
    a dataclass cannot compare them.
    """

    def __eq__(self, other: object) -> bool:
        """Whether the classes are the same and all fields are equal."""
        if type(self) is not type(other):
            return NotImplemented
        names = [item.name for item in fields(self)]  # type: ignore[arg-type] # only dataclasses mix this in
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        """Hash consistent with equality: arrays are hashed by their numbers."""
        return hash(tuple(_hashable(getattr(self, item.name)) for item in fields(self)))  # type: ignore[arg-type]


def _same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        ours, others = np.asarray(cast("ArrayLike", left)), np.asarray(cast("ArrayLike", right))
        return np.array_equal(ours, others, equal_nan=ours.dtype.kind == others.dtype.kind == "f")
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        mine, theirs = cast("Mapping[str, object]", left), cast("Mapping[str, object]", right)
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key]) for key in mine)
    return left == right


def _hashable(value: object) -> object:
    if isinstance(value, np.ndarray):
        # nan hashes by identity, so that it is left out
        numbers = cast("NDArray[np.generic]", value).ravel().tolist()
        return tuple(number for number in numbers if number == number)
    return None if isinstance(value, Mapping) else value
