"""Panels of time series and of single values, with the defaults that every panel here needs.

The SDK's own defaults hide the legend, leave panel ids null and refIds empty.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

from grafana.queries import DATASOURCE, Kind, Query, build_query, list_ref_ids
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
LOW, MIDDLE, HIGH, TALL = 4, 7, 8, 12
"""Heights, in rows of the grid."""

Thresholds: TypeAlias = Sequence[tuple[float | None, str]]
"""(from this value on, colour), the first from None."""
Links: TypeAlias = Sequence[dashboard_builders.DashboardLink]
Panel: TypeAlias = (
    timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel | heatmap.Panel | bargauge.Panel
)
_Panel = TypeVar(
    "_Panel",
    timeseries.Panel,
    stat.Panel,
    table.Panel,
    statetimeline.Panel,
    heatmap.Panel,
    bargauge.Panel,
)


def frame(
    panel: _Panel,
    title: str,
    description: str,
    queries: Sequence[Query],
    kind: Kind,
    *,
    width: int,
    height: int,
    empty: str,
    links: Links = (),
) -> _Panel:
    """Set what all panels have; `empty` is the text where there are no data."""
    panel = (
        panel.title(title)
        .description(description)
        .datasource(DATASOURCE)
        .span(width)
        .height(height)
        .no_value(empty)
    )
    if links:
        panel = panel.data_links([*links])
    for ref_id, source in zip(list_ref_ids(), queries, strict=False):
        panel = panel.with_target(build_query(ref_id, source, kind))
    return panel


def plot_series(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    empty: str,
    width: int = HALF,
    minimum: float | None = None,
    maximum: float | None = None,
    drawn: Literal["lines", "steps", "areas", "bars"] = "lines",
    thresholds: Thresholds = (),
    links: Links = (),
) -> timeseries.Panel:
    """Build a panel of time series.

    Steps hold a value until the next one, areas and bars are stacked; thresholds are drawn as dashed lines.
    """
    panel = (
        frame(
            timeseries.Panel(),
            title,
            description,
            queries,
            "series",
            width=width,
            height=HIGH,
            empty=empty,
            links=links,
        )
        .unit(unit)
        .line_width(2)
        .show_points(common.VisibilityMode.NEVER)
        .legend(show_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )
    if minimum is not None:
        panel = panel.min(minimum)
    if maximum is not None:
        panel = panel.max(maximum)
    if thresholds:
        dashed = common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds(levels_of(thresholds)).thresholds_style(dashed)
    return _draw(panel, drawn)


def show_numbers(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    empty: str,
    thresholds: Thresholds = ((None, "text"),),
    words: Words = (),
    width: int = QUARTER,
    text: Literal["value", "name", "value_and_name"] = "value",
    decimals: int | None = None,
    links: Links = (),
) -> stat.Panel:
    """Build a panel of current values: the value, its name, or both."""
    panel = (
        frame(
            stat.Panel(),
            title,
            description,
            queries,
            "instant",
            width=width,
            height=LOW,
            empty=empty,
            links=links,
        )
        .unit(unit)
        .text_mode(common.BigValueTextMode(text))
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(levels_of(thresholds))
        .color_scheme(dashboard_builders.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )
    if words:
        panel = panel.mappings(mapping_of(words))
    return panel if decimals is None else panel.decimals(decimals)


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


def _draw(panel: timeseries.Panel, drawn: str) -> timeseries.Panel:
    if drawn == "lines":
        return panel
    if drawn == "steps":
        return panel.line_interpolation(common.LineInterpolation.STEP_AFTER)
    stack = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
    panel = panel.stacking(stack).fill_opacity(40).line_width(1)
    return panel if drawn == "areas" else panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(80)
