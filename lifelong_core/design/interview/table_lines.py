"""Tables of costs line by line, as a terminal reads them: is a table complete?"""

from collections.abc import Sequence

from lifelong_core.design.interview.cost_builders import is_number
from lifelong_core.design.interview.cost_rules import has_letters, is_rule


def needs_more_lines(lines: Sequence[str], classes: int | None) -> bool:
    """Whether typed lines are the beginning of a table of costs, with rows still to come.

    The first line decides: cells of a row or of a header, separated by tabs, semicolons or commas, or as many numbers
    as there are classes. Rules, rows in one line, and JSON are complete.

    Args:
        lines: the lines so far, without empty ones.
        classes: number of classes; None: unknown, so no table is complete.

    Examples:
        >>> needs_more_lines(["0 1 2"], 3), needs_more_lines(["0 1 2", "1 0 1", "2 1 0"], 3)
        (True, False)
        >>> needs_more_lines(["linear"], 3), needs_more_lines(["0, 1; 9, 0"], 2)
        (False, False)
    """
    if classes is None or not lines:
        return False
    first = lines[0].strip()
    cells = _cells_of_row(first, classes)
    if cells is None or first.startswith("[") or is_rule(first):
        return False
    has_header = any(not is_number(cell) for cell in cells[1:])
    return len(lines) < classes + has_header


def _cells_of_row(line: str, classes: int) -> list[str] | None:
    """The cells of a line that may be a row or a header of a table; None: it is none."""
    for separator in ("\t", ";", ",", None):
        if separator is not None and separator not in line:
            continue
        cells = [cell.strip().strip('"').strip() for cell in line.split(separator)]
        while len(cells) > 1 and not cells[-1]:
            cells.pop()
        known = all(not cell or is_number(cell) or has_letters(cell) for cell in cells)
        if separator is None:
            known = all(is_number(cell) for cell in cells)
        has_names = any(not is_number(cell) for cell in cells)
        if known and classes <= len(cells) <= classes + 1 + has_names:
            return cells
        if separator in ("\t", ";"):
            return None
    return None
