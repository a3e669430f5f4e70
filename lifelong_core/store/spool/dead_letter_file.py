"""Files of undeliverable content: damaged bytes and refused entries. The product never deletes them."""

import os
from collections.abc import Iterator
from pathlib import Path

from lifelong_core.runtime.file_modes import PRIVATE_FILE
from lifelong_core.store.spool.framing import Record, pack_record
from lifelong_core.store.spool.segments import whole_records
from lifelong_core.store.spool.writing import append_bytes

_FILE = 0
"""File number in the checksums of the records; no segment has it."""


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

    def add(self, body: bytes, *, kind: int, keys: int = 0, predictions: int = 0) -> None:
        """Append a record.

        Raises:
            OSError: it cannot be written.
        """
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            size = os.fstat(descriptor).st_size
            record = pack_record(body, kind=kind, file=_FILE, offset=size, keys=keys, predictions=predictions)
            append_bytes(descriptor, record, size=size, is_synced=self._is_synced)
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
