"""Dead letters: damaged bytes, and entries that the log refuses, each with the reason.

They are in files that the product never deletes, and do not block later entries.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.encoding import decode_entries
from lifelong_core.store.spool.framing import (
    ENTRIES,
    REFUSED,
    Record,
    append_bytes,
    pack_record,
    whole_records,
)

_FILE = 0
"""File number in the checksums of the records; no segment has it."""
_HEAD = struct.Struct("<BI")
"""Kind of the refused record; length of the reason in bytes."""


class DeadLetterFile:
    """An append-only file of records; one process appends at a time.

    Args:
        path: of the file.
        is_synced: whether each append waits for the disk.
    """

    def __init__(self, path: Path, *, is_synced: bool) -> None:
        self._path = path
        self._is_synced = is_synced
        self._counted = (0, 0)
        """Size of the file in bytes, and its number of records, at the latest count."""

    def add(self, record: Record) -> None:
        """Append a record; its offset is set here.

        Raises:
            OSError: it cannot be written.
        """
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            size = os.fstat(descriptor).st_size
            data = pack_record(record._replace(offset=size), file=_FILE)
            append_bytes(descriptor, data, size=size, is_synced=self._is_synced)
        finally:
            os.close(descriptor)

    def size(self) -> int:
        """Bytes of the file.

        Raises:
            OSError: the folder cannot be read.
        """
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def count(self) -> int:
        """Number of records in the file.

        Raises:
            OSError: it cannot be read.
        """
        size = self.size()
        if size != self._counted[0]:
            self._counted = (size, sum(1 for _ in self.records()))
        return self._counted[1]

    def records(self) -> Iterator[Record]:
        """The records, oldest first.

        Raises:
            OSError: it cannot be read.
        """
        if size := self.size():
            with self._path.open("rb") as stream:
                yield from whole_records(stream, file=_FILE, offset=0, size=size)


@dataclass(frozen=True)
class DeadLetter:
    """A record that the log refused.

    Attributes:
        reason: message of the refusal.
        entries: the refused entries; empty if a newer version of the product wrote them in an unknown encoding.
    """

    reason: str
    entries: tuple[LogEntry, ...]


def refused_record(record: Record, reason: str) -> Record:
    """Return the record that stores a refused record and the reason."""
    text = reason.encode()
    body = _HEAD.pack(record.kind, len(text)) + text + record.body
    return record._replace(kind=REFUSED, body=body)


def read_dead_letter(record: Record) -> DeadLetter:
    """Decode a record of `refused_record`."""
    kind, length = _HEAD.unpack_from(record.body)
    reason, body = record.body[_HEAD.size : _HEAD.size + length], record.body[_HEAD.size + length :]
    entries = decode_entries(body, record.keys) if kind == ENTRIES else []
    return DeadLetter(reason.decode(), tuple(entries))
