"""A labelling plan as people read it in the terminal."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lifelong.commands.tables import wrap_text
from lifelong.printing import echo
from lifelong_core.entities.labelling import PlanLine

_LABEL = 18
"""Columns of the names."""


def print_plan(plan: PlanLine) -> None:
    """Print a plan: what it chose, what its labels tell, and the newest estimate."""
    window = plan.window
    lines = {
        "plan": str(plan.id),
        "population": f"{plan.model} in {plan.environment}, head {plan.head_version}",
        "window": f"{window.samples:,} predictions from {_minute(window.since)} to {_minute(window.until)}",
        "labelled before": f"{plan.labelled_before:,}; they are not chosen again",
        "chosen": f"{plan.size:,}, of which {plan.progress.labelled:,} have a label now",
        "expected width": _widths(plan.expected_widths),
    }
    for name, text in lines.items():
        _line(name, text)
    _print_estimate(plan.estimate)


def _widths(widths: Mapping[str, Any]) -> str:
    names = {
        "planned": "with these labels",
        "random": "with labels at random",
        "label_free": "without labels",
    }
    known = [f"{widths[name]:.4g} {text}" for name, text in names.items() if widths[name] is not None]
    return f"of the {widths['confidence']:.0%} interval on expected cost: {', '.join(known)}"


def _print_estimate(estimate: Mapping[str, Any] | None) -> None:
    if estimate is None:
        _line("estimate", "a monitor computes it when labels have arrived")
        return
    titles = {
        "labelled": f"with {estimate['labels']} labels",
        "labels_alone": "labels alone",
        "label_free": "without labels",
    }
    for name, title in titles.items():
        if estimate[name]:
            _line(title, "; ".join(_figure(metric, three) for metric, three in estimate[name].items()))
    for note in estimate["notes"]:
        echo(wrap_text(note))


def _figure(metric: str, three: Mapping[str, float | None]) -> str:
    value, low, high = (three[name] for name in ("value", "low", "high"))
    if value is None:
        return f"{metric} undefined"
    interval = "" if low is None or high is None else f" ({low:.4g} to {high:.4g})"
    return f"{metric} {value:.4g}{interval}"


def _line(name: str, text: str) -> None:
    echo(wrap_text(text, first=f"{name:{_LABEL}}", indent=" " * _LABEL))


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"
