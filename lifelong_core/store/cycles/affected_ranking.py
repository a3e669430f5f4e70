"""The most costly predictions of a period, in bounded memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

_SPARE = 65_536
"""Number of entries beyond the limit that are kept before the least costly ones are dropped."""
_ENTRY = np.dtype([("cost", "<f8"), ("high", "<u8"), ("low", "<u8"), ("decision", "<i4")])


@dataclass(frozen=True)
class RankPosition:
    """A position in the list, which is sorted by falling cost, then by id."""

    cost: float
    id: UUID

    def __str__(self) -> str:
        """The position as text that `parse` reads."""
        return f"{self.cost!r}:{self.id}"

    @classmethod
    def parse(cls, text: str, *, field: str) -> Self:
        """The position in a text of `str`.

        Raises:
            InvalidInputError: the text is not a position.
        """
        cost, _, identity = text.partition(":")
        try:
            position = cls(float(cost), UUID(identity))
        except ValueError:
            position = None
        if position is None or not math.isfinite(position.cost):
            raise InvalidInputError(
                f"{text[:80]!r} is not a position in this list.",
                field=field,
                hint="Give `next` of the page before.",
            )
        return position


@dataclass(frozen=True)
class RankedPrediction:
    """An affected prediction in the list."""

    position: RankPosition
    new_decision: int


class Ranking:
    """The most costly of the added predictions, 28 bytes for each.

    Args:
        limit: largest number of predictions; None: all.
        after: only predictions after this position; None: from the beginning.
    """

    def __init__(self, limit: int | None = None, after: RankPosition | None = None) -> None:
        self._limit = limit
        self._after = after
        self._parts: list[NDArray[np.void]] = []
        self._kept = 0

    def add(self, ids: Sequence[UUID], costs: Floats, new_decisions: Integers) -> None:
        """Add predictions, with their expected costs and the decisions of the new head, each of shape (N,)."""
        entries = np.empty(len(ids), _ENTRY)
        halves = np.frombuffer(b"".join(one.bytes for one in ids), ">u8").reshape(-1, 2)
        entries["cost"], entries["decision"] = costs, new_decisions
        entries["high"], entries["low"] = halves[:, 0], halves[:, 1]
        if self._after is not None:
            entries = entries[_is_behind(entries, self._after)]
        self._parts.append(entries)
        self._kept += entries.size
        # One entry beyond the limit shows whether more follow.
        if self._limit is not None and self._kept > self._limit + 1 + _SPARE:
            self._parts = [self._sorted()[: self._limit + 1]]
            self._kept = self._parts[0].size

    def __iter__(self) -> Iterator[RankedPrediction]:
        """The most costly predictions, at most `limit`."""
        for entry in self._sorted()[: self._limit]:
            cost, high, low, decision = entry.item()
            yield RankedPrediction(RankPosition(cost, UUID(int=(high << 64) | low)), decision)

    @property
    def has_more(self) -> bool:
        """Whether more than `limit` predictions were added."""
        return self._limit is not None and self._kept > self._limit

    def _sorted(self) -> NDArray[np.void]:
        entries = np.concatenate([np.empty(0, _ENTRY), *self._parts])
        return entries[np.lexsort((entries["low"], entries["high"], -entries["cost"]))]


def _is_behind(entries: NDArray[np.void], after: RankPosition) -> NDArray[np.bool_]:
    high, low = np.uint64(after.id.int >> 64), np.uint64(after.id.int & (2**64 - 1))
    is_later = (entries["high"] > high) | ((entries["high"] == high) & (entries["low"] > low))
    return (entries["cost"] < after.cost) | ((entries["cost"] == after.cost) & is_later)
