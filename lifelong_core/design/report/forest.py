"""Forest plots: estimates with intervals, one below the other, on one axis for each kind of range."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifelong_core.charts.scales import Scale, pad_range
from lifelong_core.design.recommendation.wording import DIRECTIONS
from lifelong_core.design.report.plots import Axis, Dot
from lifelong_core.design.report.words import direction, interval_in_words, of
from lifelong_core.design.validation.acceptance import AcceptanceOutcome
from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, Orientation

ACROSS = (2.0, 98.0)
"""per cent of the width that the axis takes, so that points at its ends are whole"""
TICKS = 5
"""most numbers of an axis, as many as fit on a phone"""


@dataclass(frozen=True)
class Entry:
    """A value that gets a row."""

    label: str
    value: EstimatedValue
    orientation: Orientation
    threshold: float | None = None
    """what it has to reach"""
    naive: float | None = None
    """value of a classifier that ignores the image"""
    is_rough: bool = False
    """whether its interval is too wide to stretch the axis for"""
    note: str = ""
    """what the value rests on, such as costs"""
    text: str | None = None
    """the value in words; None: estimate and interval"""


@dataclass(frozen=True)
class Row:
    """One row of a forest plot; all places are per cent of its width."""

    label: str
    note: str
    text: str
    dot: Dot | None
    """None: the value is not defined"""
    threshold: float | None
    naive: float | None
    arrows: tuple[tuple[float, int], ...] = ()
    """where the interval goes beyond the axis: place and direction, -1 to the left or 1 to the right"""


@dataclass(frozen=True)
class Forest:
    """Values that share an axis."""

    title: str
    plot: tuple[float, float]
    """ends of the axis, per cent"""
    x: Axis
    rows: tuple[Row, ...]
    reference: float | None = None
    """per cent: a value that all rows are compared with"""


def entries_of(
    values: Iterable[MetricValue],
    class_names: Sequence[str],
    acceptance: Iterable[AcceptanceOutcome] = (),
    *,
    notes: Callable[[MetricValue], str] = lambda _: "",
) -> list[Entry]:
    """A row for each value, with its acceptance threshold and a note."""
    wanted = thresholds_of(acceptance)
    entries: list[Entry] = []
    summed: set[str] = set()
    for value in values:
        key = (value.label, value.class_index)
        threshold = wanted.get(key)
        is_first = value.label not in summed
        if threshold is None and is_first:
            threshold = wanted.get((value.label, None))
        if threshold is None and value.value_of == "all_classes":
            threshold = next((number for (label, _), number in wanted.items() if label == value.label), None)
        if value.refusal is not None:
            threshold = None
        summed.add(value.label)
        is_one = value.value_of == "all_classes"
        label = value.label if is_one else f"{value.label} · {of(value, class_names)}"
        note = notes(value) if is_first else ""
        entries.append(Entry(label, value, value.orientation, threshold, value.naive, note=note))
    return entries


def thresholds_of(acceptance: Iterable[AcceptanceOutcome]) -> Mapping[tuple[str, int | None], float]:
    """Thresholds by metric and class; class None is the summary of the metric."""
    asked = (outcome.threshold for outcome in acceptance)
    return {(threshold.metric, threshold.class_index): threshold.value for threshold in asked}


def forests(entries: Sequence[Entry]) -> list[Forest]:
    """Forest plots: values between 0 and 1 with the same direction share an axis, others have their own."""
    beyond = {
        entry.value.label for entry in entries if not all(0 <= number <= 1 for number in _numbers([entry]))
    }
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        own = entry.value.label if entry.value.label in beyond else ""
        groups.setdefault((entry.orientation, own), []).append(entry)
    return [
        forest(group, f"{own}: {DIRECTIONS[orientation]}" if own else direction(orientation))
        for (orientation, own), group in sorted(groups.items(), key=lambda item: item[0][1] != "")
    ]


def forest(entries: Sequence[Entry], title: str, *, reference: float | None = None) -> Forest:
    """One plot of values that share an axis.

    Args:
        entries: one for each row.
        title: of the plot.
        reference: a value that all are compared with.
    """
    numbers = [*_numbers(entries), *([] if reference is None else [reference])]
    is_share = all(0 <= number <= 1 for number in numbers)
    within = (0.0, 1.0) if is_share else (-math.inf, math.inf)
    scale = Scale(pad_range(numbers, within=within), ACROSS)
    return Forest(
        title=title,
        plot=scale.pixels,
        x=Axis("", scale.ticks(TICKS)),
        rows=tuple(_row(entry, scale) for entry in entries),
        reference=None if reference is None else _if_on(scale, reference),
    )


def _numbers(entries: Iterable[Entry]) -> Iterable[float]:
    """The finite numbers that the axis has to show."""
    for entry in entries:
        value = entry.value
        ends = () if entry.is_rough else (value.low, value.high)
        found = (value.estimate, entry.threshold, *ends)
        yield from (number for number in found if number is not None)


def _row(entry: Entry, scale: Scale) -> Row:
    value = entry.value
    estimate = value.number("estimate")
    dot = None
    if not math.isnan(estimate):
        low, high = value.number("low"), value.number("high")
        ends = (None, None) if math.isnan(low) or math.isnan(high) else (_on(scale, low), _on(scale, high))
        dot = Dot(_on(scale, estimate), 0.0, *ends)
    return Row(
        label=entry.label,
        note=entry.note,
        text=interval_in_words(value) if entry.text is None else entry.text,
        dot=dot,
        threshold=None if entry.threshold is None else scale(entry.threshold),
        naive=_if_on(scale, entry.naive),
        arrows=tuple(_arrows(value, scale)),
    )


def _arrows(value: EstimatedValue, scale: Scale) -> Iterable[tuple[float, int]]:
    """Where an interval continues beyond the axis."""
    first, last = scale.values
    if value.number("low") < first:
        yield scale.pixels[0], -1
    if value.number("high") > last:
        yield scale.pixels[1], 1


def _if_on(scale: Scale, value: float | None) -> float | None:
    """The place of a value; None beyond the axis."""
    low, high = scale.values
    return None if value is None or not low <= value <= high else scale(value)


def _on(scale: Scale, value: float) -> float:
    """The place of a value; an infinite one lies at the end of the axis."""
    low, high = scale.values
    return scale(min(max(value, low), high))
