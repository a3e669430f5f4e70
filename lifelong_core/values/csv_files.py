"""CSV files as spreadsheets of all languages write them: separators, decimal commas, byte order marks.

In a file that the product writes, no cell is a formula to a spreadsheet.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from lifelong_core.values.arrays import Floats
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import InvalidInputError

SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)
"""First line that some spreadsheets write."""
_SEPARATORS = ("\t", ";", ",")
_QUOTED = re.compile(r'"[^"]*"')

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""First characters that spreadsheets take for a formula, some after they drop them; with their full-width forms."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def separator_of(header: str) -> str:
    """A tab, a semicolon or a comma, the first that the header has outside quotes; a semicolon where it has none.

    Examples:
        >>> separator_of("label;logit_0;logit_1"), separator_of('label,"a;b",c'), separator_of("logit")
        (';', ',', ';')
    """
    plain = _QUOTED.sub("", header)
    return next((separator for separator in _SEPARATORS if separator in plain), ";")


def with_decimal_point(text: str, separator: str) -> str:
    """The text of a number with a decimal point; it may have a comma where the separator is another character.

    Examples:
        >>> with_decimal_point("1,5", ";"), with_decimal_point("1,5", ",")
        ('1.5', '1,5')
    """
    return text if separator == "," else text.replace(",", ".")


class Table(list[dict[str, str]]):
    """The rows of a CSV file, by the names of the columns, and its separator."""

    def __init__(self, rows: Iterable[dict[str, str]], separator: str) -> None:
        super().__init__(rows)
        self.separator = separator

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self[0])

    def numbers(self, columns: Sequence[str]) -> Floats:
        """The numbers of these columns, shape (N, K).

        Raises:
            InvalidInputError: a cell is no number, or some have a decimal comma and others a decimal point.
        """
        texts = [[row[column] for column in columns] for row in self]
        if self.separator != ",":
            used = {mark for row in texts for text in row for mark in ",." if mark in text}
            if len(used) > 1:
                raise InvalidInputError(
                    "some numbers have a comma and others a point.",
                    field=columns[0][:80],
                    hint="Write all with one of them, for decimals, and none for thousands.",
                )
        numbers = np.empty((len(texts), len(columns)))
        for place, row in enumerate(texts):
            for k, text in enumerate(row):
                try:
                    numbers[place, k] = float(with_decimal_point(text, self.separator))
                except ValueError as error:
                    raise InvalidInputError(
                        f"row {place + 2}: {text[:40]!r} is no number.", field=columns[k][:80]
                    ) from error
        return numbers


def read_csv(path: Path, *, required: Sequence[str], field: str) -> Table:
    """The rows of a CSV file with a header: cells without spaces around them, texts in Unicode's form NFC.

    The separator is a comma, a semicolon or a tab. Empty lines, and cells without a name and a value, are left out.

    Raises:
        InvalidInputError: it cannot be read, has no row, lacks a column, has one twice, or a row has too many or too
            few values.
    """
    try:
        text = composed(path.read_text("utf-8-sig")).lstrip("\n")
        first, _, rest = text.partition("\n")
        if SEPARATOR_LINE.fullmatch(first.strip()):
            text, first = rest, rest.partition("\n")[0]
        separator = separator_of(first)
        lines = csv.reader(io.StringIO(text), delimiter=separator, strict=True, skipinitialspace=True)
        cells = [[cell.strip() for cell in line] for line in lines]
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path} cannot be read as CSV: it is not UTF-8.", field=field, hint="Save it as CSV in UTF-8."
        ) from error
    except (OSError, csv.Error) as error:
        raise InvalidInputError(f"{path} cannot be read as CSV ({error}).", field=field) from error
    header = cells[0] if cells else []
    named = [name for name in header if name]
    lacking = [name for name in required if name not in named]
    if lacking:
        raise InvalidInputError(
            f"{path} lacks the column {lacking[0]!r}; it has {', '.join(named) or 'none'}.",
            field=field,
            hint=f"The first line names the columns: {','.join(required)}.",
        )
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise InvalidInputError(f"{path} has two columns {twice[0][:80]!r}.", field=field)
    rows: list[dict[str, str]] = []
    for number, values in enumerate(cells[1:], start=2):
        if not any(values):
            continue
        if len(values) < len(header) or any(values[len(header) :]):
            raise InvalidInputError(
                f"{path}: row {number} has another number of values than the header.", field=field
            )
        rows.append({name: value for name, value in zip(header, values, strict=False) if name})
    if not rows:
        raise InvalidInputError(f"{path} has no row.", field=field)
    return Table(rows, separator)


def csv_writer(file: TextIO, columns: Sequence[str]) -> Callable[[Iterable[object]], Any]:
    """Write the header of a CSV file; return the function that writes a row.

    Args:
        file: opened with `newline=""`.
        columns: their names.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(safe_cell, columns))
    return lambda values: writer.writerow(map(safe_cell, values))


def safe_cell(value: object) -> object:
    """The value of a cell; text that a spreadsheet would run as a formula gets an apostrophe in front.

    Examples:
        >>> safe_cell("=1+1"), safe_cell("-x"), safe_cell("-1.5"), safe_cell(-1.5), safe_cell("nevus")
        ("'=1+1", "'-x", '-1.5', -1.5, 'nevus')
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"
