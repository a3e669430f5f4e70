"""Tables of query results, with the transformations `merge` and `organize` as Grafana carries them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lifelong.grafana_preview.source import Line

Value: TypeAlias = float | str
TRANSFORMATIONS = {"merge", "organize"}


@dataclass(frozen=True)
class Frame:
    """A table: titles of columns, and rows that may lack some."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Value], ...]


def table(panel: Mapping[str, Any], results: Sequence[tuple[str, Sequence[Line]]]) -> Frame:
    """The table of a panel, from (refId, result) of its queries: merged, organised and sorted."""
    rows = _merge(results)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for one in panel.get("transformations") or ():
        if one["id"] == "organize":
            names, rows = _organise(names, rows, one["options"])
    for one in reversed(panel["options"].get("sortBy") or ()):
        rows = _sorted(rows, one["displayName"], descending=one.get("desc", False))
    return Frame(tuple(names), tuple(rows))


def _merge(results: Sequence[tuple[str, Sequence[Line]]]) -> list[dict[str, Value]]:
    """One row for the values with the same labels; labels that not all queries have do not count."""
    frames = [(ref_id, lines) for ref_id, lines in results if lines]
    shared = (
        set.intersection(*(set(_labels(line)) for _, lines in frames for line in lines)) if frames else set()
    )
    rows: dict[tuple[str, ...], list[dict[str, Value]]] = {}
    for ref_id, lines in frames:
        field = f"Value #{ref_id}" if len(results) > 1 else "Value"
        for line in lines:
            if not line.samples:
                continue
            same = rows.setdefault(tuple(line.labels[name] for name in sorted(shared)), [])
            row = next((one for one in same if field not in one), None)
            if row is None:
                row = {}
                same.append(row)
            row |= {**_labels(line), "Time": line.samples[-1][0], field: line.samples[-1][1]}
    return [row for same in rows.values() for row in same]


def _labels(line: Line) -> dict[str, str]:
    return {name: value for name, value in line.labels.items() if name != "__name__"}


def _organise(
    names: Sequence[str], rows: Sequence[Mapping[str, Value]], options: Mapping[str, Any]
) -> tuple[list[str], list[dict[str, Value]]]:
    hidden, titles, order = (options.get(one, {}) for one in ("excludeByName", "renameByName", "indexByName"))
    kept = sorted(
        (name for name in names if not hidden.get(name)), key=lambda name: order.get(name, len(order))
    )
    return (
        [titles.get(name, name) for name in kept],
        [{titles.get(name, name): row[name] for name in kept if name in row} for row in rows],
    )


def _sorted(rows: Sequence[dict[str, Value]], column: str, *, descending: bool) -> list[dict[str, Value]]:
    """Rows without a value in the column are the last ones."""
    with_value = [row for row in rows if column in row]
    with_value.sort(key=lambda row: (isinstance(row[column], str), row[column]), reverse=descending)
    return [*with_value, *(row for row in rows if column not in row)]
