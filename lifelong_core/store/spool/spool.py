"""Bounded queue of predictions on the local disk, shared by the processes of a machine, for database outages."""

import contextlib
import os
import struct
import threading
import time
import weakref
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.files import sync_to_disk
from lifelong_core.store.log.records import LogEntry, RequestKey, StoredRequest
from lifelong_core.store.log.writing import check_entries
from lifelong_core.store.spool.contents import Contents, SpoolState
from lifelong_core.store.spool.dead_letters import DeadLetter, DeadLetterFile, read_dead_letter
from lifelong_core.store.spool.delivery import SpoolDelivery, Write
from lifelong_core.store.spool.encoding import EncodedEntries, encode_entries, key_digest, key_digests
from lifelong_core.store.spool.framing import ENTRIES, HEADER_BYTES, Record, append_bytes, pack_record
from lifelong_core.store.spool.locks import FileLock, LockBusyError
from lifelong_core.store.spool.segments import (
    Segment,
    SpoolFullError,
    segment_numbers,
    segment_path,
    translate_error,
)
from lifelong_core.values.errors import UnavailableError

PATIENCE_SECONDS = 1.0
"""Longest wait of a call for the lock of appends."""
FULL_RETRY_SECONDS = 5
_NUMBER = struct.Struct("<Q")
"""Content of the lock file: number of the newest segment ever created, by which processes detect a new segment."""


