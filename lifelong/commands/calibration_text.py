"""The report of a calibration set as text."""

from typing import Any

import click

_MOST_CLASSES = 10

_FIGURES = (
    ("accuracy", "accuracy", 100, "%"),
    ("expected_cost", "expected cost", 1, ""),
    ("calibration_error", "calibration error", 100, "%"),
    ("brier_score", "Brier score", 1, ""),
)


def print_report(report: dict[str, Any], *, old_version: int | None = None) -> None:
    """Print cases, figures and warnings; refusals are left to the error that they end in.

    Args:
        report: as `CalibrationReport.to_document` gives it.
        old_version: of the present head.
    """
    from rich.console import Console
    from rich.table import Table

    click.echo(_cases(report))
    table = Table(box=None, header_style="bold")
    for column in ("figure", "of", "value", "95 % interval"):
        table.add_column(column, justify="right" if column == "value" else "left")
    alone = {"accuracy": report["majority_accuracy"], "expected_cost": report["constant_cost"]}
    present = "present head" if old_version is None else f"present head {old_version}"
    for name, title, factor, unit in _FIGURES:
        heading = title
        for head, figures in (
            ("new head", report["new"]),
            (present, report["old"]),
            ("difference", report["change"]),
            ("previous set", report["previous"]),
        ):
            if figures is not None:
                sign = "+" if head == "difference" or name == "calibration_error" else ""
                table.add_row(heading, head, *_texts(figures[name], factor, unit, sign))
                heading = ""
        if name in alone:
            table.add_row("", "prevalence alone", _text(alone[name], factor, unit, ""), "")
    Console().print(table)
    for finding in report["findings"]:
        if finding["severity"] == "warning":
            click.secho(f"Warning: {finding['text']}", fg="yellow")


def _texts(figure: dict[str, float], factor: int, unit: str, sign: str) -> tuple[str, str]:
    low, high = (_text(figure[end], factor, "", sign) for end in ("low", "high"))
    return _text(figure["value"], factor, unit, sign), f"{low} to {high} {unit}".rstrip()


def _text(value: float, factor: int, unit: str, sign: str) -> str:
    number = f"{factor * value:{sign}.1f}" if factor != 1 else f"{value:{sign}.3g}"
    return f"{number} {unit}".rstrip()


def _cases(report: dict[str, Any]) -> str:
    names, counts = report["class_names"], report["counts"]
    groups = "" if report["groups"] is None else f" in {report['groups']} groups"
    if len(names) > _MOST_CLASSES:
        each = f"{len(names)} classes, {min(counts)} to {max(counts)} of each"
    else:
        each = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
    return f"{report['samples']} cases{groups}: {each}."
