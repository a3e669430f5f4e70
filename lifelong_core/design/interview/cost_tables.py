"""Costs from a table that was copied from a spreadsheet, or is typed line by line."""

import re
from collections.abc import Sequence

from lifelong_core.design.interview.cost_builders import FIELD, Costs, check_cost
from lifelong_core.values.errors import InvalidInputError

SEPARATORS = ("\t", ";", ",")
"""Separators of the cells of a pasted table, in the order in which they are tried"""


NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:[.,]\d{0,30})?|[.,]\d{1,30})(?:[eE][+-]?\d{1,3})?")


THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
"""Numbers with a comma that may separate thousands or decimals."""


LONGEST_TABLE = 8_000_000
"""Characters of a table: 1,000 rows of 1,000 numbers with 8 characters each."""


def costs_from_table(text: str, classes: int, class_names: Sequence[str] | None = None) -> Costs:
    """Costs from a table that was copied from a spreadsheet, with or without a header row and a header column.

    Cells are separated by tabs, semicolons or commas; rows are lines. Numbers may have a decimal comma unless commas
    separate the cells. Names in headers put rows and columns into the order of the classes; a last column with another
    name is the decision for no class.

    Args:
        text: the table.
        classes: number of classes C.
        class_names: names of the classes, to which headers refer.

    Raises:
        InvalidInputError: a cell is no number, the table has another shape, or a header names other classes.

    Examples:
        >>> costs_from_table("true\\tmole\\tmelanoma\\nmole\\t0\\t1\\nmelanoma\\t2,5\\t0", 2, ["mole", "melanoma"])
        ((0.0, 1.0), (2.5, 0.0))
        >>> costs_from_table("0;1\\n9;0", 2)
        ((0.0, 1.0), (9.0, 0.0))
    """
    check_length(text, LONGEST_TABLE, "a table")
    cells = _cells(text, classes)
    columns = (
        [name for name in cells[0] if name] if any(not is_number(cell) for cell in cells[0][1:]) else None
    )
    body = cells if columns is None else cells[1:]
    has_names = bool(body) and any(not is_number(row[0]) for row in body)
    rows = [row[0] for row in body] if has_names else None
    if columns is not None and has_names and len(columns) == len(body[0]):
        columns = columns[1:]  # the corner has a text of its own
    entries = [row[1:] if has_names else row for row in body]
    _refuse_mixed_commas([cell for row in entries for cell in row])
    numbers = [[_number(cell) for cell in row] for row in entries]
    if (
        len(numbers) != classes
        or {len(row) for row in numbers} - {classes, classes + 1}
        or (len({len(row) for row in numbers}) > 1)
    ):
        lengths = ", ".join(str(length) for length in sorted({len(row) for row in numbers}))
        shape = f"{len(numbers)} rows of {lengths[:80]} numbers"
        raise InvalidInputError(
            f"expected {classes} rows of {classes} numbers, got {shape}.",
            field=FIELD,
            hint="A row for each true class, a column for each decision; one more column is for deciding on none.",
        )
    row_order = _order(rows, class_names, classes)
    column_order = _order(None if columns is None else columns[:classes], class_names, classes)
    order = [*column_order, *range(classes, len(numbers[0]))]
    return tuple(tuple(numbers[i][j] for j in order) for i in row_order)


def is_number(text: str) -> bool:
    """Whether a text is a number, with a decimal point or a decimal comma."""
    return NUMBER.fullmatch(text) is not None


def is_ambiguous(text: str) -> bool:
    """Whether the comma of a number may separate thousands.

    Examples:
        >>> is_ambiguous("1,000"), is_ambiguous("0,125"), is_ambiguous("1,5")
        (True, False, False)
    """
    return THOUSANDS.fullmatch(text) is not None


def check_length(text: str, most: int, what: str) -> None:
    """Refuse a text that is too long.

    Raises:
        InvalidInputError: it has more characters than `most`.
    """
    if len(text) > most:
        raise InvalidInputError(
            f"{what} has at most {most:,} characters, this one has {len(text):,}.", field=FIELD
        )


def _cells(text: str, classes: int) -> list[list[str]]:
    lines = [line.strip("\r") for line in text.splitlines() if line.strip()]
    separator = next((sign for sign in SEPARATORS if any(sign in line for line in lines)), None)
    if len(lines) < 2 or separator is None:
        raise InvalidInputError(
            "expected a table of several lines, with tabs, semicolons or commas between the cells.",
            field=FIELD,
            hint="Copy the cells in the spreadsheet and paste them here.",
        )
    if len(lines) > classes + 1:  # the rows and a header
        raise InvalidInputError(
            f"expected {classes} rows of {classes} numbers, got {len(lines):,} lines.",
            field=FIELD,
            hint="A row for each true class, a column for each decision, and at most one row of names.",
        )
    cells = [[cell.strip().strip('"').strip() for cell in line.split(separator)] for line in lines]
    empty = min(_trailing(row) for row in cells)
    return [row[: len(row) - empty] for row in cells]


def _trailing(row: Sequence[str]) -> int:
    """Number of empty cells at the end of a row, whose first cell does not count."""
    return next((count for count, cell in enumerate(reversed(row[1:])) if cell), len(row) - 1)


def _refuse_mixed_commas(cells: Sequence[str]) -> None:
    """Refuse numbers whose commas or points may separate thousands.

    `1,000` is read where another cell shows that commas are decimal commas.
    """
    with_comma = [cell for cell in cells if "," in cell and is_number(cell)]
    unclear = next((cell for cell in with_comma if is_ambiguous(cell)), None)
    if unclear is not None and all(is_ambiguous(cell) for cell in with_comma):
        raise InvalidInputError(
            f"{unclear!r} may be {unclear.replace(',', '')} or {float(unclear.replace(',', '.')):g}.",
            field=FIELD,
            hint="Leave separators of thousands out, and write decimals with a point.",
        )
    with_point = next((cell for cell in cells if "." in cell and is_number(cell)), None)
    if with_comma and with_point is not None:
        raise InvalidInputError(
            f"{with_point!r} has a point and {with_comma[0]!r} a comma.",
            field=FIELD,
            hint="Write all decimals with a point, or all with a comma, without separators of thousands.",
        )


def _number(cell: str) -> float:
    if not is_number(cell):
        raise InvalidInputError(
            f"{cell[:40]!r} is no number." if cell else "a cell is empty.",
            field=FIELD,
            hint="Every cell but the headers holds a number.",
        )
    return check_cost(float(cell.replace(",", ".")))


def _order(header: Sequence[str] | None, names: Sequence[str] | None, classes: int) -> list[int]:
    """Place of each class in a header."""
    if header is None or not names:
        return list(range(classes))
    given, wanted = list(header), list(names)
    if sorted(given) != sorted(wanted):
        given, wanted = [name.casefold() for name in given], [name.casefold() for name in wanted]
    if sorted(given) != sorted(wanted) or len(set(given)) < len(given):
        raise InvalidInputError(
            f"the header names {', '.join(header)[:200]}, the classes are {', '.join(names)[:200]}.",
            field=FIELD,
            hint="Name every class once, or leave the header out.",
        )
    place = {name: index for index, name in enumerate(given)}
    return [place[name] for name in wanted]
