"""Panels of many things at once: tables, state timelines, heatmaps and bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grafana.panels import Display, Links, Queries, Thresholds, frame, levels_of, show_legend, style
from grafana.queries import list_ref_ids
from grafana.sdk import (
    bargauge,
    common,
    common_builders,
    dashboard,
    dashboard_builders,
    heatmap,
    heatmap_models,
    statetimeline,
    table,
)
from grafana.words import Words, mapping_of


@dataclass(frozen=True)
class Column:
    """A column of a table: the value of a query, or a label that its queries share.

    Attributes:
        title: in the head of the table; one word where links use it.
        expression: PromQL of the value.
        label: is shown instead of a value; with an expression, this query brings the label and its value is hidden.
        unit: of the value.
        width: in pixels.
        words: what the values mean.
        thresholds: colours of the values.
        decimals: of the value.
        links: of each cell.
        empty: text of cells without a value; without it they show that of an empty panel.
    """

    title: str
    expression: str = ""
    label: str = ""
    unit: str = "none"
    width: int = 90
    words: Words | Mapping[str, str] = ()
    thresholds: Thresholds = ()
    decimals: int | None = None
    links: Links = ()
    empty: str = "-"


def show_table(
    title: str,
    description: str,
    columns: Sequence[Column],
    display: Display,
    *,
    sort: str | None = None,
    descending: bool = True,
) -> table.Panel:
    """Build a table with one row for each combination of labels; its queries are merged by them."""
    asked = [one for one in columns if one.expression]
    queries = {one.title: one.expression for one in asked}
    panel = frame(table.Panel(), title, description, queries, "table", display)
    hidden, titles = {"Time": True}, dict[str, str]()
    for ref_id, one in zip(list_ref_ids(), asked, strict=False):
        field = f"Value #{ref_id}" if len(asked) > 1 else "Value"
        if one.label:
            hidden[field] = True
        else:
            titles[field] = one.title
    titles |= {one.label: one.title for one in columns if one.label}
    places = [one.title for one in columns]
    order = {field: places.index(name) for field, name in titles.items()}
    organized = {"excludeByName": hidden, "renameByName": titles, "indexByName": order}
    for name, options in (("merge", {}), ("organize", organized)):
        panel = panel.with_transformation(dashboard.DataTransformerConfig(id_val=name, options=options))
    if sort is not None:
        panel = panel.sort_by([common_builders.TableSortByFieldState().display_name(sort).desc(descending)])
    for one in columns:
        panel = panel.override_by_name(one.title, _format(one))
    return panel


def draw_states(title: str, description: str, queries: Queries, display: Display) -> statetimeline.Panel:
    """Build a state timeline: one row for each series, its values in words."""
    return (
        frame(statetimeline.Panel(), title, description, queries, "series", display)
        .show_value(common.VisibilityMode.NEVER)
        .row_height(0.8)
        .merge_values(merge_values=True)
        .fill_opacity(80)
        .line_width(0)
        .legend(show_legend())
    )


def draw_heatmap(
    title: str, description: str, queries: Queries, display: Display, *, counted: str
) -> heatmap.Panel:
    """Build a heatmap of a histogram with cumulative buckets `le`; the unit is that of its bounds.

    `counted` names what is counted, in the tooltip.
    """
    colours = heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Blues")
    return (
        frame(heatmap.Panel(), title, description, queries, "heatmap", replace(display, unit="short"))
        .calculate(calculate=False)
        .color(colours)
        .y_axis(heatmap.YAxisConfig().unit(display.unit).axis_placement(common.AxisPlacement.LEFT))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(common.HeatmapCellLayout.LE).value(counted))
        .cell_gap(1)
        .show_legend()
    )


def draw_bars(title: str, description: str, queries: Queries, display: Display) -> bargauge.Panel:
    """Build a panel of horizontal bars: one for each present value, from 0."""
    return (
        frame(bargauge.Panel(), title, description, queries, "instant", display)
        .min(0)
        .orientation(common.VizOrientation.HORIZONTAL)
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard_builders.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )


def _format(column: Column) -> list[dashboard.DynamicConfigValue]:
    """Properties of the override of a column."""
    properties = style(custom__width=column.width, unit=column.unit, noValue=column.empty)
    if column.decimals is not None:
        properties += style(decimals=column.decimals)
    if column.words:
        properties += style(mappings=mapping_of(column.words))
    if column.thresholds:
        properties += style(thresholds=levels_of(column.thresholds).build())
    is_coloured = column.thresholds or (column.words and not isinstance(column.words, Mapping))
    if is_coloured:
        properties += style(custom__cellOptions={"type": "color-background", "mode": "basic"})
    if column.links:
        properties += style(links=[link.build() for link in column.links])
    return properties
