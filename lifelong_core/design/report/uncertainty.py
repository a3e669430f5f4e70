"""Sensitivity plots: uncertainty-aware scores against sigma, one line for each damping factor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lifelong_core.charts.scales import Point, pad_range
from lifelong_core.design.report.plots import Dot, Frame, Line, LineKind, Panel
from lifelong_core.design.report.words import NOT_DEFINED, format_count, number, signed
from lifelong_core.design.validation.uncertainty.document import (
    UncertaintyAwareChange,
    UncertaintyAwareCurve,
    UncertaintyAwareScores,
)

SERIES: tuple[LineKind, ...] = ("series-0", "series-1", "series-2", "series-3", "series-4", "series-5")
"""Styles of lines, one for each damping factor"""
WIDTH, HEIGHT = 300.0, 250.0
KINDS = {
    "standard_deviation": "standard deviation of the probability",
    "variance": "variance of the probability",
    "entropy": "entropy in nats",
    "other": "of a kind that was not stated",
}


CONCLUSIONS: Mapping[tuple[str, bool | None], str] = {
    ("damping", True): "better: errors lie in samples with uncertain predictions",
    ("damping", False): "worse: the model is sure of its errors",
    ("damping", None): "undecided: the interval holds 0",
    ("sigma", True): "better: errors lie near the threshold",
    ("sigma", False): "worse: errors lie far from the threshold",
    ("sigma", None): "undecided: the interval holds 0",
}
"""By what changes, and whether the score gets better with it"""


@dataclass(frozen=True)
class ChangeRow:
    """The change of one score."""

    metric: str
    what: str
    text: str
    conclusion: str


@dataclass(frozen=True)
class ScoreRow:
    """The values of one score at one sigma, by damping factor."""

    sigma: str
    values: tuple[str, ...]


def sensitivity_panels(scores: UncertaintyAwareScores | None) -> list[Panel]:
    """One plot for each score: a line for each damping factor, with bands for the least and the largest."""
    return [] if scores is None else [_panel(scores, metric) for metric in scores.metrics]


def score_rows(scores: UncertaintyAwareScores, metric: str) -> list[ScoreRow]:
    """The values of one score as a table."""
    curves = [scores.curve(metric, damping) for damping in scores.dampings]
    return [
        ScoreRow(f"{sigma:g}", tuple(curve_text(curve, place) for curve in curves))
        for place, sigma in enumerate(scores.sigmas)
    ]


def curve_text(curve: UncertaintyAwareCurve, place: int) -> str:
    """Estimate and interval of one point of a curve."""
    estimate, low, high = curve.estimates[place], curve.low[place], curve.high[place]
    if estimate is None:
        return NOT_DEFINED
    ends = "no interval" if low is None or high is None else f"{number(low)} to {number(high)}"
    return f"{number(estimate)} ({ends})"


def change_rows(scores: UncertaintyAwareScores) -> list[ChangeRow]:
    """What the damping factor and sigma change, with the conclusion that the interval allows."""
    damping, sigma = ("d", scores.dampings), ("sigma", scores.sigmas)
    rows: list[ChangeRow] = []
    for change in scores.changes:
        (name, values), (other, fixed) = (damping, sigma) if change.of == "damping" else (sigma, damping)
        what = f"{name} from {values[0]:g} to {values[-1]:g}, {other} = {fixed[0]:g}"
        conclusion = CONCLUSIONS[change.of, change.is_better]
        rows.append(ChangeRow(change.metric, what, _change_text(change), conclusion))
    return rows


def _change_text(change: UncertaintyAwareChange) -> str:
    if change.estimate is None:
        return NOT_DEFINED
    if change.low is None or change.high is None:
        return f"{signed(change.estimate)} (no interval)"
    return f"{signed(change.estimate)} ({signed(change.low)} to {signed(change.high)})"


def uncertainty_source(scores: UncertaintyAwareScores) -> str:
    """Where the uncertainties come from, and their range."""
    origin = KINDS[scores.kind]
    if scores.members is not None:
        origin = f"standard deviation of the probability over {format_count(scores.members, 'member')}"
    spread = f"{number(scores.smallest)} to {number(scores.largest)}, median {number(scores.median)}"
    return f"uncertainty: {origin}, {spread}"


def _panel(scores: UncertaintyAwareScores, metric: str) -> Panel:
    curves = [scores.curve(metric, damping) for damping in scores.dampings]
    ends = (curves[0], curves[-1]) if len(curves) > 1 else (curves[0],)
    shown = [value for curve in curves for value in curve.estimates]
    shown += [value for curve in ends for value in (*curve.low, *curve.high)]
    y = pad_range((value for value in shown if value is not None), within=(0.0, 1.0))
    sigmas = scores.sigmas
    x = (sigmas[0], sigmas[-1]) if len(sigmas) > 1 else pad_range(sigmas)
    frame = Frame.of(x, y, width=WIDTH, height=HEIGHT)
    return frame.panel(
        metric,
        f"{metric} by sigma. " + " ".join(_spoken(curve, sigmas) for curve in curves),
        x_name="sigma: spread of the threshold",
        y_name=f"{metric} ({'higher' if curves[0].orientation == 'up' else 'lower'} is better)",
        bands=tuple(Line(_band(frame, sigmas, curve), SERIES[curves.index(curve)]) for curve in ends),
        lines=tuple(
            Line(_path(frame, sigmas, curve.estimates), SERIES[place]) for place, curve in enumerate(curves)
        ),
        dots=tuple(dot for curve in curves for dot in _lone_dots(frame, sigmas, curve)),
        operating=tuple(_unmodified(frame, scores, curves[0])),
    )


def _unmodified(frame: Frame, scores: UncertaintyAwareScores, curve: UncertaintyAwareCurve) -> Iterator[Dot]:
    """The usual score, without sigma and damping, where both are 0."""
    estimate = curve.estimates[0]
    if scores.sigmas[0] == 0 and curve.damping == 0 and estimate is not None:
        yield frame.dot(0, estimate, None, None, f"usual score: {number(estimate)}")


def _runs(values: Sequence[float | None]) -> Iterator[list[int]]:
    """Places of successive values that are defined."""
    run: list[int] = []
    for place, value in enumerate(values):
        if value is not None:
            run.append(place)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _path(frame: Frame, sigmas: Sequence[float], values: Sequence[float | None]) -> str:
    paths: list[str] = []
    for run in _runs(values):
        points: list[Point] = [(sigmas[place], values[place] or 0.0) for place in run]
        paths.append(frame.line(points).path)
    return "".join(paths)


def _band(frame: Frame, sigmas: Sequence[float], curve: UncertaintyAwareCurve) -> str:
    """`d` of closed areas between the ends of the intervals."""
    paths: list[str] = []
    has_both = [
        None if low is None or high is None else 1.0 for low, high in zip(curve.low, curve.high, strict=True)
    ]
    for run in _runs(has_both):
        there = [(sigmas[place], curve.low[place] or 0.0) for place in run]
        back = [(sigmas[place], curve.high[place] or 0.0) for place in reversed(run)]
        paths.append(frame.line([*there, *back]).path + "Z")
    return "".join(paths)


def _lone_dots(frame: Frame, sigmas: Sequence[float], curve: UncertaintyAwareCurve) -> Iterator[Dot]:
    """Values without neighbours, which no line shows."""
    for run in _runs(curve.estimates):
        if len(run) == 1:
            place = run[0]
            title = f"damping {curve.damping:g}, sigma {sigmas[place]:g}: {curve_text(curve, place)}"
            yield frame.dot(
                sigmas[place], curve.estimates[place] or 0.0, curve.low[place], curve.high[place], title
            )


def _spoken(curve: UncertaintyAwareCurve, sigmas: Sequence[float]) -> str:
    last = len(sigmas) - 1
    told = f"Damping {curve.damping:g}: {curve_text(curve, 0)} at sigma {sigmas[0]:g}"
    return told + (f", {curve_text(curve, last)} at sigma {sigmas[last]:g}." if last else ".")
