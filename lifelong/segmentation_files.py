"""Cases of a segmentation model in files: npz, or npy without labels; read block by block."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.performance.segmentation import PixelBlock
from lifelong_core.deploy.performance.segmentation.cases import BLOCK_PIXELS, check_labels, check_scores
from lifelong_core.values.class_labels import composed, is_missing
from lifelong_core.values.csv_files import read_csv
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import MAXIMUM_ENTRIES, UNREADABLE, read_array_header

SKIPPED_BYTES = 1 << 18
"""Read at once on the way to a class; `seek` in an archive would read 16 MiB at once."""
GROUPS = "groups.csv"
HINTS = {
    True: "Write each case with numpy.savez_compressed(file, probabilities=..., labels=...).",
    False: "Write each case with numpy.savez_compressed(file, probabilities=...).",
}
"""Hints with and without labels."""


@dataclass(frozen=True)
class StoredArray:
    """Where an array lies."""

    path: Path
    member: str | None
    """entry of an npz file; None: the file is an npy file"""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    """bytes before the first number"""

    def open(self, row: int, row_size: int) -> IO[bytes]:
        """A stream at the first number of a row of `row_size` numbers."""
        stream = _open(self.path, self.member)
        place = self.start + row * row_size * self.dtype.itemsize
        if self.member is None:
            stream.seek(place)
        for start in range(stream.tell(), place, SKIPPED_BYTES):
            stream.read(min(SKIPPED_BYTES, place - start))
        return stream

    def read(self, stream: IO[bytes], count: int) -> NDArray[Any]:
        """The next numbers of a stream.

        Raises:
            EOFError: it ends before.
        """
        content = stream.read(count * self.dtype.itemsize)
        if len(content) < count * self.dtype.itemsize:
            raise EOFError
        return np.frombuffer(content, dtype=self.dtype)


@dataclass(frozen=True)
class MapFile:
    """A case in a file; only one block of its pixels is in memory at a time."""

    scores: StoredArray
    labels: StoredArray | None
    is_logits: bool
    group: str | None = None

    @property
    def name(self) -> str:
        """The path, for error messages."""
        return str(self.scores.path)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.scores.shape[0]

    def blocks(self) -> Iterator[PixelBlock]:
        """All pixels; each class is a stream of its own, since it lies before the next class in the file.

        Raises:
            InvalidInputError: the file is damaged.
        """
        pixels = math.prod(self.scores.shape[1:])
        try:
            with ExitStack() as opened:
                streams = [opened.enter_context(self.scores.open(row, pixels)) for row in range(self.classes)]
                labels = None if self.labels is None else opened.enter_context(self.labels.open(0, pixels))
                for start in range(0, pixels, BLOCK_PIXELS):
                    count = min(BLOCK_PIXELS, pixels - start)
                    scores = np.stack([self.scores.read(stream, count) for stream in streams])
                    own = None if self.labels is None or labels is None else self.labels.read(labels, count)
                    yield PixelBlock(scores, own)
        except InvalidInputError:
            raise
        except UNREADABLE as error:
            raise _damaged(self.scores.path, labelled=self.labels is not None) from error


def read_cases(folder: Path, *, labelled: bool, field: str) -> list[MapFile]:
    """The cases of a folder, in the order of their names; the pixels are not read yet.

    Args:
        folder: holds an npz file with `probabilities` or `logits` (C, ...) for each case, with `labels` (...) where
            labelled; without labels, npy files with probabilities too. A table groups.csv (columns file, group) may
            tell which cases are dependent.
        labelled: whether labels are needed; else they are not read.
        field: name of the folder in errors.

    Raises:
        InvalidInputError: a file cannot be read or does not fit; the message names it.
    """
    suffixes = (".npz",) if labelled else (".npz", ".npy")
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes)
    except OSError as error:
        raise InvalidInputError(f"{folder} cannot be read ({error.strerror}).", field=field) from error
    if not paths:
        raise InvalidInputError(
            f"{folder} has no file that ends in {' or '.join(suffixes)}.", field=field, hint=HINTS[labelled]
        )
    groups = _groups(folder, [path.name for path in paths], field=field)
    return [_case(path, labelled=labelled, group=groups.get(path.name)) for path in paths]


def _case(path: Path, *, labelled: bool, group: str | None) -> MapFile:
    if path.suffix.lower() == ".npy":
        scores, labels, name = _stored(path, None), None, "probabilities"
    else:
        names = _members(path, labelled=labelled)
        found = [name for name in ("probabilities", "logits") if name in names]
        if len(found) != 1:
            what = "neither probabilities nor logits" if not found else "both probabilities and logits"
            raise InvalidInputError(f"{path} has {what}.", field="probabilities", hint=HINTS[labelled])
        if labelled and "labels" not in names:
            raise InvalidInputError(f"{path} lacks the array labels.", field="labels", hint=HINTS[True])
        name = found[0]
        scores, labels = _stored(path, name), _stored(path, "labels") if labelled else None
    check_scores(scores.shape, scores.dtype, name=str(path))
    if labels is not None:
        check_labels(labels.shape, labels.dtype, scores.shape, name=str(path))
    return MapFile(scores, labels, is_logits=name == "logits", group=group)


def _members(path: Path, *, labelled: bool) -> list[str]:
    """Names of the arrays of an npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except UNREADABLE as error:
        raise _damaged(path, labelled=labelled) from error
    if len(names) > MAXIMUM_ENTRIES:
        raise InvalidInputError(f"{path}: expected at most {MAXIMUM_ENTRIES} arrays.", field="npz")
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def _stored(path: Path, member: str | None) -> StoredArray:
    """Shape, type and place of an array.

    Raises:
        InvalidInputError: the file is damaged, or shorter or longer than its header says.
    """
    field = member or "probabilities"
    try:
        with _open(path, member) as stream:
            shape, dtype = read_array_header(stream, field=field)
            start = stream.tell()
        size = path.stat().st_size if member is None else _entry_size(path, member)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error.message}", field=field, hint=error.hint) from error
    except UNREADABLE as error:
        raise _damaged(path, labelled=False) from error
    if size != start + math.prod(shape) * dtype.itemsize and dtype.kind != "O":
        raise InvalidInputError(
            f"{path}: the header says shape {shape} of {dtype}, which does not fit {size} bytes.",
            field=field,
            hint="The file is damaged: write it again.",
        )
    return StoredArray(path, member, shape, dtype, start)


def _open(path: Path, member: str | None) -> IO[bytes]:
    if member is None:
        return path.open("rb")
    # The stream of an entry stays readable after its archive is closed.
    with zipfile.ZipFile(path) as archive:
        return archive.open(f"{member}.npy")


def _entry_size(path: Path, member: str) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.getinfo(f"{member}.npy").file_size


def _damaged(path: Path, *, labelled: bool) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is no file of arrays that is whole, without pickled objects.",
        field="npz",
        hint=HINTS[labelled],
    )


def _groups(folder: Path, names: list[str], *, field: str) -> dict[str, str]:
    """Group of each file by groups.csv; empty without that table."""
    table = folder / GROUPS
    if not table.exists():
        return {}
    groups = {row["file"]: row["group"] for row in read_csv(table, required=("file", "group"), field=field)}
    found = {name: groups[composed(name)] for name in names if composed(name) in groups}
    missing = [name for name in names if is_missing(found.get(name, ""))]
    if missing:
        raise InvalidInputError(
            f"{table} has no group for {missing[0]}.",
            field=field,
            hint="Add a row for every file; one without a group gets one of its own, such as its name.",
        )
    return found
