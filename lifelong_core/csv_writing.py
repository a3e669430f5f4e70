"""CSV files that the product writes: no cell is a formula to a spreadsheet."""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""First characters that spreadsheets take for a formula, some after they drop them; with their full-width forms."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


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
