"""Tables: JSON for programs, one line per row for pipes, a table or blocks for a terminal."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lifelong.printing import echo
from lifelong_core.values.control_characters import escape_controls

GAP = "  "
WIDEST = 10_000
"""Columns of an output that is no terminal, so that nothing is folded there."""


def output_width() -> int | None:
    """Columns of standard output: COLUMNS if it is set, else those of the terminal; None: it is no terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_rows(
    rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str, below: str | None = None
) -> None:
    """Print rows with equal keys as a table, or as JSON.

    A terminal gets a table if that fits in; the column `below` moves under each row if this makes it fit. Else each row
    is a block of lines. Piped output has one line for each row.

    Args:
        rows: the values; times are aware, None is an empty cell.
        as_json: print one JSON list instead.
        empty: what is printed if there is no row.
        below: the last column, a longer text.
    """
    if as_json:
        echo(json.dumps(rows, default=_json_value))
        return
    if not rows:
        echo(empty)
        return
    cells = [{key: _text(value) for key, value in row.items()} for row in rows]
    names = list(cells[0])
    widths = {name: _width([_title(name), *(row[name] for row in cells)]) for name in names}
    width = output_width()
    above = [name for name in names if name != below]
    if width is None or _fits(names, widths, width):
        _print_table(cells, names, widths)
    elif below is not None and _fits(above, widths, width):
        _print_table(cells, above, widths, below=below, width=width)
    else:
        _print_blocks(cells, names, width)


def wrap_text(text: str, *, indent: str = "", first: str | None = None) -> str:
    """A text in lines that fit the terminal; as one line where the output is none.

    Args:
        text: without styles.
        indent: before every line.
        first: before the first line instead.
    """
    return _wrapped(text, indent if first is None else first, indent, output_width() or WIDEST)


def _fits(names: Sequence[str], widths: Mapping[str, int], width: int) -> bool:
    return sum(widths[name] for name in names) + len(GAP) * (len(names) - 1) <= width


def _print_table(
    rows: Sequence[Mapping[str, str]],
    names: Sequence[str],
    widths: Mapping[str, int],
    *,
    below: str | None = None,
    width: int = WIDEST,
) -> None:
    echo(_line([_title(name) for name in names], names, widths), bold=True)
    for row in rows:
        echo(_line([row[name] for name in names], names, widths))
        if below is not None and row[below]:
            echo(_wrapped(row[below], 2 * GAP, 2 * GAP, width))


def _print_blocks(rows: Sequence[Mapping[str, str]], names: Sequence[str], width: int) -> None:
    heading, *others = names
    label = max((len(_title(name)) for name in others), default=0)
    for number, row in enumerate(rows):
        if number:
            echo()
        echo(f"{_title(heading)} {row[heading]}", bold=True)
        for name in others:
            if row[name]:
                first = f"{GAP}{_title(name):{label}}{GAP}"
                echo(_wrapped(row[name], first, " " * len(first), width))


def _wrapped(text: str, first: str, further: str, width: int) -> str:
    return textwrap.fill(
        text,
        max(width, len(further) + 20),
        break_long_words=False,
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    )


def _line(values: Sequence[str], names: Sequence[str], widths: Mapping[str, int]) -> str:
    from rich.cells import cell_len

    padded = (
        value + " " * (widths[name] - cell_len(value)) for name, value in zip(names, values, strict=True)
    )
    return GAP.join(padded).rstrip()


def _width(texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, texts))


def _title(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%MZ}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return json.dumps(value, default=str)
    return escape_controls(str(value))


def _json_value(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
