"""Panels with the defaults that every panel here needs: datasource, legend, tooltip, units and refIds.

The SDK's own defaults hide the legend, leave panel ids null and refIds empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def query(ref_id: str, source: Query, *, instant: bool = False) -> prometheus.Dataquery:
    """A Prometheus query; a range query unless `instant`."""
    target = (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(DATASOURCE)
        .expr(source.expression)
        .legend_format(source.legend)
    )
    return target.instant() if instant else target.range()


def lines(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    width: int = HALF,
    minimum: float | None = None,
    maximum: float | None = None,
) -> timeseries.Panel:
    """A time series panel."""
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
        .legend(_legend())
        .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    )
    if minimum is not None:
        panel = panel.min(minimum)
    if maximum is not None:
        panel = panel.max(maximum)
    for ref_id, source in zip(_ref_ids(), queries, strict=False):
        panel = panel.with_target(query(ref_id, source))
    return panel


def stacked(panel: timeseries.Panel) -> timeseries.Panel:
    """The same panel with its series stacked as areas."""
    mode = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
    return panel.stacking(mode).fill_opacity(40).line_width(1)


def steps(panel: timeseries.Panel) -> timeseries.Panel:
    """The same panel drawn as steps: the value holds until the next one."""
    return panel.line_interpolation(common.LineInterpolation.STEP_AFTER)


def number(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    thresholds: Sequence[tuple[float | None, str]],
    width: int = THIRD,
) -> stat.Panel:
    """Current values as large numbers; `thresholds` are (from this value on, colour), the first from None."""
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
    for ref_id, source in zip(_ref_ids(), queries, strict=False):
        panel = panel.with_target(query(ref_id, source, instant=True))
    return panel


def style(**properties: object) -> list[dashboard.DynamicConfigValue]:
    """Properties of an override; `__` stands for the dot and `_` for nothing: `custom__lineStyle=...`."""
    return [
        dashboard.DynamicConfigValue(id_val=name.replace("__", "."), value=value)
        for name, value in properties.items()
    ]


def colour(name: str) -> dict[str, str]:
    """The value of a `color` override."""
    return {"mode": "fixed", "fixedColor": name}


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs([])
    )


def _ref_ids() -> Iterator[str]:
    return iter("ABCDEFGHIJ")
