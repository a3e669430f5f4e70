"""View of the spool in one process: its segments, updated by reading new records; and its state."""

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from lifelong_core.store.log.records import RequestKey, StoredRequest
from lifelong_core.store.spool.segments import Segment, segment_numbers


class Contents:
    """The segments of a folder, oldest first.

    Args:
        folder: of the spool.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: int | None = None
        """Number of the newest segment at the latest listing; it may be deleted since. None: never listed."""
        self._segments: dict[int, Segment] = {}

    @property
    def newest(self) -> Segment | None:
        """The segment for appends; None: there is none."""
        return next(reversed(self._segments.values()), None)

    @property
    def bytes(self) -> int:
        """Size of all segments."""
        return sum(segment.size for segment in self._segments.values())

    @property
    def predictions(self) -> int:
        """Number of predictions in all whole records, delivered or not."""
        return sum(segment.predictions for segment in self._segments.values())

    def prepare(self) -> None:
        """Read the existing segments on the first call, without the lock, so that other processes do not wait.

        Raises:
            OSError: the folder cannot be read.
        """
        if self._last is None:
            # A delivery may delete a segment during the read.
            with contextlib.suppress(FileNotFoundError):
                self._list()
                if self.newest is not None:
                    self.newest.read_ahead()

    def refresh(self, last: int) -> None:
        """Read the records that other processes appended; the caller holds the lock.

        Args:
            last: number of the newest segment ever created.

        Raises:
            OSError: the folder cannot be read.
        """
        if last != self._last or not self._are_there():
            self._list()
            self._last = last
        newest = self.newest
        if newest is not None and newest.path.stat().st_size != newest.size:
            newest.catch_up()

    def begin(self, number: int) -> Segment:
        """Register a new segment; it takes all further records."""
        if self.newest is not None:
            # The file only saves time: without it, a process that starts later reads the segment.
            with contextlib.suppress(OSError):
                self.newest.close()
        self._last = number
        self._segments[number] = Segment(self._folder, number)
        return self._segments[number]

    def drop_newest(self) -> None:
        """Remove the newest segment, whose file was deleted empty."""
        self._segments.popitem()

    def find(self, keys: Sequence[RequestKey], digests: Sequence[int]) -> dict[RequestKey, StoredRequest]:
        """Return the requests that are in the spool.

        Args:
            keys: of the requests.
            digests: of the keys, in the same order.

        Raises:
            OSError: a segment cannot be read.
        """
        wanted = np.array(digests, np.uint64)
        keys_of: defaultdict[tuple[int, int], set[RequestKey]] = defaultdict(set)
        for number, segment in self._segments.items():
            for position, offset in segment.find(wanted):
                keys_of[number, offset].add(keys[position])
        return {
            entry.request: StoredRequest(entry.request, entry.body_digest, entry.predictions)
            for (number, offset), keys_there in keys_of.items()
            for entry in self._segments[number].entries(offset)
            # Another key may have the same digest.
            if entry.request in keys_there
        }

    def _are_there(self) -> bool:
        """Whether the files of the oldest and the newest segment still exist."""
        newest, oldest = self.newest, next(iter(self._segments.values()), None)
        if newest is None or oldest is None:
            return True
        return newest.path.exists() and (oldest is newest or oldest.path.exists())

    def _list(self) -> None:
        """Update the list of the segments, and read all but the newest."""
        known = self._segments
        numbers = segment_numbers(self._folder)
        self._segments = {number: known.get(number) or Segment(self._folder, number) for number in numbers}
        for number in numbers[:-1]:
            self._segments[number].complete()


@dataclass(frozen=True)
class SpoolState:
    """Size and content of the spool.

    Attributes:
        bytes: size of the segments, the damaged bytes and the refused entries.
        maximum_bytes: upper bound of `bytes`.
        predictions: number of undelivered predictions.
        oldest: time of the oldest of them; None: there are none.
        damaged_records: number of damaged pieces ever set aside, torn tails included.
        refused_records: number of entries that the log ever refused.
    """

    bytes: int
    maximum_bytes: int
    predictions: int
    oldest: datetime | None
    damaged_records: int
    refused_records: int
