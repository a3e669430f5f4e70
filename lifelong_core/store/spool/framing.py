"""Records in a file: what is whole is recognised, wherever a writer was killed or a disk lost bits.

    magic 4 | kind 1 | keys 4 | predictions 4 | body's length 4 | header's check 4 | body's checksum 8 | body

Both checks also cover the number of the file and the place in it. So a record counts only where it was written: not
what a client hides in its logits or request id, nor what an old file left in a block of the disk.
"""

import hashlib
import struct
import zlib
from typing import IO, NamedTuple

MAGIC = b"\xf1Ls\xb0"
"""No text in UTF-8 holds these bytes."""

ENTRIES = 1
"""Kind of a record: log entries in their first encoding. Another encoding gets another number."""
DAMAGED = 2
"""Kind of a record: bytes that were found damaged."""
REFUSED = 3
"""Kind of a record: a log entry that the log does not take, and why."""

_FIELDS = struct.Struct("<4sBIII")
_CHECKS = struct.Struct("<I8s")
_LOCATION = struct.Struct("<QQ")
HEADER_BYTES = _FIELDS.size + _CHECKS.size


class Record(NamedTuple):
    """A record that is whole, and where it is.

    Attributes:
        kind: what the body holds.
        keys: how many request keys are in it.
        predictions: how many predictions are in it.
        body: the content.
        offset: of its first byte in the file.
    """

    kind: int
    keys: int
    predictions: int
    body: bytes
    offset: int

    @property
    def end(self) -> int:
        """Offset of the byte behind it."""
        return self.offset + HEADER_BYTES + len(self.body)


def pack_record(
    body: bytes, *, kind: int, file: int, offset: int, keys: int = 0, predictions: int = 0
) -> bytes:
    """The bytes of a record that will stand at `offset` of the file with the number `file`."""
    location = _LOCATION.pack(file, offset)
    fields = _FIELDS.pack(MAGIC, kind, keys, predictions, len(body))
    return fields + _CHECKS.pack(zlib.crc32(location + fields), _checksum(location, body)) + body


def read_record(stream: IO[bytes], *, file: int, offset: int, size: int) -> Record | None:
    """The record at `offset`, where the stream stands; None: there is no whole one.

    Args:
        stream: of the file.
        file: its number.
        offset: at which the stream stands.
        size: of the file; a damaged length must not make us ask for more.
    """
    header = stream.read(HEADER_BYTES)
    length = _body_length(header, file, offset)
    if length is None or offset + HEADER_BYTES + length > size:
        return None
    return _checked(header, stream.read(length), file, offset)


def find_record(data: bytes, *, file: int, offset: int, after: int) -> int | None:
    """Where in a file the next whole record begins; None: there is none.

    Args:
        data: the bytes of the file from `offset` on.
        file: its number.
        offset: of the first byte of `data`.
        after: offset in the file behind which to look.
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


def _body_length(header: bytes, file: int, offset: int) -> int | None:
    """None: this is no header of ours."""
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
    return Record(kind, keys, predictions, body, offset)


def _checksum(location: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=8, key=location).digest()
