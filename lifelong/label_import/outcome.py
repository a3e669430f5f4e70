"""What became of the rows of a file: counts, and a file of those that were not stored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from lifelong.label_import.rows import RejectedRow
from lifelong_core.runtime.file_modes import PRIVATE_FILE
from lifelong_core.values.csv_files import csv_writer

EXAMPLES = 5
"""Rejected rows that are kept to be shown."""


class RejectionWriter(Protocol):
    """Takes rejected rows."""

    def __call__(self, row: RejectedRow, /) -> None:
        """Write one row."""


@dataclass
class ImportOutcome:
    """Numbers of rows by what became of them.

    Attributes:
        stored: labels of predictions that had none.
        unchanged: labels that were stored before.
        corrected: labels that replace another label or propensity.
        unknown: rows whose prediction does not exist.
        refused: rows that are malformed, or whose label or environment the service refuses.
        unlabelled: rows without a label; they are neither sent nor wrong.
        examples: the first rejected rows.
        last_line: number of the last line whose outcome is known.
    """

    stored: int = 0
    unchanged: int = 0
    corrected: int = 0
    unknown: int = 0
    refused: int = 0
    unlabelled: int = 0
    examples: list[RejectedRow] = field(default_factory=list[RejectedRow])
    last_line: int = 0

    @property
    def not_stored(self) -> int:
        """Number of rows with a label that was not stored."""
        return self.unknown + self.refused

    def to_document(self) -> dict[str, Any]:
        """The numbers as JSON values, with the first rejected rows."""
        return asdict(self)


@contextmanager
def rejection_file(path: Path | None) -> Iterator[RejectionWriter]:
    """A CSV file that takes rejected rows as they come; an existing one is replaced, and only its owner reads it.

    Args:
        path: of the file; None: rows go nowhere.

    Raises:
        OSError: the file cannot be written.
    """
    if path is None:
        yield _discard
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "w", newline="", encoding="utf-8", buffering=1) as file:
        os.fchmod(descriptor, PRIVATE_FILE)
        names = [one.name for one in fields(RejectedRow)]
        write = csv_writer(file, names)
        yield lambda row: write([getattr(row, name) for name in names])


def _discard(row: RejectedRow) -> None:
    del row
