"""Image files of a folder and its sub-folders."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lifelong_core.configuration.image_roots import resolve_within
from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.features.sources.kinds import file_kind, folder_label, is_archive, list_dicom
from lifelong_core.values.errors import InvalidInputError, LifelongError

_LONGEST_PATH = 1000
"""of a folder in a message, in characters"""


class FolderSource:
    """Images and DICOM files in a folder, recursively; symbolic links to folders are not followed.

    Archives are left to sources of their own.

    Args:
        folder: what is listed.
        labelled: whether the first sub-folder of a file is its class.
        within: files must lie in this folder once symbolic links are resolved; None: anywhere.
    """

    def __init__(self, folder: Path, *, labelled: bool = True, within: Path | None = None) -> None:
        self._folder = folder
        self._labelled = labelled
        self._within = within

    def entries(self) -> Iterator[Entry | None]:
        """All images; None for each other file."""
        for path in walk_files(self._folder):
            yield from self._list(path)

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open the files in the order of their paths, so that equal folders are read in equal order."""
        for entry in sorted(wanted, key=lambda entry: (entry.path, entry.frame or 0)):
            yield entry, open_file(self._folder / entry.path, within=self._within)

    def _list(self, path: Path) -> Iterator[Entry | None]:
        relative = PurePosixPath(path.relative_to(self._folder).as_posix())
        kind = file_kind(relative)
        entry = Entry(str(relative), folder_label(relative) if self._labelled else None)
        if is_archive(relative):
            return
        if kind == "other":
            yield None
        elif kind == "image":
            yield entry
        else:
            file = open_file(path, within=self._within)
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
