"""Helpers of the spool tests: different entries, and delivery of all that wait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lifelong_core.store import LogEntry
from lifelong_core.store.spool.segments import segment_numbers, segment_path
from lifelong_core.store.spool.spool import Spool
from tests.unit.store.samples import entry

MAXIMUM_BYTES = 10_000_000


def open_spool(folder: Path, **options: Any) -> Spool:
    """As a process that has just started."""
    return Spool(folder, **{"maximum_bytes": MAXIMUM_BYTES, **options})


def requests(count: int, *, prefix: str = "r") -> list[LogEntry]:
    """Entries of one to three predictions; every other one has a request key."""
    return [entry(f"{prefix}{i}" if i % 2 else None, predictions=1 + i % 3) for i in range(count)]


def filled(folder: Path, entries: list[LogEntry], **options: Any) -> Spool:
    """A spool in which these wait, each in a record of its own."""
    spool = open_spool(folder, **options)
    for one in entries:
        assert spool.append([one]) == (True,)
    return spool


def drain(
    spool: Spool, *, limit: int = 1000, write: Callable[[Sequence[LogEntry]], object] | None = None
) -> list[LogEntry]:
    """Everything that waits, in the order in which it comes; fails if there is no end to it."""
    taken: list[LogEntry] = []

    def take(entries: Sequence[LogEntry]) -> None:
        if write is not None:
            write(entries)
        taken.extend(entries)

    for _ in range(10_000):
        if not spool.deliver(take, limit=limit):
            return taken
    raise AssertionError("the delivery does not come to an end")


def segments(folder: Path) -> list[Path]:
    """The files with records, oldest first."""
    return [segment_path(folder, number) for number in segment_numbers(folder)]
