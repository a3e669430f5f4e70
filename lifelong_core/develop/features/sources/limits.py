"""Limits of archives and files, against decompression bombs."""

import io
from dataclasses import dataclass
from typing import BinaryIO

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError


@dataclass(frozen=True)
class Limits:
    """Largest sizes that are read.

    Attributes:
        pixels: width times height of one image.
        file_bytes: of one file, unpacked.
        ratio: of the unpacked to the packed size of an archive of more than `free_bytes`; images hardly shrink.
        free_bytes: unpacked size up to which the ratio does not matter.
    """

    pixels: int = 50_000_000
    file_bytes: int = 512 * 2**20
    ratio: int = 100
    free_bytes: int = 2**30

    def __post_init__(self) -> None:
        """Check that all are positive."""
        for name in ("pixels", "file_bytes", "ratio", "free_bytes"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"expected at least 1, got {getattr(self, name)}.", field=name)

    def unpacked_bytes(self, packed: int) -> int:
        """Largest unpacked size of an archive of this packed size."""
        return max(self.free_bytes, self.ratio * packed)

    def check_file(self, size: int) -> None:
        """Refuse a file that is too large.

        Raises:
            PayloadTooLargeError: it is larger than `file_bytes`.
        """
        if size > self.file_bytes:
            raise PayloadTooLargeError(
                f"the file has {size} bytes, at most {self.file_bytes} are read.", field="image"
            )


DEFAULT_LIMITS = Limits()


def bomb_error(name: str, limit: int) -> PayloadTooLargeError:
    """The error for an archive that unpacks to more than `limit` bytes."""
    return PayloadTooLargeError(
        f"{name} unpacks to more than {limit} bytes; it is no archive of images.", field="images"
    )


class BoundedFile(io.RawIOBase):
    """A file of which only small pieces are read, up to a last position; tarfile reads its headers through it.

    Args:
        file: readable and seekable.
        piece: largest number of bytes of one call; headers of tar files can declare any size.
        end: last position.
        name: for the error.
    """

    def __init__(self, file: BinaryIO, *, piece: int, end: int, name: str) -> None:
        self._file = file
        self._piece = piece
        self._end = end
        self._name = name

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, at most to the end.

        Raises:
            PayloadTooLargeError: the position is beyond the end.
        """
        if whence == io.SEEK_SET and offset > self._end:
            raise bomb_error(self._name, self._end)
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read one piece.

        Raises:
            PayloadTooLargeError: the piece is too large, or beyond the end.
        """
        if not 0 <= size <= self._piece:
            raise PayloadTooLargeError(f"{self._name} has a header of {size} bytes.", field="images")
        if self._file.tell() + size > self._end + self._piece:
            raise bomb_error(self._name, self._end)
        return self._file.read(size)
