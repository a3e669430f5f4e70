"""Index of the request keys in the spool, at 16 bytes of memory per key."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Digests: TypeAlias = NDArray[np.uint64]
Locations: TypeAlias = NDArray[np.uint64]

_RECENT = 1 << 15
"""Largest number of digests in the dictionary, which takes ten times the memory of a run."""
_LARGEST_RUN = 1 << 18
"""Larger runs are not merged: the merge would delay appends by more than about 20 ms."""


class _Run(NamedTuple):
    """Sorted digests, the location of each, and the newest segment among the locations."""

    digests: Digests
    locations: Locations
    newest: int


class KeyIndex:
    """Digests of keys and their locations (segment, offset of the record).

    It holds a few sorted runs, each at least twice as long as the next up to the largest merged length. So a search
    reads few runs, and each key is merged only a few times.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._runs: list[_Run] = []
        self._segments: list[int] = []
        """Numbers of segments. A location holds the position in this list, for which 32 bits are enough."""
        self._positions: dict[int, int] = {}

    def add(self, digests: Sequence[int], segment: int, offset: int) -> None:
        """Add the keys of one record."""
        location = self._location(segment, offset)
        self._recent.update(dict.fromkeys(digests, location))
        if len(self._recent) >= _RECENT:
            recent, self._recent = self._recent, {}
            keys, locations = (
                np.fromiter(some, np.uint64, len(recent)) for some in (recent, recent.values())
            )
            self._push(_sorted(keys, locations, segment))

    def add_segment(self, digests: Digests, segment: int, offsets: NDArray[np.uint32]) -> None:
        """Add all keys of one segment."""
        if digests.size:
            locations = np.uint64(self._location(segment, 0)) + offsets.astype(np.uint64)
            self._push(_sorted(digests, locations, segment))

    def find(self, wanted: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return each location of the digests as (position in `wanted`, segment, offset); it may be deleted by now."""
        if not wanted:
            return []
        found = [(i, self._recent[one]) for i, one in enumerate(wanted) if one in self._recent]
        values = np.array(wanted, np.uint64)
        for run in self._runs:
            start = run.digests.searchsorted(values)
            end = run.digests.searchsorted(values, side="right")
            for i in np.flatnonzero(end > start).tolist():
                found += [(i, location) for location in run.locations[start[i] : end[i]].tolist()]
        return [(i, self._segments[location >> 32], location & 0xFFFF_FFFF) for i, location in found]

    def forget_before(self, segment: int) -> None:
        """Remove runs in which all segments are deleted, that is, below `segment`."""
        self._runs = [run for run in self._runs if run.newest >= segment]

    def _location(self, segment: int, offset: int) -> int:
        position = self._positions.setdefault(segment, len(self._segments))
        if position == len(self._segments):
            self._segments.append(segment)
        return position << 32 | offset

    def _push(self, run: _Run) -> None:
        while self._runs and self._runs[-1].locations.size < 2 * run.locations.size <= _LARGEST_RUN:
            before = self._runs.pop()
            run = _sorted(
                np.concatenate((before.digests, run.digests)),
                np.concatenate((before.locations, run.locations)),
                max(before.newest, run.newest),
            )
        self._runs.append(run)


def _sorted(digests: Digests, locations: Locations, newest: int) -> _Run:
    # A stable sort merges two sorted halves faster.
    order = np.argsort(digests, kind="stable")
    return _Run(digests[order], locations[order], newest)
