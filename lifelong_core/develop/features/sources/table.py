"""Image files that a CSV file lists."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.features.sources.folder import open_file
from lifelong_core.develop.features.sources.kinds import file_kind, list_dicom
from lifelong_core.values.csv_files import SEPARATOR_LINE, separator_of
from lifelong_core.values.errors import InvalidInputError, LifelongError

PATH_COLUMN = "path"
LABEL_COLUMN = "label"
GROUP_COLUMN = "group"
SPLIT_COLUMN = "split"


class TableSource:
    """Files in the column `path` of a CSV file, with `label`, `group` and `split` if there are such columns.

    Args:
        table: the CSV file, UTF-8, with commas, semicolons or tabs; its paths are relative to its folder.
        labelled: whether labels are read.
        within: files must lie in this folder once symbolic links are resolved; None: anywhere.
    """

    def __init__(self, table: Path, *, labelled: bool = True, within: Path | None = None) -> None:
        self._table = table
        self._labelled = labelled
        self._within = within

    def entries(self) -> Iterator[Entry | None]:
        """All files, whatever their names.

        Raises:
            InvalidInputError: no CSV file, or one without the column `path` or with a row without a path.
        """
        try:
            with self._table.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                if SEPARATOR_LINE.fullmatch(first.strip()):
                    first = file.readline()
                reader = csv.DictReader(chain([first], file), delimiter=separator_of(first))
                columns = reader.fieldnames or ()
                if PATH_COLUMN not in columns:
                    raise InvalidInputError(
                        f"{self._table} has no column {PATH_COLUMN}; it has {', '.join(columns)[:200] or 'none'}.",
                        field="images",
                        hint="Name the columns in the first row: path, and label if there are classes.",
                    )
                for row, values in enumerate(reader):
                    path = (values[PATH_COLUMN] or "").strip()
                    if not path:
                        raise InvalidInputError(
                            f"{self._table} has no path in line {reader.line_num}.", field="images"
                        )
                    label = _text(values, LABEL_COLUMN) if self._labelled else None
                    group, split = _text(values, GROUP_COLUMN), _text(values, SPLIT_COLUMN)
                    yield from self._list(Entry(path, label, position=row, group=group, split=split))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError(
                f"{self._table} is no CSV file in UTF-8: {error}.", field="images"
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
        return open_file(self._table.parent / entry.path, within=self._within)


def _text(values: Mapping[str, str | None], column: str) -> str | None:
    return (values.get(column) or "").strip() or None
