"""What a file is, by its name and its first bytes."""

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO, Literal, TypeAlias

from lifelong_core.develop.features.dicom import count_frames, is_dicom
from lifelong_core.develop.features.sources.entry import Entry, printable
from lifelong_core.images import IMAGE_SUFFIXES

FileKind: TypeAlias = Literal["image", "dicom", "unknown", "other"]

DICOM_SUFFIXES = frozenset({".dcm", ".dicom", ".ima"})
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
ZIP_SUFFIXES = (".zip",)
_RUBBISH = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "DICOMDIR"})
"""What archives, desktops and DICOM media leave behind; names that begin with a full stop are passed over, too."""


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
    """One entry for each frame of a DICOM file; None if a file of unknown kind is none."""
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
