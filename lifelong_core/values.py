"""Equality and hashing of frozen value types that hold arrays."""

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray


class ArrayValue:
    """Mixin for frozen dataclasses with array fields (declared with `eq=False`): equal if every field is equal.

    Arrays are equal when shape and every element are; the generated `__eq__` of a dataclass cannot compare
    them.
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
        return np.array_equal(cast("ArrayLike", left), cast("ArrayLike", right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        ours, others = cast("Mapping[str, object]", left), cast("Mapping[str, object]", right)
        return ours.keys() == others.keys() and all(_same(ours[key], others[key]) for key in ours)
    return left == right


def _hashable(value: object) -> object:
    if isinstance(value, np.ndarray):
        return tuple(cast("NDArray[np.generic]", value).ravel().tolist())
    return None if isinstance(value, Mapping) else value
