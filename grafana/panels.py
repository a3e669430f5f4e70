"""Panels of time series and of single values, with the defaults that every panel here needs.

The SDK's own defaults hide the legend, leave panel ids null and refIds empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from grafana.queries import DATASOURCE, Kind, build_query, list_ref_ids
from grafana.sdk import (
    bargauge,
    common,
    common_builders,
    dashboard,
    dashboard_builders,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana.words import Words, mapping_of

SIXTH, QUARTER, THIRD, HALF, FULL = 4, 6, 8, 12, 24
"""Widths, in columns of the grid."""
LOW, MIDDLE, HIGH, TALL = 4, 6, 8, 12
"""Heights, in rows of the grid."""

Queries: TypeAlias = Mapping[str, str]
"""PromQL by its name in the legend."""
Thresholds: TypeAlias = Sequence[tuple[float | None, str]]
"""(from this value on, colour), the first from None."""
Links: TypeAlias = Sequence[dashboard_builders.DashboardLink]
Panel: TypeAlias = (
    timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel | heatmap.Panel | bargauge.Panel
)
_Panel = TypeVar(
    "_Panel", timeseries.Panel, stat.Panel, table.Panel, statetimeline.Panel, heatmap.Panel, bargauge.Panel
)


@dataclass(frozen=True)
class Display:
    """How a panel shows its values.

    Attributes:
        unit: of the values.
        empty: text where there are no data.
        width: in columns of the grid; None: a quarter for numbers, else half.
        height: in rows of the grid.
        minimum: of an axis over time or of bars; None: that of the values.
        maximum: of the axis.
        decimals: of the values.
        thresholds: colours of values; dashed lines in a panel over time.
        words: what the values mean.
        drawn: over time. Steps hold a value until the next one, areas and bars are stacked.
        text: of a panel of numbers: the value, its name, or both.
        links: of each value.
    """

    unit: str
    empty: str
    width: int | None = None
    height: int = HIGH
    minimum: float | None = 0
    maximum: float | None = None
    decimals: int | None = None
    thresholds: Thresholds = ()
    words: Words = ()
    drawn: Literal["lines", "steps", "areas", "bars"] = "lines"
    text: Literal["value", "name", "value_and_name"] = "value"
    links: Links = ()


def frame(
    panel: _Panel, title: str, description: str, queries: Queries, kind: Kind, display: Display
) -> _Panel:
    """Set what all kinds of panels have."""
    panel = panel.title(title).description(description).datasource(DATASOURCE)
    panel = (
        panel.span(display.width or HALF).height(display.height).unit(display.unit).no_value(display.empty)
    )
    if display.maximum is not None:
        panel = panel.max(display.maximum)
    if display.decimals is not None:
        panel = panel.decimals(display.decimals)
    if display.thresholds:
        panel = panel.thresholds(levels_of(display.thresholds))
    if display.words:
        panel = panel.mappings(mapping_of(display.words))
    if display.links:
        panel = panel.data_links([*display.links])
    for ref_id, (legend, expression) in zip(list_ref_ids(), queries.items(), strict=False):
        panel = panel.with_target(build_query(ref_id, expression, legend, kind))
    return panel


def plot_series(title: str, description: str, queries: Queries, display: Display) -> timeseries.Panel:
    """Build a panel of time series."""
    panel = frame(timeseries.Panel(), title, description, queries, "series", display).line_width(2)
    panel = panel.show_points(common.VisibilityMode.NEVER).legend(show_legend())
    panel = panel.tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    if display.minimum is not None:
        panel = panel.min(display.minimum)
    if display.thresholds:
        dashed = common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds_style(dashed)
    if display.drawn == "lines":
        return panel
    if display.drawn == "steps":
        return panel.line_interpolation(common.LineInterpolation.STEP_AFTER)
    stack = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
    panel = panel.stacking(stack).fill_opacity(40).line_width(1)
    if display.drawn == "areas":
        return panel
    return panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(80)


def show_numbers(title: str, description: str, queries: Queries, display: Display) -> stat.Panel:
    """Build a low panel of current values."""
    display = replace(
        display,
        width=display.width or QUARTER,
        height=LOW,
        thresholds=display.thresholds or ((None, "text"),),
    )
    return (
        frame(stat.Panel(), title, description, queries, "instant", display)
        .text_mode(common.BigValueTextMode(display.text))
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard_builders.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )


def levels_of(thresholds: Thresholds) -> dashboard_builders.ThresholdsConfig:
    """Thresholds as Grafana has them."""
    levels = [dashboard.Threshold(value=value, color=colour) for value, colour in thresholds]
    return dashboard_builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(levels)


def draw_band(panel: timeseries.Panel) -> timeseries.Panel:
    """Draw the series `estimate` as a line in the band between the series `low` and `high`."""
    edge = style(color=fixed_colour("light-blue"), custom__lineWidth=0)
    return (
        panel.override_by_name("estimate", style(color=fixed_colour("blue"), custom__lineWidth=2))
        .override_by_name("low", edge)
        .override_by_name("high", [*edge, *style(custom__fillBelowTo="low", custom__fillOpacity=25)])
    )


def style(**properties: object) -> list[dashboard.DynamicConfigValue]:
    """Properties of an override; `__` stands for the dot: `custom__lineStyle=...`."""
    return [
        dashboard.DynamicConfigValue(id_val=name.replace("__", "."), value=value)
        for name, value in properties.items()
    ]


def dashed_style(colour: str) -> list[dashboard.DynamicConfigValue]:
    """Properties of an override that draws a dashed line."""
    return style(color=fixed_colour(colour), custom__lineStyle={"fill": "dash", "dash": [8, 6]})


def fixed_colour(name: str) -> dict[str, str]:
    """The value of a `color` override."""
    return {"mode": "fixed", "fixedColor": name}


def show_legend() -> common_builders.VizLegendOptions:
    """A legend below the panel."""
    return (
        common_builders.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs([])
    )
