"""Delivery progress in the oldest segment; the next delivery, in any process, continues there."""

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

_FIELDS = struct.Struct("<QQQ")
_CHECKSUM_BYTES = 8


@dataclass(frozen=True)
class Progress:
    """A place in a segment.

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
        fields = _FIELDS.pack(self.segment, self.offset, self.predictions)
        os.pwrite(descriptor, fields + _checksum(fields), 0)


def _checksum(fields: bytes) -> bytes:
    return hashlib.blake2b(fields, digest_size=_CHECKSUM_BYTES).digest()
