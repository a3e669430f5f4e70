"""One image of a source, before it is read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from lifelong_core.values.class_labels import composed, is_missing, key_form
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import LifelongError


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
    """The text as UTF-8 can hold it and a terminal can show it: what a file name holds beside that is escaped."""
    return escape_controls(text.encode("utf-8", "backslashreplace").decode())


Opened = tuple[Entry, BinaryIO | LifelongError]
"""An entry with its file, to be closed by the receiver, or with the reason why it cannot be read."""


class ImageSource(Protocol):
    """Lists images in memory that does not grow with their number, and reads those that are wanted."""

    def entries(self) -> Iterator[Entry | None]:
        """All images, in any order; None for each file that is no image."""
        ...

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open entries that `entries` listed, each once, in the order that suits the source."""
        ...
