"""Forest plots: estimates with intervals, one below the other, on one axis for each kind of range."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifelong_core.design.interview.wording import DIRECTIONS
from lifelong_core.design.report.plots import Axis, Dot, Scale, pad_range
from lifelong_core.design.report.words import direction, interval_in_words, of, shorten
from lifelong_core.design.validation.acceptance import AcceptanceOutcome
from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, Orientation

LABELS, PLOT, TEXTS, ROW, HEAD = 280.0, 380.0, 190.0, 24.0, 8.0
"""widths of the three columns (the first at most, the last at least), of a row and of the space above the first"""
CHARACTER, LONGEST_LABEL = 7.5, 36


ARROW = 5.0


@dataclass(frozen=True)
class Entry:
    """A value that gets a row."""

    label: str
    value: EstimatedValue
    orientation: Orientation
    threshold: float | None = None
    """what it has to reach"""
    naive: float | None = None
    """of a classifier that ignores the image"""
    is_rough: bool = False
    """whether its interval is too wide to stretch the axis for"""


@dataclass(frozen=True)
class Row:
    """One row of a forest plot."""

    label: str
    short_label: str
    text: str
    middle: float
    """pixels"""
    dot: Dot | None
    """None: the value is not defined"""
    threshold: float | None
    naive: float | None
    arrows: tuple[str, ...] = ()
    """`d` of SVG paths, at the edges that the interval goes beyond"""


@dataclass(frozen=True)
class Forest:
    """Values that share an axis."""

    title: str
    description: str
    width: float
    height: float
    plot: tuple[float, float]
    """left and right edge of the part with the axis"""
    texts: float
    """where the values in words begin"""
    x: Axis
    rows: tuple[Row, ...]
    reference: float | None = None
    """pixels: a value that all rows are compared with"""


def entries_of(
    values: Iterable[MetricValue], class_names: Sequence[str], acceptance: Iterable[AcceptanceOutcome] = ()
) -> list[Entry]:
    """A row for each value, with its acceptance threshold."""
    wanted = thresholds_of(acceptance)
    found: list[Entry] = []
    summed: set[str] = set()
    for value in values:
        key = (value.label, value.class_index)
        threshold = wanted.get(key)
        if threshold is None and value.label not in summed:
            threshold = wanted.get((value.label, None))
        summed.add(value.label)
        is_one = value.value_of == "all_classes"
        label = value.label if is_one else f"{value.label} · {of(value, class_names)}"
        found.append(Entry(label, value, value.orientation, threshold, value.naive))
    return found


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
    labels = label_width(entries)
    return [
        forest(group, f"{own}: {DIRECTIONS[orientation]}" if own else direction(orientation), labels=labels)
        for (orientation, own), group in sorted(groups.items(), key=lambda item: item[0][1] != "")
    ]


def label_width(entries: Iterable[Entry]) -> float:
    """The width of the longest label in pixels."""
    longest = max((len(shorten(entry.label, LONGEST_LABEL)) for entry in entries), default=0)
    return min(24 + CHARACTER * longest, LABELS)


def forest(
    entries: Sequence[Entry], title: str, *, reference: float | None = None, labels: float | None = None
) -> Forest:
    """One plot of values that share an axis.

    Args:
        entries: one for each row.
        title: of the plot.
        reference: a value that all are compared with.
        labels: width of the column of labels; None: as they need.
    """
    numbers = [*_numbers(entries), *([] if reference is None else [reference])]
    is_share = all(0 <= number <= 1 for number in numbers)
    within = (0.0, 1.0) if is_share else (-math.inf, math.inf)
    left = label_width(entries) if labels is None else labels
    scale = Scale(pad_range(numbers, within=within), (left, left + PLOT))
    ticks = scale.ticks(7)
    rows = tuple(_row(entry, scale, HEAD + ROW * (index + 0.5)) for index, entry in enumerate(entries))
    words = "; ".join(f"{row.label}: {row.text}" for row in rows)
    return Forest(
        title=title,
        description=f"Estimates with intervals. {title}. {words}.",
        width=left + PLOT + max(TEXTS, 12 + CHARACTER * max((len(row.text) for row in rows), default=0)),
        height=HEAD + ROW * len(rows) + 24,
        plot=scale.pixels,
        texts=left + PLOT + 12,
        x=Axis("", ticks),
        rows=rows,
        reference=None if reference is None else _if_on(scale, reference),
    )


def _numbers(entries: Iterable[Entry]) -> Iterable[float]:
    """The finite numbers that the axis has to show."""
    for entry in entries:
        value = entry.value
        ends = () if entry.is_rough else (value.low, value.high)
        found = (value.estimate, entry.threshold, *ends)
        yield from (number for number in found if number is not None)


def _row(entry: Entry, scale: Scale, middle: float) -> Row:
    value = entry.value
    estimate = value.number("estimate")
    dot = None
    if not math.isnan(estimate):
        low, high = value.number("low"), value.number("high")
        ends = (None, None) if math.isnan(low) or math.isnan(high) else (_on(scale, low), _on(scale, high))
        dot = Dot(_on(scale, estimate), middle, *ends)
    return Row(
        label=entry.label,
        short_label=shorten(entry.label, LONGEST_LABEL),
        text=interval_in_words(value),
        middle=middle,
        dot=dot,
        threshold=None if entry.threshold is None else scale(entry.threshold),
        naive=_if_on(scale, entry.naive),
        arrows=tuple(_arrows(value, scale, middle)),
    )


def _arrows(value: EstimatedValue, scale: Scale, middle: float) -> Iterable[str]:
    """The arrows where an interval continues beyond the axis."""
    first, last = scale.values
    for number, inward in ((value.number("low"), ARROW), (value.number("high"), -ARROW)):
        if number < first or number > last:
            at = _on(scale, number)
            yield f"M{at + inward:g} {middle - ARROW:g}L{at:g} {middle:g}L{at + inward:g} {middle + ARROW:g}"


def _if_on(scale: Scale, value: float | None) -> float | None:
    """The pixel of a value; None beyond the axis."""
    low, high = scale.values
    return None if value is None or not low <= value <= high else scale(value)


def _on(scale: Scale, value: float) -> float:
    """The pixel of a value; an infinite one lies at the end of the axis."""
    low, high = scale.values
    return scale(min(max(value, low), high))
