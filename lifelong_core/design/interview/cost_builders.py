"""Costs of many classes from a short rule or a pasted table; every function returns one row per true class."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from lifelong_core.arrays import LARGEST_NUMBER
from lifelong_core.errors import InvalidInputError

Costs: TypeAlias = tuple[tuple[float, ...], ...]
"""shape (C, D): cost of deciding on class j where class i is true, row i, column j"""

FIELD = "costs"
SEPARATORS = ("\t", ";", ",")
"""of the cells of a pasted table, in the order in which they are tried"""
NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d{1,3})?")


def ordinal_costs(classes: int, power: Literal[1, 2] = 1) -> Costs:
    """Costs of classes in an order: the number of steps between them, or its square.

    Args:
        classes: number of classes, at least 2.
        power: 1 for linear, 2 for quadratic costs.

    Raises:
        InvalidInputError: fewer than 2 classes.

    Examples:
        >>> ordinal_costs(3)
        ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 1.0, 0.0))
        >>> ordinal_costs(3, power=2)[0]
        (0.0, 1.0, 4.0)
    """
    _check_classes(classes)
    return tuple(tuple(float(abs(i - j) ** power) for j in range(classes)) for i in range(classes))


def equal_costs_but(classes: int, exceptions: Mapping[tuple[int, int], float], *, cost: float = 1.0) -> Costs:
    """The same cost of every error, except for some.

    Args:
        classes: number of classes, at least 2.
        exceptions: (true class, decision) -> cost.
        cost: of all other errors.

    Raises:
        InvalidInputError: an exception is no error between two of the classes, or a cost is no number in range.

    Examples:
        >>> equal_costs_but(3, {(2, 0): 50.0})
        ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (50.0, 1.0, 0.0))
    """
    _check_classes(classes)
    for true, decided in exceptions:
        if not (0 <= true < classes and 0 <= decided < classes) or true == decided:
            raise InvalidInputError(
                f"({true}, {decided}) is no error between two of {classes} classes.",
                field=FIELD,
                hint=f"Name the true class and another one that is decided, both from 0 to {classes - 1}.",
            )
    usual, special = _cost(cost), {pair: _cost(one) for pair, one in exceptions.items()}
    return tuple(
        tuple(0.0 if i == j else special.get((i, j), usual) for j in range(classes)) for i in range(classes)
    )


def block_costs(
    classes: int, blocks: Sequence[Sequence[int]], *, within: float = 1.0, across: float = 10.0
) -> Costs:
    """Costs of classes in blocks: one cost of an error within a block, another one across blocks.

    Args:
        classes: number of classes, at least 2.
        blocks: the classes of each block; together they hold every class once.
        within: cost of deciding on another class of the same block.
        across: cost of deciding on a class of another block.

    Raises:
        InvalidInputError: a class is in no block or in several, or a cost is no number in range.

    Examples:
        >>> block_costs(3, [[0, 1], [2]], across=20.0)
        ((0.0, 1.0, 20.0), (1.0, 0.0, 20.0), (20.0, 20.0, 0.0))
    """
    _check_classes(classes)
    named = [one for block in blocks for one in block]
    if sorted(named) != list(range(classes)):
        wrong = [one for one in range(classes) if named.count(one) != 1]
        raise InvalidInputError(
            f"each of the {classes} classes belongs to one block; "
            f"these are in none or in several: {', '.join(map(str, wrong)) or 'others'}.",
            field=FIELD,
            hint="Name every class once.",
        )
    block_of = {one: number for number, block in enumerate(blocks) for one in block}
    near, far = _cost(within), _cost(across)
    return tuple(
        tuple(0.0 if i == j else near if block_of[i] == block_of[j] else far for j in range(classes))
        for i in range(classes)
    )


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
    cells = _cells(text)
    columns = (
        [name for name in cells[0] if name] if any(not _is_number(one) for one in cells[0][1:]) else None
    )
    body = cells if columns is None else cells[1:]
    has_names = bool(body) and any(not _is_number(row[0]) for row in body)
    rows = [row[0] for row in body] if has_names else None
    if columns is not None and has_names and len(columns) == len(body[0]):
        columns = columns[1:]  # the corner has a text of its own
    numbers = [[_number(one) for one in (row[1:] if has_names else row)] for row in body]
    if (
        len(numbers) != classes
        or {len(row) for row in numbers} - {classes, classes + 1}
        or (len({len(row) for row in numbers}) > 1)
    ):
        shape = f"{len(numbers)} rows of {', '.join(str(n) for n in sorted({len(row) for row in numbers}))} numbers"
        raise InvalidInputError(
            f"expected {classes} rows of {classes} numbers, got {shape}.",
            field=FIELD,
            hint="A row for each true class, a column for each decision; one more column is for deciding on none.",
        )
    row_order = _order(rows, class_names, classes)
    column_order = _order(None if columns is None else columns[:classes], class_names, classes)
    order = [*column_order, *range(classes, len(numbers[0]))]
    return tuple(tuple(numbers[i][j] for j in order) for i in row_order)


def _cells(text: str) -> list[list[str]]:
    lines = [line.strip("\r") for line in text.splitlines() if line.strip()]
    separator = next((one for one in SEPARATORS if any(one in line for line in lines)), None)
    if len(lines) < 2 or separator is None:
        raise InvalidInputError(
            "expected a table of several lines, with tabs, semicolons or commas between the cells.",
            field=FIELD,
            hint="Copy the cells in the spreadsheet and paste them here.",
        )
    cells = [[cell.strip().strip('"').strip() for cell in line.split(separator)] for line in lines]
    while all(len(row) > 1 and not row[-1] for row in cells):
        cells = [row[:-1] for row in cells]
    return cells


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def _number(cell: str) -> float:
    if not _is_number(cell):
        raise InvalidInputError(
            f"{cell[:40]!r} is no number." if cell else "a cell is empty.",
            field=FIELD,
            hint="Every cell but the headers holds a number.",
        )
    return _cost(float(cell.replace(",", ".")))


def _order(header: Sequence[str] | None, names: Sequence[str] | None, classes: int) -> list[int]:
    """Place of each class in a header."""
    if header is None or not names:
        return list(range(classes))
    folded, wanted = [one.casefold() for one in header], [one.casefold() for one in names]
    if sorted(folded) != sorted(wanted) or len(set(folded)) < len(folded):
        raise InvalidInputError(
            f"the header names {', '.join(header)[:200]}, the classes are {', '.join(names)[:200]}.",
            field=FIELD,
            hint="Name every class once, or leave the header out.",
        )
    return [folded.index(one) for one in wanted]


def _check_classes(classes: int) -> None:
    if classes < 2:
        raise InvalidInputError(f"expected at least 2 classes, got {classes}.", field=FIELD)


def _cost(value: float) -> float:
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a number up to {LARGEST_NUMBER:g}, got {value:g}.", field=FIELD)
    return float(value)
