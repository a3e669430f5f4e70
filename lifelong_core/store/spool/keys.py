"""Which request keys may wait in the spool, and where: 16 bytes of memory for each, however many there are."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Fingerprints: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.uint64]

_RECENT = 1 << 15
"""Fingerprints in a dictionary, which takes ten times the memory; more are packed into a run."""
_LARGEST_RUN = 1 << 18
"""Larger runs are not merged: it would hold up appends for more than some 20 ms."""


class _Run(NamedTuple):
    """Fingerprints, sorted, and the place of each; all are gone when the newest segment is."""

    fingerprints: Fingerprints
    places: Places
    newest: int


class KeyIndex:
    """Fingerprints of keys and their places (segment, offset of the record).

    A few sorted runs, each at least twice as long as the next unless they are long enough: so a search looks into few,
    and each key is merged a few times only.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._runs: list[_Run] = []
        self._segments: list[int] = []
        """Numbers of segments. A place holds the position in this list, for which 32 bits are enough."""
        self._positions: dict[int, int] = {}

    def add(self, fingerprints: Sequence[int], segment: int, offset: int) -> None:
        """The keys of one record."""
        place = self._place(segment, offset)
        self._recent.update(dict.fromkeys(fingerprints, place))
        if len(self._recent) >= _RECENT:
            recent, self._recent = self._recent, {}
            keys, places = (np.fromiter(some, np.uint64, len(recent)) for some in (recent, recent.values()))
            self._push(_sorted(keys, places, segment))

    def add_segment(self, fingerprints: Fingerprints, segment: int, offsets: NDArray[np.uint32]) -> None:
        """All keys of one segment."""
        if fingerprints.size:
            places = np.uint64(self._place(segment, 0)) + offsets.astype(np.uint64)
            self._push(_sorted(fingerprints, places, segment))

    def find(self, wanted: Sequence[int]) -> list[tuple[int, int, int]]:
        """The places of these fingerprints: (position in `wanted`, segment, offset) for each; segments may be gone."""
        if not wanted:
            return []
        found = [(i, self._recent[one]) for i, one in enumerate(wanted) if one in self._recent]
        values = np.array(wanted, np.uint64)
        for run in self._runs:
            start = run.fingerprints.searchsorted(values)
            end = run.fingerprints.searchsorted(values, side="right")
            for i in np.flatnonzero(end > start).tolist():
                found += [(i, place) for place in run.places[start[i] : end[i]].tolist()]
        return [(i, self._segments[place >> 32], place & 0xFFFF_FFFF) for i, place in found]

    def forget_before(self, segment: int) -> None:
        """Segments below this one are gone; their keys go with the last segment of their run."""
        self._runs = [run for run in self._runs if run.newest >= segment]

    def _place(self, segment: int, offset: int) -> int:
        position = self._positions.setdefault(segment, len(self._segments))
        if position == len(self._segments):
            self._segments.append(segment)
        return position << 32 | offset

    def _push(self, run: _Run) -> None:
        while self._runs and self._runs[-1].places.size < 2 * run.places.size <= _LARGEST_RUN:
            before = self._runs.pop()
            run = _sorted(
                np.concatenate((before.fingerprints, run.fingerprints)),
                np.concatenate((before.places, run.places)),
                max(before.newest, run.newest),
            )
        self._runs.append(run)


def _sorted(fingerprints: Fingerprints, places: Places, newest: int) -> _Run:
    # Stable: merges two sorted halves faster.
    order = np.argsort(fingerprints, kind="stable")
    return _Run(fingerprints[order], places[order], newest)
