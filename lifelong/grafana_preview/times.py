"""Panels over time: time series with bands and stacks, state timelines and heatmaps."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from lifelong.grafana_preview.fields import Named
from lifelong.grafana_preview.source import Prometheus
from lifelong_core.charts.heatmap import Heatmap
from lifelong_core.charts.markup import Markup
from lifelong_core.charts.state_timeline import Span, StateTimeline
from lifelong_core.charts.time_series import Mark, Sample, Series, Threshold, TimeSeries

SAMPLES, CELLS = 240, 48
"""Values of a series over the time range, and columns of a heatmap."""
LONG_SECONDS = 2 * 86_400
"""A longer time range has dates below a heatmap instead of times."""


def draw_series(
    title: str, description: str, named: Sequence[Named], marks: Sequence[Mark], prometheus: Prometheus
) -> Markup:
    """Lines; with `fillBelowTo` the band between two of them, with `stacking` each on top of those before."""
    values = {one.name: dict(one.line.samples) for one in named}
    below = {one.name: one.field.get("custom.fillBelowTo") for one in named}
    edges = {high: low for high, low in below.items() if low}
    lows, highs = next(((values.get(low, {}), values[high]) for high, low in edges.items()), ({}, {}))
    lines = [one for one in named if one.name not in {*edges, *edges.values()}]
    beneath: dict[float, float] = {}
    series = list[Series]()
    for place, one in enumerate(lines):
        samples = one.line.samples
        if one.field.get("custom.stacking", {}).get("mode", "none") != "none":
            lows = {at: beneath.get(at, 0.0) for at, _ in samples}
            highs = {at: lows[at] + value for at, value in samples}
            beneath |= highs
            samples = tuple(highs.items())
        series.append(_series(one, samples, (lows, highs), place, prometheus))
        lows, highs = {}, {}
    field = named[0].field
    return TimeSeries(
        title,
        description,
        tuple(series),
        tuple(marks),
        tuple(Threshold(value, f"threshold {value:g}", tone) for value, tone in field.levels()),
        within=(field.get("min", -math.inf) * field.factor, field.get("max", math.inf) * field.factor),
        span=(prometheus.since, prometheus.until),
    ).draw()


def draw_states(title: str, description: str, named: Sequence[Named], prometheus: Prometheus) -> Markup:
    """One row for each series; neighbours with the same value are one span."""
    step = prometheus.step(SAMPLES)

    def spans(one: Named) -> Iterator[Span]:
        for piece in _pieces(one.line.samples, step):
            for value, same in groupby(piece, key=lambda sample: sample[1]):
                times = [at for at, _ in same]
                yield Span(
                    _time(times[0]), _time(times[-1] + step), one.field.text(value), one.field.tone(value)
                )

    rows = tuple((one.name, tuple(spans(one))) for one in named)
    return StateTimeline(title, description, rows, prometheus.since, prometheus.until).draw()


def draw_heatmap(title: str, description: str, named: Sequence[Named]) -> Markup:
    """The counts of a histogram with cumulative buckets: the highest bucket is the first row."""
    buckets = sorted(named, key=lambda one: float(one.line.labels.get("le", "inf")))
    times = sorted({at for one in buckets for at, _ in one.line.samples})
    rows: list[tuple[str, tuple[float | None, ...]]] = []
    below: dict[float, float] = {}
    for one in buckets:
        counts = dict(one.line.samples)
        cells = tuple(max(counts[at] - below.get(at, 0.0), 0.0) if at in counts else None for at in times)
        bound = one.line.labels.get("le", "+Inf")
        rows.append((f"≤ {bound}" if bound != "+Inf" else "above", cells))
        below = counts
    columns = tuple(
        f"{_time(at):%d %b}" if times[-1] - times[0] > LONG_SECONDS else f"{_time(at):%H:%M}" for at in times
    )
    return Heatmap(title, description, columns, tuple(reversed(rows))).draw()


def _series(
    one: Named,
    samples: Sequence[tuple[float, float]],
    band: tuple[dict[float, float], dict[float, float]],
    place: int,
    prometheus: Prometheus,
) -> Series:
    """A line with the band between the lower and the upper values at the same times."""
    factor, is_step = one.field.factor, one.field.get("custom.lineInterpolation") == "stepAfter"

    def sample(at: float, value: float) -> Sample:
        low, high = (edge[at] * factor if at in edge else None for edge in band)
        return Sample(_time(at), value * factor, low, high, f"{one.name}: {one.field.text(value)}")

    is_dashed = one.field.get("custom.lineStyle", {}).get("fill", "solid") != "solid"
    pieces = tuple(
        tuple(sample(at, value) for at, value in (piece if is_dashed or not is_step else _stairs(piece)))
        for piece in _pieces(samples, prometheus.step(SAMPLES))
    )
    colour = one.field.series
    # Our charts dash steps, and nothing else.
    return Series(one.name, pieces, "step" if is_dashed else "line", place if colour is None else colour)


def _pieces(samples: Sequence[tuple[float, float]], step: float) -> Iterator[list[tuple[float, float]]]:
    """Samples without gaps between them."""
    piece: list[tuple[float, float]] = []
    for one in samples:
        if piece and one[0] - piece[-1][0] > 1.5 * step:
            yield piece
            piece = []
        piece.append(one)
    if piece:
        yield piece


def _stairs(samples: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Each value holds until the next one."""
    for index, (at, value) in enumerate(samples):
        if index:
            yield at, samples[index - 1][1]
        yield at, value


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
