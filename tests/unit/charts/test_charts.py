"""The markup of charts: well-formed, escaped, with a text alternative, in both sizes."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import Element, fromstring

import pytest

from lifelong_core.charts.bars import Bar, Bars
from lifelong_core.charts.heatmap import Heatmap
from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.sparkline import sparkline
from lifelong_core.charts.state_timeline import Span, StateTimeline
from lifelong_core.charts.style import STYLE
from lifelong_core.charts.time_series import Mark, Sample, Series, Threshold, TimeSeries

START = datetime(2026, 3, 4, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTILE = '<script>"&'


def samples(*values: float, half: float | None = 0.1, first: int = 0) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            START + (first + place) * DAY,
            value,
            None if half is None else value - half,
            None if half is None else value + half,
            f"day {place}: {value:g}",
        )
        for place, value in enumerate(values)
    )


OVER_TIME = TimeSeries(
    "Prevalence",
    "malignant rises from 0.1 to 0.4",
    (
        Series(HOSTILE, (samples(0.1, 0.12), samples(0.38, 0.4, first=3)), colour=1),
        Series("assumed", (samples(0.1, 0.1, 0.1, 0.4, half=None),), kind="step", colour=1),
        Series("labels", (samples(0.2, math.nan, 0.3),), kind="points", colour=2),
    ),
    marks=(Mark(START + 3 * DAY, "swap of the head", "2", "head 2"), Mark(START - DAY, "before the chart")),
    thresholds=(Threshold(0.5, "acceptance"),),
    within=(0, 1),
)
STATES = StateTimeline(
    "Cycles",
    "one swap after a day",
    (
        (
            "clinic-a",
            (Span(START, START + DAY, "keep"), Span(START + DAY, START + 9 * DAY, "swap", "accent")),
        ),
        (
            "a very long name of a population that no column holds",
            (Span(START, START + DAY, "refuse", "bad"),),
        ),
    ),
    START,
    START + 2 * DAY,
)
HEAT = Heatmap("Shift", "largest at clinic-b", ("Mon", "Tue"), (("a", (0.0, 0.2)), ("b", (None, 0.8))))
BARS = Bars(
    "Shift", "b is shifted", (Bar("a", 0.1, 0.0, 0.2), Bar(HOSTILE, 0.8, title="b: .8")), (0.5, "limit")
)
ALL = [OVER_TIME, STATES, HEAT, BARS]


def parsed(markup: Markup) -> Element:
    return fromstring(markup)


def elements(root: Element, tag: str, look: str) -> Iterator[Element]:
    return (one for one in root.iter(tag) if look in one.get("class", "").split())


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_a_chart_has_a_caption_a_text_alternative_and_two_sizes(
    chart: TimeSeries | StateTimeline | Heatmap | Bars,
) -> None:
    root = parsed(chart.draw())
    assert root.findtext("figcaption") == chart.title
    drawings = root.findall("svg")
    assert [(one.get("class"), one.get("viewBox", "").split()[2]) for one in drawings] == [
        ("wide", "720"),
        ("small", "330"),
    ]
    for drawing in drawings:
        assert drawing.get("role") == "img"
        assert (drawing.findtext("title"), drawing.findtext("desc")) == (chart.title, chart.description)
        width, height = (float(number) for number in drawing.get("viewBox", "").split()[2:])
        for rect in drawing.iter("rect"):
            left, top = float(rect.get("x", "nan")), float(rect.get("y", "nan"))
            assert 0 <= left <= left + float(rect.get("width", "nan")) <= width
            assert 0 <= top <= top + float(rect.get("height", "nan")) <= height


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_every_colour_has_its_style_and_no_style_is_inline(
    chart: TimeSeries | StateTimeline | Heatmap | Bars,
) -> None:
    for one in parsed(chart.draw()).iter():
        assert one.get("style") is None
        assert all(
            f".{name}" in STYLE for name in one.get("class", "plain").split() if name not in ("plain", "wide")
        )


def test_a_line_ends_at_a_gap_and_a_step_holds_its_value() -> None:
    wide = parsed(OVER_TIME.draw()).findall("svg")[0]
    bands, lines = list(elements(wide, "polygon", "band")), list(elements(wide, "polyline", "line"))
    assert [len(one.get("points", "").split()) for one in (*bands, *lines)] == [4, 4, 2, 2]
    (step,) = elements(wide, "path", "step")
    path = step.get("d", "")
    assert path.startswith("M44 ")
    assert path.count("H") == path.count("V") == 3
    heights = [part.partition("H")[0] for part in path.replace("M44 ", "V").split("V")[1:]]
    assert heights[0] == heights[1] == heights[2] != heights[3]


def test_points_have_whiskers_and_undefined_values_are_left_out() -> None:
    wide = parsed(OVER_TIME.draw()).findall("svg")[0]
    assert len(list(elements(wide, "circle", "point"))) == 2
    (group,) = elements(wide, "g", "series-2")
    assert [one.findtext("title") for one in group] == ["day 0: 0.2", "day 2: 0.3"]


def test_marks_within_the_time_and_thresholds_stand_in_drawing_and_legend() -> None:
    root = parsed(OVER_TIME.draw())
    (mark,) = elements(root.findall("svg")[0], "g", "warn")
    assert (mark.findtext("title"), mark.findtext("text")) == ("head 2", "2")
    legend = ["".join(entry.itertext()) for entry in root.iter("li")]
    assert legend == [HOSTILE, "assumed", "labels", "acceptance", "swap of the head"]


def test_the_axis_holds_the_threshold_within_its_limits() -> None:
    wide = parsed(OVER_TIME.draw()).findall("svg")[0]
    (line,) = elements(wide, "path", "threshold")
    assert 10 <= float(line.get("d", "").split()[1].partition("H")[0]) < 240 - 24
    assert {one.text for one in wide.iter("text")} >= {"0.2", "0.4", "4 Mar", "7 Mar"}


def test_a_chart_without_a_number_says_so() -> None:
    empty = TimeSeries("Prevalence", "", (Series("none", (samples(math.nan),)),)).draw()
    assert parsed(empty).findtext("p") == "No data."


def test_states_are_cut_to_the_shown_time_and_named() -> None:
    wide = parsed(STATES.draw()).findall("svg")[0]
    keep, swap = (next(elements(wide, "g", tone)) for tone in ("calm", "accent"))
    ends = [float(part.get(name, "nan")) for part in (keep[1], swap[1]) for name in ("x", "width")]
    assert ends[0] + ends[1] == pytest.approx(ends[2])
    assert ends[2] + ends[3] == pytest.approx(720 - 10)
    assert (keep.findtext("text"), swap.findtext("title")) == ("keep", "swap")
    assert "…" in "".join(row.text or "" for row in wide.iter("text")) or any(
        row.findtext("title", "").endswith("no column holds") for row in wide.iter("text")
    )


def test_cells_are_darker_where_the_value_is_larger() -> None:
    wide = parsed(HEAT.draw()).findall("svg")[0]
    looks = [one.get("class", "").split()[1] for one in wide.iter("rect")]
    assert looks == ["level-0", "level-2", "missing", "level-8"]
    assert [one.findtext("title") for one in wide.iter("rect")][2:] == ["b, Mon: no value", "b, Tue: 0.8"]


def test_bars_begin_at_zero_and_are_as_long_as_their_values() -> None:
    wide = parsed(BARS.draw()).findall("svg")[0]
    first, second = (
        (float(one.get("x", "nan")), float(one.get("width", "nan"))) for one in elements(wide, "rect", "area")
    )
    assert first[0] == second[0]
    assert second[1] == pytest.approx(8 * first[1], rel=0.02)
    assert len(list(elements(wide, "path", "whisker"))) == 1


def test_a_sparkline_names_what_it_shows() -> None:
    root = parsed(sparkline([0.1, 0.2, 0.1], "shift of clinic-a: 0.1"))
    assert root.findtext("title") == "shift of clinic-a: 0.1"
    assert len(next(root.iter("polyline")).get("points", "").split()) == 3
    assert parsed(sparkline([0.0], "one")).find("circle") is not None


def test_only_markup_is_inserted_as_it_is() -> None:
    assert (
        joined(HOSTILE, element("b", HOSTILE)) == "&lt;script&gt;&quot;&amp;<b>&lt;script&gt;&quot;&amp;</b>"
    )
    assert element("p", title=HOSTILE) == '<p title="&lt;script&gt;&quot;&amp;"/>'
    assert element("b", "x").__html__() == "<b>x</b>"
