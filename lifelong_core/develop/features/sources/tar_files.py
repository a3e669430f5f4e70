"""Images in tar files, those of webdataset included."""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from lifelong_core.develop.features.sources.entry import (
    Entry,
    Opened,
    file_kind,
    folder_label,
    list_dicom,
    printable,
)
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, BoundedFile, Limits
from lifelong_core.values.errors import InvalidInputError, LifelongError

_PIECE = 2**20
"""Largest header of a tar file."""
_MOST_LABEL_BYTES = 65_536
_LABEL_SUFFIXES = frozenset({"cls", "json"})
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class TarSource:
    """Images in a tar file, also one compressed by gzip; it is read from begin to end, twice.

    Files whose names differ only after the first full stop are one sample of webdataset: `0001.png` and `0001.cls`. The
    label of a sample is the text in `cls`, or the value `label` or `cls` in `json`; without such a file, the first
    folder. The values `group` and `split` in `json` are those of the sample.
    """

    path: Path
    labelled: bool = True
    """whether labels are read"""
    limits: Limits = DEFAULT_LIMITS
    """of the archive and its files"""

    def entries(self) -> Iterator[Entry | None]:
        """All images; None for each other file that is no label.

        Raises:
            PayloadTooLargeError: a decompression bomb.
            InvalidInputError: no tar file, or a broken one.
        """
        key, facts = "", dict[str, str]()
        waiting: list[Entry] = []
        label_files = 0
        with self._opened() as content, _tar(content, self.path, self.limits) as archive:
            for member in _members(archive):
                path = PurePosixPath(member.name)
                stem, suffix = split_key(member.name)
                if stem != key:
                    yield from _sample(waiting, facts, label_files)
                    waiting, key, facts, label_files = [], stem, {}, 0
                if suffix in _LABEL_SUFFIXES:
                    facts |= self._facts(content, member, suffix)
                    label_files += 1
                    continue
                for entry in self._list(path, member, archive):
                    if entry is None:
                        yield None
                    else:
                        waiting.append(entry)
            yield from _sample(waiting, facts, label_files)

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Read the files in the order of the archive, each into memory."""
        last, data = -1, b""
        with self._opened() as content:
            for entry in sorted(wanted, key=lambda entry: (entry.position, entry.frame or 0)):
                try:
                    if entry.position != last:
                        self.limits.check_file(entry.size)
                        last, data = entry.position, _read_at(content, entry.position, entry.size)
                except LifelongError as error:
                    last = -1
                    yield entry, error
                else:
                    yield entry, io.BytesIO(data)

    def _list(
        self, path: PurePosixPath, member: tarfile.TarInfo, archive: tarfile.TarFile
    ) -> Iterator[Entry | None]:
        kind = file_kind(path)
        label = folder_label(path) if self.labelled else None
        entry = Entry(str(path), label, None, member.offset_data, member.size)
        if kind == "other" or not member.isreg() or member.issparse():
            yield None
        elif kind == "image":
            yield entry
        else:
            file = cast("BinaryIO", archive.extractfile(member))
            yield from list_dicom(entry, file, kind)

    def _facts(self, content: BinaryIO, member: tarfile.TarInfo, suffix: str) -> dict[str, str]:
        """Label, group and split in a label file, as far as it holds them."""
        if not member.isreg() or member.size > _MOST_LABEL_BYTES:
            return {}
        text = _read_at(content, member.offset_data, member.size).decode(errors="replace").strip()
        facts = _json_facts(text) if suffix == "json" else {"label": text} if text else {}
        if not self.labelled:
            facts.pop("label", None)
        return facts

    @contextmanager
    def _opened(self) -> Generator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                is_gzip = file.read(2) == _GZIP_MAGIC
                file.seek(0)
                if is_gzip:
                    with gzip.GzipFile(fileobj=file) as unpacked:
                        yield cast("BinaryIO", unpacked)
                else:
                    yield file
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInputError(f"{self.path} cannot be read: {error}.", field="images") from error


def split_key(name: str) -> tuple[str, str]:
    """Key and suffix of a file as webdataset splits them, at the first full stop of the last part.

    Examples:
        >>> split_key("train/0001.seg.png")
        ('train/0001', 'seg.png')
    """
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return folder + slash + stem, suffix.lower()


def _sample(images: Sequence[Entry], facts: Mapping[str, str], label_files: int) -> Iterator[Entry | None]:
    """The images of one sample with its label, group and split; label files alone are files that are no images."""
    if not images:
        yield from repeat(None, label_files)
    for entry in images:
        yield replace(
            entry,
            label=facts.get("label", entry.label),
            group=facts.get("group", entry.group),
            split=facts.get("split", entry.split),
        )


def _json_facts(text: str) -> dict[str, str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    values = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    found = {
        "label": values.get("label", values.get("cls")),
        "group": values.get("group"),
        "split": values.get("split"),
    }
    return {name: printable(str(value)) for name, value in found.items() if isinstance(value, str | int)}


@contextmanager
def _tar(content: BinaryIO, path: Path, limits: Limits) -> Generator[tarfile.TarFile]:
    end = limits.unpacked_bytes(path.stat().st_size)
    bounded = BoundedFile(content, piece=_PIECE, end=end, name=path.name)
    try:
        with closing(tarfile.open(fileobj=cast("BinaryIO", bounded), mode="r:")) as archive:
            yield archive
    except LifelongError:
        raise
    except (tarfile.TarError, ValueError) as error:  # ValueError: numbers of extended headers that are none
        raise InvalidInputError(f"{path} is no whole tar file: {error}.", field="images") from error


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """All files; tarfile's own list of them is emptied, since it would grow with the archive.

    Raises:
        InvalidInputError: a header declares a negative size; tarfile would go back to an earlier one, without end.
    """
    for member in archive:
        archive.members = []  # type: ignore[attr-defined]
        if member.size < 0 or archive.offset <= member.offset:
            raise InvalidInputError("a file of the archive has a negative size.", field="images")
        if not member.isdir():
            yield member


def _read_at(content: BinaryIO, position: int, size: int) -> bytes:
    content.seek(position)
    data = content.read(size)
    if len(data) < size:
        raise InvalidInputError("the archive ends within the file.", field="images")
    return data
