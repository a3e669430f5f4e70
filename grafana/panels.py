"""Panels with the defaults that every panel here needs: datasource, legend, tooltip, units and refIds.

The SDK's own defaults hide the legend, leave panel ids null and refIds empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from grafana.sdk import common, common_builders, dashboard, dashboard_builders, prometheus, stat, timeseries

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
POPULATION = 'model="$model",environment="$environment"'
"""Label matchers of the population that is chosen on the dashboard."""
THIRD, HALF, FULL = 8, 12, 24


@dataclass(frozen=True)
class Query:
    """One line or band of a panel: PromQL and the name in the legend."""

    expression: str
    legend: str


def build_query(ref_id: str, source: Query, *, instant: bool = False) -> prometheus.Dataquery:
    """Build a Prometheus query; a range query unless `instant`."""
    target = (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(DATASOURCE)
        .expr(source.expression)
        .legend_format(source.legend)
    )
    return target.instant() if instant else target.range()


def query_population(metric: str, legend: str, *, aggregation: str = "max") -> Query:
    """Build a query of a gauge for the chosen population; `aggregation` is over the processes that export it."""
    return Query(f"{aggregation} by (model, environment) ({metric}{{{POPULATION}}})", legend)


def plot_series(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    width: int = HALF,
    minimum: float | None = None,
    maximum: float | None = None,
    drawn: Literal["lines", "steps", "areas", "bars"] = "lines",
) -> timeseries.Panel:
    """Build a panel of time series; steps hold a value until the next one, areas and bars are stacked."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .height(8)
        .span(width)
        .line_width(2)
        .show_points(common.VisibilityMode.NEVER)
        .legend(_show_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )
    if minimum is not None:
        panel = panel.min(minimum)
    if maximum is not None:
        panel = panel.max(maximum)
    for ref_id, source in zip(_list_ref_ids(), queries, strict=False):
        panel = panel.with_target(build_query(ref_id, source))
    return _draw(panel, drawn)


def show_numbers(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    thresholds: Sequence[tuple[float | None, str]],
    width: int = THIRD,
) -> stat.Panel:
    """Build a panel of current values; `thresholds` are (from this value on, colour), the first from None."""
    levels = [dashboard.Threshold(value=value, color=colour) for value, colour in thresholds]
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .height(4)
        .span(width)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(
            dashboard_builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(levels)
        )
        .color_scheme(dashboard_builders.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )
    for ref_id, source in zip(_list_ref_ids(), queries, strict=False):
        panel = panel.with_target(build_query(ref_id, source, instant=True))
    return panel


def draw_band(panel: timeseries.Panel) -> timeseries.Panel:
    """Draw the series `estimate` as a line in the band between the series `low` and `high`."""
    edge = style(color=fixed_colour("light-blue"), custom__lineWidth=0)
    return (
        panel.override_by_name("estimate", style(color=fixed_colour("blue"), custom__lineWidth=2))
        .override_by_name("low", edge)
        .override_by_name("high", [*edge, *style(custom__fillBelowTo="low", custom__fillOpacity=25)])
    )


def style(**properties: object) -> list[dashboard.DynamicConfigValue]:
    """Properties of an override; `__` stands for the dot and `_` for nothing: `custom__lineStyle=...`."""
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


def _draw(panel: timeseries.Panel, drawn: str) -> timeseries.Panel:
    if drawn == "lines":
        return panel
    if drawn == "steps":
        return panel.line_interpolation(common.LineInterpolation.STEP_AFTER)
    stack = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
    panel = panel.stacking(stack).fill_opacity(40).line_width(1)
    return panel if drawn == "areas" else panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(80)


def _show_legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs([])
    )


def _list_ref_ids() -> Iterator[str]:
    return iter("ABCDEFGHIJ")
