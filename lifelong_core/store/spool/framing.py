"""Framing of records in a file: readers recognise whole records despite killed writers and damaged bytes.

    magic 4 | kind 1 | keys 4 | predictions 4 | body length 4 | header checksum 4 | body checksum 8 | body

Both checksums also cover the number of the file and the offset in it. So a record is valid only where it was written:
bytes of a record inside a client's logits or request id, or in a reused disk block, are not.
"""

import contextlib
import hashlib
import os
import struct
import zlib
from collections.abc import Generator
from typing import IO, NamedTuple

MAGIC = b"\xf1Ls\xb0"
"""These bytes do not occur in UTF-8 text."""

ENTRIES = 1
"""Kind of a record: log entries in the first encoding. Another encoding gets another number."""
DAMAGED = 2
"""Kind of a record: damaged bytes."""
REFUSED = 3
"""Kind of a record: a refused log entry and the reason."""

_FIELDS = struct.Struct("<4sBIII")
_CHECKS = struct.Struct("<I8s")
_LOCATION = struct.Struct("<QQ")
HEADER_BYTES = _FIELDS.size + _CHECKS.size


class Record(NamedTuple):
    """A whole record and its offset.

    Attributes:
        kind: ENTRIES, DAMAGED or REFUSED.
        body: the content.
        keys: number of request keys in the body.
        predictions: number of predictions in the body.
        offset: of its first byte in the file.
    """

    kind: int
    body: bytes
    keys: int = 0
    predictions: int = 0
    offset: int = 0

    @property
    def end(self) -> int:
        """Offset of the byte behind it."""
        return self.offset + HEADER_BYTES + len(self.body)


def pack_record(record: Record, *, file: int) -> bytes:
    """Return the bytes of a record for its offset in the file with the number `file`."""
    location = _LOCATION.pack(file, record.offset)
    fields = _FIELDS.pack(MAGIC, record.kind, record.keys, record.predictions, len(record.body))
    checks = _CHECKS.pack(zlib.crc32(location + fields), _checksum(location, record.body))
    return fields + checks + record.body


def read_record(stream: IO[bytes], *, file: int, offset: int, size: int) -> Record | None:
    """Return the record at `offset`; None: there is no whole record.

    Args:
        stream: of the file.
        file: its number.
        offset: present position of the stream.
        size: of the file in bytes; it bounds the read where a length field is damaged.
    """
    header = stream.read(HEADER_BYTES)
    length = _body_length(header, file, offset)
    if length is None or offset + HEADER_BYTES + length > size:
        return None
    return _checked(header, stream.read(length), file, offset)


def leading_records(stream: IO[bytes], *, file: int, offset: int, size: int) -> Generator[Record, None, None]:
    """Yield the whole records of a file from `offset` on, up to the first damaged bytes."""
    stream.seek(offset)
    while offset < size and (record := read_record(stream, file=file, offset=offset, size=size)):
        yield record
        offset = record.end


def whole_records(stream: IO[bytes], *, file: int, offset: int, size: int) -> Generator[Record, None, None]:
    """Yield the whole records of a file from `offset` on; skip damaged bytes between them."""
    start: int | None = offset
    while start is not None and start < size:
        for record in leading_records(stream, file=file, offset=start, size=size):
            yield record
            start = record.end
        stream.seek(start)
        start = find_record(stream.read(size - start), file=file, offset=start, after=start)


def find_record(data: bytes, *, file: int, offset: int, after: int) -> int | None:
    """Return the offset in the file of the next whole record; None: there is none.

    Args:
        data: the bytes of the file from `offset` on.
        file: its number.
        offset: of the first byte of `data`.
        after: offset in the file; the search begins behind it.
    """
    start = after + 1 - offset
    while (start := data.find(MAGIC, start)) >= 0:
        header = data[start : start + HEADER_BYTES]
        length = _body_length(header, file, offset + start)
        if length is not None:
            body = data[start + HEADER_BYTES : start + HEADER_BYTES + length]
            if _checked(header, body, file, offset + start) is not None:
                return offset + start
        start += 1
    return None


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


def _body_length(header: bytes, file: int, offset: int) -> int | None:
    """Length of the body in bytes; None: the header is invalid."""
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return None
    fields = header[: _FIELDS.size]
    check, _ = _CHECKS.unpack_from(header, _FIELDS.size)
    if check != zlib.crc32(_LOCATION.pack(file, offset) + fields):
        return None
    return _FIELDS.unpack(fields)[-1]


def _checked(header: bytes, body: bytes, file: int, offset: int) -> Record | None:
    _, kind, keys, predictions, length = _FIELDS.unpack_from(header)
    _, checksum = _CHECKS.unpack_from(header, _FIELDS.size)
    if len(body) != length or checksum != _checksum(_LOCATION.pack(file, offset), body):
        return None
    return Record(kind, body, keys, predictions, offset)


def _checksum(location: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=8, key=location).digest()
