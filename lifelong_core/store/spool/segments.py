"""The segments of the spool: numbered files, each a sequence of records.

A process reads each segment once and then only new records. A complete segment gets a file of its keys, so that a
process that starts later need not read the segment.
"""

import errno
import hashlib
import os
import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.encoding import decode_entries, key_digests
from lifelong_core.store.spool.framing import ENTRIES, Record, leading_records, read_record, whole_records
from lifelong_core.values.errors import UnavailableError

_SUFFIX = ".segment"
_DIGITS = 20
_SEGMENT = re.compile(rf"0[0-9]{{{_DIGITS - 1}}}{re.escape(_SUFFIX)}")
"""Exactly the names that `segment_path` returns; numbers are microseconds since 1970, so the first digit is 0."""
_BUFFER_BYTES = 1 << 18
_SUMMARY = struct.Struct("<4sQQI8s")
"""Magic; size of the segment in bytes; number of its predictions; number of its keys; checksum. Then `Keys`, sorted."""
_SUMMARY_MAGIC = b"\xf1Ky\x02"
_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space on its disk."),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM), "See to it that this user can write to the folder."
    ),
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST, errno.ENOENT), "Name a folder by LIFELONG_SPOOL_DIRECTORY."
    ),
}

Keys: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint32]]
"""Digests of keys, and the offset of the record of each."""


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:0{_DIGITS}d}{_SUFFIX}"


def keys_path(folder: Path, number: int) -> Path:
    """The file of a segment's keys."""
    return segment_path(folder, number).with_suffix(".keys")


def segment_numbers(folder: Path) -> list[int]:
    """Numbers of the segments in the folder, oldest first; empty without a folder. Other files are ignored."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as fast as can be: it is asked for each micro-batch
    except FileNotFoundError:
        return []
    return sorted(int(name[:_DIGITS]) for name in names if _SEGMENT.fullmatch(name))


@dataclass
class Segment:
    """State of one segment as read by this process.

    Attributes:
        folder: of the spool.
        number: of the segment.
        path: of its file.
        size: number of bytes read.
        predictions: number of predictions in the whole records read.
        is_torn: bytes of a killed writer follow the last whole record; no record may be appended behind them.
    """

    folder: Path
    number: int
    path: Path = field(init=False)
    size: int = 0
    predictions: int = 0
    is_torn: bool = False
    _offsets: dict[int, int] = field(default_factory=dict[int, int])
    """Offset of the record of each digest of a key, until the segment is complete."""
    _index: Keys = (np.empty(0, "<u8"), np.empty(0, "<u4"))
    """The same for a complete segment, sorted by digest: 12 bytes of memory per key."""

    def __post_init__(self) -> None:
        self.path = segment_path(self.folder, self.number)

    def catch_up(self) -> None:
        """Read new records; the caller holds the lock of appends.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
            size = os.fstat(stream.fileno()).st_size
            for record in whole_records(stream, file=self.number, offset=self.size, size=size):
                self.add(record)
        self.is_torn = self.size != size
        self.size = size

    def read_ahead(self) -> None:
        """Read new whole records; other processes may append at the same time.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
            size = os.fstat(stream.fileno()).st_size
            for record in leading_records(stream, file=self.number, offset=self.size, size=size):
                self.add(record)

    def complete(self) -> None:
        """Read the rest of a segment that takes no more records, by its file of keys if that is valid.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        if not self.size:
            self._load_keys()
        if self.path.stat().st_size != self.size:
            self.catch_up()
        self._sort_keys()

    def add(self, record: Record) -> None:
        """Add a record to the counts and the keys."""
        self.size = record.end
        self.predictions += record.predictions
        if record.kind == ENTRIES and record.keys:
            self._offsets.update(dict.fromkeys(key_digests(record.body, record.keys), record.offset))

    def takes(self, size: int, segment_bytes: int) -> bool:
        """Whether a record of `size` bytes may be appended; the first one may be larger than a segment."""
        return not self.is_torn and (not self.size or self.size + size <= segment_bytes)

    def find(self, digests: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """Return (position in `digests`, offset of the record) of each digest that is in this segment."""
        matches: list[tuple[int, int]] = []
        if self._offsets:
            recent = self._offsets
            matches = [(i, recent[digest]) for i, digest in enumerate(digests.tolist()) if digest in recent]
        known, offsets = self._index
        if known.size:
            places = known.searchsorted(digests)
            hits = known.take(places, mode="clip") == digests
            if hits.any():
                matches += zip(hits.nonzero()[0].tolist(), offsets[places[hits]].tolist(), strict=True)
        return matches

    def entries(self, offset: int) -> list[LogEntry]:
        """Entries of the record at `offset`; none if it is damaged by now.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        with self.path.open("rb") as stream:
            stream.seek(offset)
            size = os.fstat(stream.fileno()).st_size
            record = read_record(stream, file=self.number, offset=offset, size=size)
        return [] if record is None else decode_entries(record.body, record.keys)

    def close(self) -> None:
        """Take no more records, and write the file of the keys.

        Raises:
            OSError: it cannot be written; a process that starts later then reads the segment.
        """
        self._sort_keys()
        keys, offsets = self._index
        content = keys.tobytes() + offsets.tobytes()
        summary = (self.size, self.predictions, keys.size)
        header = _SUMMARY.pack(_SUMMARY_MAGIC, *summary, _checksum(self.number, summary, content))
        descriptor = os.open(
            keys_path(self.folder, self.number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(header + content)

    def _load_keys(self) -> None:
        """Read the file of the keys, if it is valid, in place of the segment; the result equals that of `catch_up`."""
        try:
            data = keys_path(self.folder, self.number).read_bytes()
        except FileNotFoundError:
            return
        if len(data) < _SUMMARY.size:
            return
        magic, *summary, checksum = _SUMMARY.unpack_from(data)
        content = data[_SUMMARY.size :]
        size, predictions, keys = summary
        if magic == _SUMMARY_MAGIC and checksum == _checksum(self.number, (size, predictions, keys), content):
            self.size, self.predictions = size, predictions
            self._index = np.frombuffer(content, "<u8", keys), np.frombuffer(content, "<u4", keys, 8 * keys)

    def _sort_keys(self) -> None:
        """Move the keys to `_index`."""
        if self._offsets:
            known, places = self._index
            # Not empty if no newer segment could be begun, so that a complete one took more records.
            keys = dict(zip(known.tolist(), places.tolist(), strict=True)) | self._offsets
            digests, offsets = (
                np.fromiter(keys, "<u8", len(keys)),
                np.fromiter(keys.values(), "<u4", len(keys)),
            )
            order = digests.argsort()
            self._index, self._offsets = (digests[order], offsets[order]), {}


def _checksum(number: int, summary: tuple[int, int, int], content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8, key=repr((number, summary)).encode()).digest()


class SpoolFullError(UnavailableError):
    """The spool has reached its largest size."""


@contextmanager
def translate_error(folder: Path) -> Generator[None, None, None]:
    """Translate operating system errors about the spool's files into UnavailableError.

    Raises:
        UnavailableError: a call in the block failed.
    """
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "Look after its disk.")
        raise UnavailableError(f"the spool {folder} cannot be used: {error.strerror}.", hint=hint) from error
