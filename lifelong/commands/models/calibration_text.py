"""The report of a calibration set as text."""

import math
from collections.abc import Iterable
from typing import Any

from lifelong.commands.tables import wrap_text
from lifelong.printing import echo
from lifelong.rich_console import Console

_MOST_CLASSES = 10
_INDENT = "  "
_REFUSED = (
    "Nothing was published. If the set is right all the same, publish it with "
    '`--force-because "REASON"`; the reason goes to the audit log.'
)

_FIGURES = (
    ("accuracy", "accuracy", "%"),
    ("expected_cost", "expected cost", ""),
    ("calibration_error", "calibration error", "%"),
    ("brier_score", "Brier score", ""),
)
_CAPTION = "All figures and intervals are for the class mix of this set: another mix would give others."


def print_report(report: dict[str, Any], *, old_version: int | None = None) -> None:
    """Print cases, figures and warnings; refusals are left to `print_refusals`.

    Args:
        report: as `CalibrationReport.to_document` gives it.
        old_version: of the present head; None: there is none.
    """
    from rich.table import Table

    echo(wrap_text(_cases(report)))
    table = Table(box=None, header_style="bold")
    for column in ("figure", "of", "value", "95 % interval"):
        table.add_column(column, justify="right" if column == "value" else "left")
    alone = {"accuracy": report["majority_accuracy"], "expected_cost": report["constant_cost"]}
    for name, title, unit in _FIGURES:
        rows = {
            head: figures[name]
            for head, figures in (
                ("new head", report["new"]),
                (f"present head {old_version}", report["old"]),
                ("difference", report["change"]),
                ("previous set", report["previous"]),
            )
            if figures is not None
        }
        decimals = 1 if unit else _decimals(rows.values())
        for number, (head, figure) in enumerate(rows.items()):
            sign = "+" if head == "difference" or name == "calibration_error" else ""
            table.add_row("" if number else title, head, *_texts(figure, decimals, unit, sign))
        if name in alone:
            table.add_row("", "prevalence alone", _text(alone[name], decimals, unit, ""), "")
    Console().print(table)
    echo(wrap_text(_CAPTION))
    for finding in report["findings"]:
        if finding["severity"] == "warning":
            echo(wrap_text(f"Warning: {finding['text']}", indent=_INDENT, first=""), fg="yellow")


def print_refusals(report: dict[str, Any], *, forced: bool = False) -> None:
    """Print each refusal of a report with its hint, and how to publish anyway, on standard error.

    Args:
        report: as `CalibrationReport.to_document` gives it.
        forced: the set is taken although it is refused; this is printed on standard output, without advice.
    """
    word = "Forced" if forced else "Refused"
    for finding in report["findings"]:
        if finding["severity"] == "refusal":
            text = wrap_text(f"{word}: {finding['text']}", indent=_INDENT, first="")
            echo(text, fg="red", err=not forced)
            if finding["hint"] and not forced:
                echo(wrap_text(finding["hint"], indent=_INDENT), err=True)
    if not forced:
        echo(wrap_text(_REFUSED), err=True)


def _decimals(figures: Iterable[dict[str, float]]) -> int:
    """Three, fewer for costs of ten and more, more for tiny ones; all rows of a figure have equally many."""
    largest = max(abs(number) for figure in figures for number in figure.values())
    if largest == 0:
        return 3
    exponent = math.floor(math.log10(largest))
    return max(3 - exponent, 0) if exponent >= 0 else 2 - exponent


def _texts(figure: dict[str, float], decimals: int, unit: str, sign: str) -> tuple[str, str]:
    low, high = (_text(figure[end], decimals, unit, sign).removesuffix(" %") for end in ("low", "high"))
    return _text(figure["value"], decimals, unit, sign), f"{low} to {high} {unit}".rstrip()


def _text(value: float, decimals: int, unit: str, sign: str) -> str:
    number = f"{100 * value if unit else value:{sign}.{decimals}f}"
    if float(number) == 0:
        number = number.lstrip("+-")
    return f"{number} {unit}".rstrip()


def _cases(report: dict[str, Any]) -> str:
    names, counts = report["class_names"], report["counts"]
    groups = "" if report["groups"] is None else f" in {report['groups']} groups"
    if len(names) > _MOST_CLASSES:
        each = f"{len(names)} classes, {min(counts)} to {max(counts)} of each"
    else:
        each = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
    return f"{report['samples']} cases{groups}: {each}."
