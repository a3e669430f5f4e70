"""Panels of curves: one for each class, with the curves of the other classes behind it."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from lifelong_core.charts.scales import Point, Range, pad_range
from lifelong_core.design.report.basis import positive_class
from lifelong_core.design.report.plots import Bar, Dot, Frame, Panel
from lifelong_core.design.report.words import format_count, number, percent
from lifelong_core.design.validation.result import (
    DecisionCurvePoints,
    PrecisionRecallPoints,
    ReliabilityBins,
    RocPoints,
    ValidationResult,
)
from lifelong_core.values.scientific import normal_quantile

MOST_CURVES = 12
"""most panels of a kind; the page names the classes that are left out"""
UNIT: Range = (0.0, 1.0)
STRIP = 44.0
"""height of the bars of a reliability diagram, with the space above them"""

Curve = TypeVar("Curve", RocPoints, PrecisionRecallPoints, ReliabilityBins)
Rates: TypeAlias = tuple[float | None, float | None, float | None]
"""sensitivity, false positive rate and precision of a class"""


def _one_of_two(result: ValidationResult, curves: Sequence[Curve]) -> Sequence[Curve]:
    """The class of interest of two classes, because the other curve is its mirror image; all of more classes."""
    if len(result.class_names) != 2:
        return curves
    return [curve for curve in curves if curve.class_index == positive_class(result)] or curves


def roc_panels(result: ValidationResult) -> list[Panel]:
    """ROC curves of the classes of interest, with the operating point of the decisions."""
    shown = worst(_one_of_two(result, result.roc_curves), lambda curve: curve.area)
    frame = _frame(UNIT, UNIT, len(shown))
    others = {f"roc-{curve.class_index}" for curve in shown} if len(shown) > 2 else set[str]()
    return [_roc_panel(result, curve, frame, sorted(others)) for curve in shown]


def _roc_panel(result: ValidationResult, curve: RocPoints, frame: Frame, others: Sequence[str]) -> Panel:
    name = result.class_names[curve.class_index]
    found, alarms, _ = rates(result, curve.class_index)
    where = _operating(frame, alarms, found, "false positive rate", "sensitivity")
    own = f"roc-{curve.class_index}"
    points = list(zip(curve.false_positive_rate, curve.true_positive_rate, strict=True))
    return frame.panel(
        name,
        f"ROC curve of {name}: area {number(curve.area)}.{_spoken(where)}",
        x_name="false positive rate (1 - specificity)",
        y_name="sensitivity",
        lines=(
            frame.line([(0, 0), (1, 1)], "reference"),
            frame.line(points, name=own),
        ),
        operating=where,
        cut_offs=tuple(_cut_offs(result, curve, points, frame)),
        behind=tuple(other for other in others if other != own),
    )


def precision_recall_panels(result: ValidationResult) -> list[Panel]:
    """Precision-recall curves of the classes of interest, with the share of the class as the reference."""
    shown = worst(result.precision_recall_curves, lambda curve: curve.average_precision)
    frame = _frame(UNIT, UNIT, len(shown))
    return [_precision_recall_panel(result, curve, frame) for curve in shown]


def _precision_recall_panel(result: ValidationResult, curve: PrecisionRecallPoints, frame: Frame) -> Panel:
    name = result.class_names[curve.class_index]
    found, _, precise = rates(result, curve.class_index)
    where = _operating(frame, found, precise, "recall", "precision")
    area = number(curve.average_precision)
    points = list(zip(curve.recall, curve.precision, strict=True))
    return frame.panel(
        name,
        f"Precision-recall curve of {name}: average precision {area}, share of the class {percent(curve.prevalence)}."
        + _spoken(where),
        x_name="recall (sensitivity)",
        y_name="precision (PPV)",
        lines=(
            frame.line([(0, curve.prevalence), (1, curve.prevalence)], "reference"),
            frame.line(_steps(points)),
        ),
        operating=where,
        cut_offs=tuple(_cut_offs(result, curve, points, frame)),
    )


def _cut_offs(
    result: ValidationResult,
    curve: RocPoints | PrecisionRecallPoints,
    points: Sequence[Point],
    frame: Frame,
) -> Iterable[Dot]:
    """The cut-offs at which metrics of the class reach their targets, on the last point of the curve before them."""
    for value in result.values:
        limit = None if value.cut_off is None else value.cut_off.threshold
        if limit is None or value.class_index != curve.class_index:
            continue
        above = sum(threshold is None or threshold >= limit for threshold in curve.thresholds)
        if above:
            yield frame.dot(*points[above - 1], None, None, f"cut-off {number(limit)} of {value.label}")


def _steps(points: Iterable[Point]) -> Iterable[Point]:
    """The steps that average precision sums over: precision stays until the next point."""
    last = 0.0
    for x, y in points:
        yield last, y
        yield x, y
        last = x


def reliability_panels(result: ValidationResult) -> list[Panel]:
    """Reliability diagrams with the samples of each bin."""
    shown = shown_reliability(result)
    return [_reliability_panel(result, bins, len(shown)) for bins in shown]


def shown_reliability(result: ValidationResult) -> list[ReliabilityBins]:
    """Bins of the likeliest class, and of the classes with the largest gaps."""
    of_all = [bins for bins in result.reliability if bins.class_index is None]
    of_classes = _one_of_two(result, [bins for bins in result.reliability if bins.class_index is not None])
    return [*of_all, *worst(of_classes, lambda bins: -mean_gap(bins))]


def _reliability_panel(result: ValidationResult, bins: ReliabilityBins, panels: int) -> Panel:
    name = "likeliest class" if bins.class_index is None else result.class_names[bins.class_index]
    frame = _frame(UNIT, UNIT, panels, below=STRIP)
    dots: list[Dot] = []
    for count, predicted, observed in zip(bins.counts, bins.confidence, bins.frequency, strict=True):
        if predicted is not None and observed is not None:
            low, high = share_interval(observed, count, result.level)
            title = (
                f"{format_count(count, 'sample')}: predicted {number(predicted)}, observed {number(observed)}"
            )
            dots.append(frame.dot(predicted, observed, low, high, title))
    return frame.panel(
        name,
        f"Reliability diagram of {name}: mean distance of predicted and observed {number(mean_gap(bins))}. "
        + "; ".join(dot.title for dot in dots)
        + ".",
        x_name="predicted probability",
        y_name="observed frequency",
        lines=(frame.line([(0, 0), (1, 1)], "reference"),),
        dots=tuple(dots),
        bars=tuple(_bars(frame, bins)),
        bars_note=f"largest bin: {format_count(max(bins.counts, default=0), 'sample')}",
    )


def _bars(frame: Frame, bins: ReliabilityBins) -> Iterable[Bar]:
    most = max(bins.counts, default=0)
    base = frame.height - 2
    for left, right, count in zip(bins.edges, bins.edges[1:], bins.counts, strict=False):
        if count:
            height = round(max((STRIP - 16) * math.sqrt(count / most), 1.0), 1)
            x, end = frame.x(left), frame.x(right)
            title = f"{number(left)} to {number(right)}: {format_count(count, 'sample')}"
            yield Bar(x + 0.5, base - height, round(max(end - x - 1, 0.5), 1), height, title)


def mean_gap(bins: ReliabilityBins) -> float:
    """Mean distance between predicted and observed frequency, weighted by samples; 0 without samples."""
    gaps = zip(bins.counts, bins.confidence, bins.frequency, strict=True)
    total = sum(count * abs(p - f) for count, p, f in gaps if p is not None and f is not None)
    return total / max(sum(bins.counts), 1)


def share_interval(share: float, count: int, level: float) -> Range:
    """Wilson interval of an observed share of independent samples.

    Examples:
        >>> low, high = share_interval(0.5, 100, 0.95)
        >>> round(low, 3), round(high, 3)
        (0.404, 0.596)
    """
    z = float(normal_quantile((1 + level) / 2))
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def decision_panels(result: ValidationResult) -> list[Panel]:
    """Net benefit by threshold of the model, of treating all and of treating none."""
    shown = result.decision_curves[:MOST_CURVES]
    return [_decision_panel(result, curve, len(shown)) for curve in shown]


def _decision_panel(result: ValidationResult, curve: DecisionCurvePoints, panels: int) -> Panel:
    name = result.class_names[curve.class_index]
    most = max([*curve.net_benefit, *curve.treat_all, 0.01])
    frame = _frame(UNIT, pad_range([-0.1 * most, most]), panels)
    own = list(zip(curve.thresholds, curve.net_benefit, strict=True))
    best = [t for (t, y), a in zip(own, curve.treat_all, strict=True) if y > max(a, 0)]
    useful = f"above both from {number(min(best))} to {number(max(best))}" if best else "never above both"
    return frame.panel(
        name,
        f"Decision curve of {name}: the model is {useful}, of the net benefits of treating all and of treating none.",
        x_name="risk threshold from which one acts",
        y_name="net benefit",
        lines=(
            frame.line([(0, 0), (1, 0)], "reference"),
            frame.line(zip(curve.thresholds, curve.treat_all, strict=True), "second"),
            frame.line(own),
        ),
        operating=tuple(_used_thresholds(result, curve, frame)),
    )


def _used_thresholds(result: ValidationResult, curve: DecisionCurvePoints, frame: Frame) -> Iterable[Dot]:
    """The recommended net benefits of the class, as points of its curve."""
    for value in result.values:
        threshold = value.parameters.get("threshold")
        is_own = value.metric == "NB" and value.class_index == curve.class_index
        if is_own and isinstance(threshold, float) and value.estimate is not None:
            title = f"at {number(threshold)}: net benefit {number(value.estimate)}"
            yield frame.dot(threshold, value.estimate, None, None, title)


def worst(curves: Sequence[Curve], goodness: Callable[[Curve], float]) -> list[Curve]:
    """The worst curves, at most `MOST_CURVES`, in the order of their classes."""
    kept = sorted(range(len(curves)), key=lambda index: goodness(curves[index]))[:MOST_CURVES]
    return [curves[index] for index in sorted(kept)]


def rates(result: ValidationResult, k: int) -> Rates:
    """Sensitivity, false positive rate and precision of the decisions; None if undefined or without decisions."""
    if result.recommendation.fingerprint.decision_rule == "none":
        return None, None, None
    counts = result.confusion.counts
    own, decided = sum(counts[k]), sum(row[k] for row in counts)
    others = sum(map(sum, counts)) - own
    hits = counts[k][k]
    return _share(hits, own), _share(decided - hits, others), _share(hits, decided)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _operating(frame: Frame, x: float | None, y: float | None, x_name: str, y_name: str) -> tuple[Dot, ...]:
    if x is None or y is None:
        return ()
    return (frame.dot(x, y, None, None, f"decisions: {x_name} {number(x)}, {y_name} {number(y)}"),)


def _spoken(where: Sequence[Dot]) -> str:
    return "".join(f" The {dot.title}." for dot in where)


def _frame(x: Range, y: Range, panels: int, *, below: float = 0) -> Frame:
    """A frame that is larger for one or two panels."""
    width, height = (460.0, 390.0) if panels <= 2 else (250.0, 232.0)
    return Frame.of(x, y, width=width, height=height + below, below=below)
