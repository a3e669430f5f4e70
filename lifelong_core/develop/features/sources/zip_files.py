"""Images in zip files."""

import io
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from lifelong_core.develop.features.sources.entry import Entry, Opened, file_kind, folder_label, list_dicom
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits, bomb_error
from lifelong_core.values.errors import InvalidInputError, LifelongError, PayloadTooLargeError
from lifelong_core.values.npz import UNREADABLE

MOST_ENTRIES = 2_000_000
"""zipfile holds the directory in memory, some 500 bytes for each file."""
_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class ZipSource:
    """Images in a zip file."""

    path: Path
    labelled: bool = True
    """whether the first folder of a file is its class"""
    limits: Limits = DEFAULT_LIMITS
    """of the archive and its files"""

    def entries(self) -> Iterator[Entry | None]:
        """All images; None for each other file.

        Raises:
            PayloadTooLargeError: a decompression bomb.
            InvalidInputError: no zip file, or a broken one.
        """
        with self._opened() as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    yield from self._list(info, archive)

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Read the files in the order of the archive, each into memory."""
        last, data = -1, b""
        with self._opened() as archive:
            found = {info.header_offset: info for info in archive.infolist()}
            for entry in sorted(wanted, key=lambda entry: (entry.position, entry.frame or 0)):
                try:
                    if entry.position != last:
                        data = self._content(archive, found[entry.position])
                        last = entry.position
                except LifelongError as error:
                    last = -1
                    yield entry, error
                else:
                    yield entry, io.BytesIO(data)

    def _list(self, info: zipfile.ZipInfo, archive: zipfile.ZipFile) -> Iterator[Entry | None]:
        path = PurePosixPath(info.filename)
        kind = file_kind(path)
        label = folder_label(path) if self.labelled else None
        entry = Entry(str(path), label, None, info.header_offset, info.file_size)
        if kind == "other":
            yield None
        elif kind == "image":
            yield entry
        else:
            try:
                self._check(info)
                with archive.open(info) as file:
                    yield from list_dicom(entry, cast("BinaryIO", file), kind)
            except (LifelongError, *UNREADABLE):
                yield entry

    def _content(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        self._check(info)
        try:
            return archive.read(info)  # no more than the size in the directory
        except UNREADABLE as error:
            raise InvalidInputError(f"the file cannot be unpacked: {error}.", field="images") from error

    def _check(self, info: zipfile.ZipInfo) -> None:
        self.limits.check_file(info.file_size)
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise InvalidInputError(
                "the file is encrypted, or packed by another method than deflate.", field="images"
            )

    @contextmanager
    def _opened(self) -> Generator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._expect_no_bomb(archive)
                yield archive
        except LifelongError:
            raise
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise InvalidInputError(f"{self.path} is no whole zip file: {error}.", field="images") from error

    def _expect_no_bomb(self, archive: zipfile.ZipFile) -> None:
        entries = archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise PayloadTooLargeError(
                f"{self.path.name} holds {len(entries)} files, at most {MOST_ENTRIES} are read.",
                field="images",
                hint="Give a folder, or tar files.",
            )
        limit = self.limits.unpacked_bytes(self.path.stat().st_size)
        if sum(info.file_size for info in entries) > limit:
            raise bomb_error(self.path.name, limit)
