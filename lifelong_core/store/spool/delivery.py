"""Delivery from the spool: one process at a time writes the oldest records to the log and then deletes them.

The progress in the oldest segment is stored; the next delivery, in any process, continues there.
"""

import contextlib
import hashlib
import os
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.dead_letters import DeadLetterFile, refused_record
from lifelong_core.store.spool.encoding import decode_entries, encode_entries
from lifelong_core.store.spool.framing import (
    DAMAGED,
    ENTRIES,
    Record,
    find_record,
    leading_records,
    whole_records,
)
from lifelong_core.store.spool.locks import FileLock, LockBusyError
from lifelong_core.store.spool.segments import (
    keys_path,
    segment_numbers,
    segment_path,
    translate_error,
)
from lifelong_core.values.errors import ConflictError, InvalidInputError

Write: TypeAlias = Callable[[Sequence[LogEntry]], object]

_BUFFER_BYTES = 1 << 18
_UNKNOWN = "this version of the product does not know this kind of record"
_FIELDS = struct.Struct("<QQQ")


class Progress(NamedTuple):
    """A place in a segment; of two in one segment, the later is the greater.

    Attributes:
        segment: its number.
        offset: of the first undelivered byte.
        predictions: number delivered so far.
    """

    segment: int
    offset: int = 0
    predictions: int = 0

    @classmethod
    def load(cls, path: Path, segment: int) -> "Progress":
        """Read the progress in this segment; its beginning if the file is damaged or belongs to another segment.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        fields = data[: _FIELDS.size]
        if len(fields) < _FIELDS.size or data[_FIELDS.size :] != _checksum(fields):
            return cls(segment)
        saved = cls(*_FIELDS.unpack(fields))
        return saved if saved.segment == segment else cls(segment)

    def save(self, descriptor: int) -> None:
        """Overwrite an open file with this progress. Not synced: after a power failure, some records come again.

        Raises:
            OSError: it cannot be written.
        """
        fields = _FIELDS.pack(*self)
        os.pwrite(descriptor, fields + _checksum(fields), 0)


def _checksum(fields: bytes) -> bytes:
    return hashlib.blake2b(fields, digest_size=8).digest()


class SpoolDelivery:
    """Delivers the records of the spool in the order of their appends.

    Args:
        folder: of the spool.
        appending: holds the lock of appends, so that no append is in progress.
        damaged: file for bytes that are no record.
        refused: file for entries that the log refuses.
    """

    def __init__(
        self,
        folder: Path,
        *,
        appending: Callable[[], AbstractContextManager[object]],
        damaged: DeadLetterFile,
        refused: DeadLetterFile,
    ) -> None:
        self._folder = folder
        self._appending = appending
        self._damaged = damaged
        self._refused = refused
        self._path = folder / "delivery"
        self._lock = FileLock(self._path)
        self._reached: Progress | None = None

    def run(self, write: Write, limit: int) -> int | None:
        """Deliver the next records; see `Spool.deliver`."""
        with contextlib.ExitStack() as stack:
            try:
                with translate_error(self._folder):
                    descriptor = stack.enter_context(self._lock.hold(until=time.monotonic()))
            except LockBusyError:
                return None
            while (progress := self.progress()) is not None:
                if delivered := self._step(progress, descriptor, write, limit):
                    return delivered
        return 0

    def progress(self) -> Progress | None:
        """Delivery progress in the oldest segment; None: there is no segment.

        Raises:
            UnavailableError: the folder cannot be read.
        """
        with translate_error(self._folder):
            numbers = segment_numbers(self._folder)
            saved = Progress.load(self._path, numbers[0]) if numbers else None
        reached = self._reached
        if saved is None or reached is None or reached.segment != saved.segment:
            return saved
        return max(saved, reached)

    def delivered_predictions(self) -> tuple[int, datetime | None]:
        """Number of delivered predictions in the present segments, and the time of the next prediction.

        Raises:
            UnavailableError: the folder cannot be read.
        """
        progress = self.progress()
        if progress is None:
            return 0, None
        with translate_error(self._folder), segment_path(self._folder, progress.segment).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            records = whole_records(stream, file=progress.segment, offset=progress.offset, size=size)
            entries = (entry for record in records for entry in _entries(record))
            first = next(entries, None)
        return progress.predictions, None if first is None else logged_at(first.predictions[0].id)

    def _step(self, progress: Progress, descriptor: int, write: Write, limit: int) -> int:
        """Deliver some records of the oldest segment; return the number of predictions written."""
        with translate_error(self._folder):
            size = self._settled_size(progress.segment)
            if progress.offset > size:
                # The file was replaced from outside.
                progress = Progress(progress.segment)
            records = self._read(progress, size, limit)
            if not records:
                if progress.offset < size:
                    self._save(self._put_damage_aside(progress, size), descriptor)
                else:
                    self._forget(progress)
                return 0
        # Stored only after all is written: records delivered again after a failed `write` must not be stored twice.
        refusals = [refused_record(record, _UNKNOWN) for record in records if record.kind != ENTRIES]
        entries = [entry for record in records for entry in _entries(record)]
        written = _write(entries, write, refusals) if entries else 0
        with translate_error(self._folder):
            for refusal in refusals:
                self._refused.add(refusal)
            taken = sum(record.predictions for record in records)
            progress = Progress(progress.segment, records[-1].end, progress.predictions + taken)
            self._save(progress, descriptor)
            if progress.offset == size:
                self._forget(progress)
        return written

    def _save(self, progress: Progress, descriptor: int) -> None:
        self._reached = progress
        # A full disk loses nothing here: after a crash, some records are delivered again.
        with contextlib.suppress(OSError):
            progress.save(descriptor)

    def _settled_size(self, number: int) -> int:
        """Size of a segment in bytes, without an append in progress, which may still be rolled back."""
        with self._appending():
            return segment_path(self._folder, number).stat().st_size

    def _read(self, progress: Progress, size: int, limit: int) -> list[Record]:
        """Return the next whole records, up to the first damaged one."""
        records: list[Record] = []
        predictions = 0
        with segment_path(self._folder, progress.segment).open("rb", buffering=_BUFFER_BYTES) as stream:
            for record in leading_records(stream, file=progress.segment, offset=progress.offset, size=size):
                records.append(record)
                predictions += record.predictions
                if predictions >= limit:
                    break
        return records

    def _put_damage_aside(self, progress: Progress, size: int) -> Progress:
        """Move bytes that are no whole record to the file of damaged bytes; return the progress behind them."""
        number, offset = progress.segment, progress.offset
        with segment_path(self._folder, number).open("rb") as stream:
            stream.seek(offset)
            data = stream.read(size - offset)
        next_record = find_record(data, file=number, offset=offset, after=offset)
        end = size if next_record is None else next_record
        try:
            self._damaged.add(Record(DAMAGED, data[: end - offset]))
        except OSError:
            # A torn tail belongs to an append that never returned: on a full disk it must not block the delivery.
            if next_record is not None:
                raise
        return Progress(number, end, progress.predictions)

    def _forget(self, progress: Progress) -> None:
        """Delete a delivered segment, unless records were appended since."""
        path = segment_path(self._folder, progress.segment)
        with self._appending():
            if path.stat().st_size == progress.offset:
                keys_path(self._folder, progress.segment).unlink(missing_ok=True)
                path.unlink()


def _write(entries: Sequence[LogEntry], write: Write, refusals: list[Record]) -> int:
    """Write the entries in one call, or in halves where the log refuses some; return the number of predictions.

    Entries that the log refuses are added to `refusals`.
    """
    try:
        write(entries)
    except (InvalidInputError, ConflictError) as error:
        if len(entries) == 1:
            refusals.append(refused_record(Record(ENTRIES, *encode_entries(entries)), str(error)))
            return 0
        half = len(entries) // 2
        return _write(entries[:half], write, refusals) + _write(entries[half:], write, refusals)
    return sum(len(entry.predictions) for entry in entries)


def _entries(record: Record) -> list[LogEntry]:
    return decode_entries(record.body, record.keys) if record.kind == ENTRIES else []
