"""A labelling plan as its page shows it: progress, expected widths, and intervals drawn on one scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lifelong_core.entities.labelling import PlanLine

METHODS = {
    "labelled": "With the labels of the plan",
    "labels_alone": "Labels alone",
    "label_free": "Without labels",
}
METRICS = {"EC": "Expected cost", "AC": "Accuracy"}
WIDTHS = {
    "planned": "with the labels of the plan",
    "random": "with as many labels at random",
    "label_free": "without labels (where its assumption holds)",
}
SCALE = 200.0
"""Width of a drawn interval's scale."""


@dataclass(frozen=True)
class IntervalView:
    """A metric by one method, with its place on the scale that all methods share."""

    method: str
    value: float | None
    low: float | None
    high: float | None
    at: float | None
    """of the value, in 0..SCALE"""
    begin: float | None
    end: float | None

    @property
    def width(self) -> float | None:
        """Of the interval."""
        return None if self.low is None or self.high is None else self.high - self.low


def plan_view(plan: PlanLine) -> dict[str, Any]:
    """A plan for its page."""
    estimate, progress, widths = plan.estimate, plan.progress, plan.expected_widths
    shown = {} if estimate is None else {name: _intervals(estimate, name) for name in METRICS}
    return {
        "plan": plan,
        "path": f"/console/labels/{plan.id}.csv",
        "fraction": progress.labelled / progress.chosen if progress.chosen else 0.0,
        "confidence": widths["confidence"],
        "widths": [(title, widths[name]) for name, title in WIDTHS.items() if widths[name] is not None],
        "metrics": [(METRICS[name], rows) for name, rows in shown.items() if rows],
        "notes": [] if estimate is None else estimate["notes"],
        "used": 0 if estimate is None else estimate["labels"],
    }


def _intervals(estimate: Mapping[str, Any], metric: str) -> list[IntervalView]:
    """The metric by each method that has it."""
    found = {
        title: estimate[name][metric]
        for name, title in METHODS.items()
        if estimate[name] is not None and metric in estimate[name]
    }
    ends = [number for three in found.values() for number in three.values() if number is not None]
    if not ends:
        return []
    least, span = min(ends), max(ends) - min(ends)

    def place(number: float | None) -> float | None:
        if number is None:
            return None
        return SCALE / 2 if span == 0 else 6 + (SCALE - 12) * (number - least) / span

    return [
        IntervalView(
            title,
            **three,
            at=place(three["value"]),
            begin=place(three["low"]),
            end=place(three["high"]),
        )
        for title, three in found.items()
    ]
