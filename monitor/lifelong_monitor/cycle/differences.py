"""Differences between a recorded report and its replay, field by field."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, cast

JSON: TypeAlias = Any
"""A JSON value."""

SUM_TOLERANCE = 1e-9
"""Relative and absolute: sums over the rows of a window that were added in another order agree to this."""
_DIGESTS_OF_SUMS = frozenset({"window_digest", "digest"})
"""Fields that hash sums to the last bit."""


@dataclass(frozen=True)
class FieldDifference:
    """A field that differs; a part that one side lacks is None there."""

    field: str
    """path within the report, such as `prevalence.low.0`"""
    recorded: JSON
    replayed: JSON

    def to_document(self) -> dict[str, JSON]:
        """The difference as JSON values."""
        return asdict(self)


def compare_documents(
    recorded: JSON, replayed: JSON, *, tolerance: float = 0.0, path: str = ""
) -> Iterator[FieldDifference]:
    """Yield the fields in which two JSON documents differ, in the order of the fields.

    Args:
        recorded: JSON value.
        replayed: JSON value.
        tolerance: relative and absolute difference up to which numbers count as equal; with one above 0, digests of
            sums are not compared.
        path: field of the two values within their documents.

    Examples:
        >>> list(compare_documents({"a": [1, 2]}, {"a": [1, 3]}))
        [FieldDifference(field='a.1', recorded=2, replayed=3)]
    """
    if isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        left, right = cast("Mapping[str, JSON]", recorded), cast("Mapping[str, JSON]", replayed)
        for name in {**left, **right}:
            if tolerance and name in _DIGESTS_OF_SUMS:
                continue
            inner = f"{path}.{name}" if path else name
            yield from compare_documents(left.get(name), right.get(name), tolerance=tolerance, path=inner)
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        pairs = zip(cast("Sequence[JSON]", recorded), cast("Sequence[JSON]", replayed), strict=True)
        for index, (one, other) in enumerate(pairs):
            yield from compare_documents(one, other, tolerance=tolerance, path=f"{path}.{index}")
    elif not _are_equal(recorded, replayed, tolerance):
        yield FieldDifference(path, recorded, replayed)


def _are_equal(one: JSON, other: JSON, tolerance: float) -> bool:
    if _is_number(one) and _is_number(other):
        return one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and one == other


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