class Spool:
    """A spool in one folder on a local disk. Threads and processes may share it; one object per process is enough.

    Delivery is first in, first out across all processes. The first append creates the folder.

    Args:
        folder: of the spool.
        maximum_bytes: largest size; appends beyond it are refused.
        durability: failures that a returned append survives: the end of any process, or a power failure, too.
        segment_bytes: size of a segment at which the next one begins.
    """

    def __init__(
        self,
        folder: Path,
        *,
        maximum_bytes: int,
        durability: Literal["process", "power"] = "process",
        segment_bytes: int = 4 * 2**20,
    ) -> None:
        self._folder = folder
        self._maximum_bytes = maximum_bytes
        self._segment_bytes = segment_bytes
        self._is_synced = durability == "power"
        self._damaged = DeadLetterFile(folder / "damaged", is_synced=self._is_synced)
        self._refused = DeadLetterFile(folder / "refused", is_synced=self._is_synced)
        self._lock = FileLock(folder / "lock")
        self._delivery = SpoolDelivery(
            folder, appending=self._locked, damaged=self._damaged, refused=self._refused
        )
        self._seen: Path | None = None
        """A segment that existed at the latest check of `is_empty`."""
        self._begin_anew()
        _spools.add(self)

    def append(self, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
        """Append the entries, all or none; they are in the file when this returns.

        Returns:
            For each entry whether it was appended. False: a request with its key is in the spool, or earlier in
            `entries`; `find` returns its answer.

        Raises:
            InvalidInputError: an entry is not valid for the log.
            SpoolFullError: the spool would exceed `maximum_bytes`.
            UnavailableError: the folder cannot be written, or the lock was not free in time.
        """
        if not entries:
            return ()
        check_entries(entries)
        encoded = encode_entries(entries)
        with self._locked(is_current=True) as descriptor:
            taken = self._are_new(entries, encoded)
            new = [entry for entry, is_new in zip(entries, taken, strict=True) if is_new]
            if new:
                self._add(encoded if len(new) == len(entries) else encode_entries(new), descriptor)
        return taken

    def find(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the requests with these keys that are in the spool, appended by any process.

        Search the log after the spool, not before: a request may be delivered between the two searches.

        Raises:
            UnavailableError: the folder cannot be read, or the lock was not free in time.
        """
        if not keys or self.is_empty():
            return {}
        with self._locked(is_current=True):
            return self._contents.find([*keys], [*map(key_digest, keys)])

    def is_empty(self) -> bool:
        """Whether the spool has no segment; cheap enough for each micro-batch.

        Raises:
            UnavailableError: the folder cannot be read.
        """
        with translate_error(self._folder):
            seen = self._seen
            if seen is not None and seen.exists():
                return False
            numbers = segment_numbers(self._folder)
            self._seen = segment_path(self._folder, numbers[0]) if numbers else None
            return not numbers

    def deliver(self, write: Write, *, limit: int = 1000) -> int | None:
        """Pass the oldest entries to `write`, and delete them when it has returned.

        Written entries may be passed again: after a crash, or when another process takes over the delivery.

        Args:
            write: writes all entries, or raises.
            limit: number of predictions from which on no further record is passed.

        Returns:
            The number of predictions written. 0: the spool is empty. None: another process is delivering.

        Raises:
            UnavailableError: the folder cannot be used; nothing is lost.
            Exception: any error of `write`; its entries are passed again. An entry that is refused alone
                (InvalidInputError, ConflictError) becomes a dead letter instead.
        """
        return self._delivery.run(write, limit)

    def state(self) -> SpoolState:
        """Size of the spool, number of its predictions and time of the oldest.

        Raises:
            UnavailableError: the folder cannot be read, or the lock was not free in time.
        """
        predictions, oldest, size = 0, None, 0
        if not self.is_empty():
            with self._locked(is_current=True):
                delivered, oldest = self._delivery.delivered_predictions()
                predictions = self._contents.predictions - delivered
                size = self._contents.bytes
        with translate_error(self._folder):
            return SpoolState(
                bytes=size + self._bytes_aside(),
                maximum_bytes=self._maximum_bytes,
                predictions=predictions,
                oldest=oldest,
                damaged_records=self._damaged.count(),
                refused_records=self._refused.count(),
            )

    def dead_letters(self) -> list[DeadLetter]:
        """Entries that the log refused, with the reasons, oldest first.

        Raises:
            UnavailableError: the folder cannot be read.
        """
        with translate_error(self._folder):
            return [read_dead_letter(record) for record in self._refused.records()]

    def close(self) -> None:
        """Free the memory; a later call reads the files again."""
        with self._mutex:
            self._contents = Contents(self._folder)

    def _begin_anew(self) -> None:
        """Reset the state in memory, also in a forked child: its mutex may be held by a thread that was not forked."""
        self._mutex = threading.Lock()
        self._contents = Contents(self._folder)

    def _are_new(self, entries: Sequence[LogEntry], encoded: EncodedEntries) -> tuple[bool, ...]:
        keys = [entry.request for entry in entries if entry.request is not None]
        taken = set(self._contents.find(keys, key_digests(encoded.body, encoded.keys)))
        are_new: list[bool] = []
        for entry in entries:
            are_new.append(entry.request not in taken)
            if entry.request is not None:
                taken.add(entry.request)
        return tuple(are_new)

    def _add(self, encoded: EncodedEntries, descriptor: int) -> None:
        size = HEADER_BYTES + len(encoded.body)
        self._check_room(size)
        segment = self._contents.newest
        if segment is None or not segment.takes(size, self._segment_bytes):
            segment = self._begin_segment(descriptor)
        record = Record(ENTRIES, *encoded, offset=segment.size)
        data = pack_record(record, file=segment.number)
        file = os.open(segment.path, os.O_WRONLY | os.O_APPEND)
        try:
            append_bytes(file, data, size=segment.size, is_synced=self._is_synced)
        except BaseException:
            if not segment.size:
                # Without the file, the spool is empty again. An empty file that remains does no harm.
                with contextlib.suppress(OSError):
                    segment.path.unlink()
                    self._contents.drop_newest()
            raise
        finally:
            os.close(file)
        segment.add(record)

    def _check_room(self, size: int) -> None:
        if self._contents.bytes + self._bytes_aside() + size > self._maximum_bytes:
            raise SpoolFullError(
                f"the spool {self._folder} is full: it may hold {self._maximum_bytes} bytes.",
                hint="Bring the database back, or raise LIFELONG_MAXIMUM_SPOOL_BYTES.",
                retry_after_seconds=FULL_RETRY_SECONDS,
            )

    def _bytes_aside(self) -> int:
        return self._damaged.size() + self._refused.size()

    def _begin_segment(self, descriptor: int) -> Segment:
        newest = self._contents.newest
        last = max(_last_number(descriptor), newest.number if newest is not None else 0)
        # Numbers are never reused, even if the lock file was lost or deleted: the saved progress in an older segment
        # must not apply to this one.
        number = max(last + 1, time.time_ns() // 1000)
        os.pwrite(descriptor, _NUMBER.pack(number), 0)
        path = segment_path(self._folder, number)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        if self._is_synced:
            sync_to_disk(self._folder)
        return self._contents.begin(number)

    @contextmanager
    def _locked(self, *, is_current: bool = False) -> Generator[int, None, None]:
        """Exclude appends of all threads and processes in the block; yield the descriptor of the lock file.

        With `is_current`, `_contents` is up to date in the block.
        """
        if not self._mutex.acquire(timeout=PATIENCE_SECONDS):
            raise self._busy()
        try:
            with translate_error(self._folder):
                if is_current:
                    self._contents.prepare()
                with self._lock.hold(until=time.monotonic() + PATIENCE_SECONDS) as descriptor:
                    if is_current:
                        self._contents.refresh(_last_number(descriptor))
                    yield descriptor
        except LockBusyError as error:
            raise self._busy() from error
        finally:
            self._mutex.release()

    def _busy(self) -> UnavailableError:
        return UnavailableError(
            f"another process held the spool {self._folder} for {PATIENCE_SECONDS:g} s.",
            hint="Try again; if it stays, find the worker that hangs.",
        )


def _last_number(descriptor: int) -> int:
    data = os.pread(descriptor, _NUMBER.size, 0)
    return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else 0


_spools: weakref.WeakSet[Spool] = weakref.WeakSet()


def _begin_anew_in_child() -> None:
    for spool in _spools:
        spool._begin_anew()  # pyright: ignore[reportPrivateUsage] - private to this module


os.register_at_fork(after_in_child=_begin_anew_in_child)
