"""Image files of a folder and its sub-folders, or of a table that names them."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lifelong_core.configuration.image_roots import resolve_within
from lifelong_core.develop.features.sources.entry import (
    Entry,
    Opened,
    file_kind,
    folder_label,
    is_archive,
    list_dicom,
)
from lifelong_core.values.csv_files import SEPARATOR_LINE, separator_of
from lifelong_core.values.errors import InvalidInputError, LifelongError

_LONGEST_PATH = 1000
"""of a folder in a message, in characters"""

PATH_COLUMN = "path"
LABEL_COLUMN = "label"
GROUP_COLUMN = "group"
SPLIT_COLUMN = "split"


@dataclass(frozen=True)
class FolderSource:
    """Images and DICOM files in a folder, recursively; symbolic links to folders are not followed.

    Archives are left to sources of their own.
    """

    folder: Path
    labelled: bool = True
    """whether the first sub-folder of a file is its class"""
    within: Path | None = None
    """files must lie in this folder once symbolic links are resolved; None: anywhere"""

    def entries(self) -> Iterator[Entry | None]:
        """All images; None for each other file."""
        for path in walk_files(self.folder):
            yield from self._list(path)

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open the files in the order of their paths, so that equal folders are read in equal order."""
        for entry in sorted(wanted, key=lambda entry: (entry.path, entry.frame or 0)):
            yield entry, open_file(self.folder / entry.path, within=self.within)

    def _list(self, path: Path) -> Iterator[Entry | None]:
        relative = PurePosixPath(path.relative_to(self.folder).as_posix())
        kind = file_kind(relative)
        entry = Entry(str(relative), folder_label(relative) if self.labelled else None)
        if is_archive(relative):
            return
        if kind == "other":
            yield None
        elif kind == "image":
            yield entry
        else:
            file = open_file(path, within=self.within)
            if isinstance(file, LifelongError):
                yield entry
                return
            with file:
                yield from list_dicom(entry, file, kind)


def walk_files(folder: Path) -> Iterator[Path]:
    """All files of a folder and its sub-folders, one directory entry at a time.

    Raises:
        InvalidInputError: a folder cannot be read.
    """
    waiting = [str(folder)]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(current) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        waiting.append(item.path)
                    elif _is_file(item):
                        yield Path(item.path)
        except OSError as error:
            raise InvalidInputError(
                f"{current[:_LONGEST_PATH]} cannot be read ({error.strerror}).", field="images"
            ) from error


def open_file(path: Path, *, within: Path | None = None) -> BinaryIO | LifelongError:
    """The open file, or why it cannot be opened."""
    try:
        return resolve_within(path, within).open("rb")
    except InvalidInputError as error:
        return error
    except OSError as error:
        return InvalidInputError(f"{path} cannot be opened ({error.strerror}).", field="images")


def _is_file(item: os.DirEntry[str]) -> bool:
    """Whether a directory entry is a file; one that cannot be told, such as a loop of links, is unreadable later."""
    try:
        return item.is_file()
    except OSError:
        return True


@dataclass(frozen=True)
class TableSource:
    """Files in the column `path` of a CSV file, with `label`, `group` and `split` if there are such columns."""

    table: Path
    """the CSV file, UTF-8, with commas, semicolons or tabs; its paths are relative to its folder"""
    labelled: bool = True
    """whether labels are read"""
    within: Path | None = None
    """files must lie in this folder once symbolic links are resolved; None: anywhere"""

    def entries(self) -> Iterator[Entry | None]:
        """All files, whatever their names.

        Raises:
            InvalidInputError: no CSV file, or one without the column `path` or with a row without a path.
        """
        try:
            with self.table.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                if SEPARATOR_LINE.fullmatch(first.strip()):
                    first = file.readline()
                reader = csv.DictReader(chain([first], file), delimiter=separator_of(first))
                columns = reader.fieldnames or ()
                if PATH_COLUMN not in columns:
                    raise InvalidInputError(
                        f"{self.table} has no column {PATH_COLUMN}; it has {', '.join(columns)[:200] or 'none'}.",
                        field="images",
                        hint="Name the columns in the first row: path, and label if there are classes.",
                    )
                for row, values in enumerate(reader):
                    path = (values[PATH_COLUMN] or "").strip()
                    if not path:
                        raise InvalidInputError(
                            f"{self.table} has no path in line {reader.line_num}.", field="images"
                        )
                    label = _text(values, LABEL_COLUMN) if self.labelled else None
                    group, split = _text(values, GROUP_COLUMN), _text(values, SPLIT_COLUMN)
                    yield from self._list(Entry(path, label, position=row, group=group, split=split))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError(
                f"{self.table} is no CSV file in UTF-8: {error}.", field="images"
            ) from error

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open the files in the order of the table."""
        for entry in sorted(wanted, key=lambda entry: (entry.position, entry.frame or 0)):
            yield entry, self._open(entry)

    def _list(self, entry: Entry) -> Iterator[Entry]:
        kind = file_kind(PurePosixPath(Path(entry.path).name))
        file = self._open(entry) if kind in ("dicom", "unknown") else None
        if file is None or isinstance(file, LifelongError):
            yield entry
            return
        with file:
            for found in list_dicom(entry, file, kind):
                yield found or entry

    def _open(self, entry: Entry) -> BinaryIO | LifelongError:
        return open_file(self.table.parent / entry.path, within=self.within)


def _text(values: Mapping[str, str | None], column: str) -> str | None:
    return (values.get(column) or "").strip() or None
