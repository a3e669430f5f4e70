"""The segments of the spool: numbered files, each a sequence of records.

A process reads each segment once and then only new records. A complete segment gets a file of its keys, so that a
process that starts later need not read the segment.
"""

import contextlib
import errno
import hashlib
import os
import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.spool.encoding import key_digests
from lifelong_core.store.spool.framing import ENTRIES, Record, find_record, read_record
from lifelong_core.store.spool.keys import KeyIndex
from lifelong_core.values.errors import UnavailableError

_SUFFIX = ".segment"
_KEYS_SUFFIX = ".keys"
_DIGITS = 20
_SEGMENT = re.compile(rf"0[0-9]{{{_DIGITS - 1}}}{re.escape(_SUFFIX)}")
"""Exactly the names that `segment_path` returns; numbers are microseconds since 1970, so the first digit is 0."""
_BUFFER_BYTES = 1 << 18
_SUMMARY = struct.Struct("<4sQQI8s")
"""Magic; size of the segment in bytes; number of its predictions; number of its keys; checksum."""
_SUMMARY_MAGIC = b"\xf1Ky\x01"
_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space on its disk."),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM), "See to it that this user can write to the folder."
    ),
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST, errno.ENOENT), "Name a folder by LIFELONG_SPOOL_DIRECTORY."
    ),
}


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:0{_DIGITS}d}{_SUFFIX}"


def keys_path(folder: Path, number: int) -> Path:
    """The file of a segment's keys."""
    return folder / f"{number:0{_DIGITS}d}{_KEYS_SUFFIX}"


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
        key_parts: digests of the keys of each record, and its offset; None once there is a newer segment.
    """

    folder: Path
    number: int
    path: Path = field(init=False)
    size: int = 0
    predictions: int = 0
    is_torn: bool = False
    key_parts: list[tuple[tuple[int, ...], int]] | None = field(
        default_factory=list[tuple[tuple[int, ...], int]]
    )

    def __post_init__(self) -> None:
        self.path = segment_path(self.folder, self.number)

    def catch_up(self, index: KeyIndex) -> None:
        """Read new records; the caller holds the lock of appends.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
            size = os.fstat(stream.fileno()).st_size
            for record in whole_records(stream, file=self.number, offset=self.size, size=size):
                self.add(record, index)
        self.is_torn = self.size != size
        self.size = size

    def read_ahead(self, index: KeyIndex) -> None:
        """Read new whole records; other processes may append at the same time.

        Raises:
            OSError: the segment is gone or cannot be read.
        """
        with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(self.size)
            while record := read_record(stream, file=self.number, offset=self.size, size=size):
                self.add(record, index)

    def add(self, record: Record, index: KeyIndex) -> None:
        """Add a record to the counts and the index."""
        self.size = record.end
        self.predictions += record.predictions
        if record.kind == ENTRIES and record.keys:
            keys = key_digests(record.body, record.keys)
            index.add(keys, self.number, record.offset)
            if self.key_parts is not None:
                self.key_parts.append((keys, record.offset))

    def takes(self, size: int, segment_bytes: int) -> bool:
        """Whether a record of `size` bytes may be appended; the first one may be larger than a segment."""
        return not self.is_torn and (not self.size or self.size + size <= segment_bytes)

    def save_keys(self) -> None:
        """Write the file of the keys, if all are known; call it for a complete segment.

        Raises:
            OSError: it cannot be written; a process that starts later then reads the segment.
        """
        if self.key_parts is None:
            return
        keys = np.array([key for part, _ in self.key_parts for key in part], "<u8")
        offsets = np.array([offset for part, offset in self.key_parts for _ in part], "<u4")
        content = keys.tobytes() + offsets.tobytes()
        summary = (self.size, self.predictions, keys.size)
        header = _SUMMARY.pack(_SUMMARY_MAGIC, *summary, _checksum(self.number, summary, content))
        descriptor = os.open(
            keys_path(self.folder, self.number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(header + content)

    def load_keys(self, index: KeyIndex) -> None:
        """Read the file of the keys, if it is valid, in place of the segment; the result equals that of `catch_up`.

        Raises:
            OSError: the file cannot be read.
        """
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
            digests, offsets = (
                np.frombuffer(content, "<u8", keys),
                np.frombuffer(content, "<u4", keys, 8 * keys),
            )
            index.add_segment(digests, self.number, offsets)


def whole_records(stream: IO[bytes], *, file: int, offset: int, size: int) -> Generator[Record, None, None]:
    """Yield the whole records of a file from `offset` on; skip damaged bytes between them."""
    stream.seek(offset)
    while offset < size:
        record = read_record(stream, file=file, offset=offset, size=size)
        if record is None:
            stream.seek(offset)
            next_one = find_record(stream.read(size - offset), file=file, offset=offset, after=offset)
            if next_one is None:
                return
            offset = next_one
            stream.seek(offset)
        else:
            yield record
            offset = record.end


def _checksum(number: int, summary: tuple[int, int, int], content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8, key=repr((number, summary)).encode()).digest()


def append_bytes(descriptor: int, data: bytes, *, size: int, is_synced: bool) -> None:
    """Append all bytes to a file, or none; a kill during the call leaves a torn tail.

    Args:
        descriptor: of the file, opened for appending.
        data: the bytes to append.
        size: of the file before the append.
        is_synced: whether the bytes are on the disk, not only in the kernel, when this returns.

    Raises:
        OSError: the bytes cannot be written.
    """
    try:
        written = os.write(descriptor, data)
        # When a disk fills up, the first write is partial and only the next one fails.
        while written < len(data):
            written += os.write(descriptor, data[written:])
        if is_synced:
            os.fdatasync(descriptor)
    except BaseException:
        # If the truncation fails, too, the bytes are a torn tail, which every reader recognises.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


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
