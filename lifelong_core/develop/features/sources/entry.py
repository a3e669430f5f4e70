"""One image of a source, before it is read."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, Literal, Protocol, TypeAlias

from lifelong_core.develop.features.dicom import count_frames, is_dicom
from lifelong_core.images import IMAGE_SUFFIXES
from lifelong_core.values.class_labels import composed, is_missing, key_form
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import LifelongError

FileKind: TypeAlias = Literal["image", "dicom", "unknown", "other"]

DICOM_SUFFIXES = frozenset({".dcm", ".dicom", ".ima"})
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
ZIP_SUFFIXES = (".zip",)
_RUBBISH = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "DICOMDIR"})
"""What archives, desktops and DICOM media leave behind; names that begin with a full stop are passed over, too."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an image lies.

    Attributes:
        path: of the file within its source; it decides whether the image is sampled, so that a moved folder gives the
            same sample.
        label: class of the image; None: not known.
        frame: of a DICOM file, from 0; None for other files.
        position: of the file's content in an uncompressed archive, or the row of a table.
        size: of the file in bytes, where the source knows it.
        group: key of dependent images, such as their patient; None: not known.
        split: of a training, such as `test`; None: not given.
    """

    path: str
    label: str | None = None
    frame: int | None = None
    position: int = 0
    size: int = 0
    group: str | None = None
    split: str | None = None

    def __post_init__(self) -> None:
        """Labels are compared in NFC; a key that stands for a missing one is none."""
        if self.label is not None:
            object.__setattr__(self, "label", composed(self.label))
        if self.group is not None:
            object.__setattr__(self, "group", None if is_missing(self.group) else key_form(self.group))

    @property
    def name(self) -> str:
        """The path, with the frame if there is one."""
        return self.path if self.frame is None else f"{self.path}#{self.frame}"


def printable(text: str) -> str:
    """The text with each character escaped that UTF-8 cannot hold or a terminal cannot show."""
    return escape_controls(text.encode("utf-8", "backslashreplace").decode())


Opened = tuple[Entry, BinaryIO | LifelongError]
"""An entry with its file, to be closed by the receiver, or with the reason why it cannot be read."""


class ImageSource(Protocol):
    """Lists images, in memory that does not grow with their number, and reads the wanted ones."""

    def entries(self) -> Iterator[Entry | None]:
        """All images, in any order; None for each file that is no image."""
        ...

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open entries that `entries` listed, each once, in the order that suits the source."""
        ...


def file_kind(path: PurePosixPath) -> FileKind:
    """Whether a file is an image or DICOM by its name; unknown: a look at its first bytes is needed."""
    if any(part.startswith(".") or part in _RUBBISH for part in path.parts):
        return "other"
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        return "image"
    if suffix in DICOM_SUFFIXES:
        return "dicom"
    return "unknown" if not suffix or suffix[1:].isdecimal() else "other"


def is_archive(path: PurePosixPath) -> bool:
    """Whether a file is an archive by its name."""
    return path.name.lower().endswith((*TAR_SUFFIXES, *ZIP_SUFFIXES)) and not path.name.startswith(".")


def list_dicom(entry: Entry, file: BinaryIO, kind: FileKind) -> Iterator[Entry | None]:
    """One entry for each frame of a DICOM file; None if a file of unknown kind is not DICOM."""
    if kind == "unknown" and not is_dicom(file):
        yield None
        return
    size = entry.size or _size_of(file)
    for frame in range(count_frames(file, size)):
        yield Entry(entry.path, entry.label, frame, entry.position, entry.size)


def _size_of(file: BinaryIO) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def folder_label(path: PurePosixPath) -> str | None:
    """The class of a file that lies in one folder per class; None for a file in no folder."""
    return printable(path.parts[0]) if len(path.parts) > 1 else None
