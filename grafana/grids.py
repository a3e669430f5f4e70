"""Panels of many things at once: tables, state timelines, heatmaps and bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana.panels import FULL, HALF, HIGH, Links, Thresholds, frame, levels_of, show_legend, style
from grafana.queries import Query, list_ref_ids
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


def show_table(
    title: str,
    description: str,
    columns: Sequence[Column],
    *,
    empty: str,
    sort: str | None = None,
    descending: bool = True,
    width: int = FULL,
    height: int = HIGH,
) -> table.Panel:
    """Build a table with one row for each combination of labels; its queries are merged by them."""
    asked = [one for one in columns if one.expression]
    queries = [Query(one.expression, one.title) for one in asked]
    panel = frame(
        table.Panel(), title, description, queries, "table", width=width, height=height, empty=empty
    ).unit("none")
    hidden, titles = {"Time": True}, dict[str, str]()
    for ref_id, one in zip(list_ref_ids(), asked, strict=False):
        field = f"Value #{ref_id}" if len(asked) > 1 else "Value"
        if one.label:
            hidden[field] = True
        else:
            titles[field] = one.title
    titles |= {one.label: one.title for one in columns if one.label}
    order = {
        field: index
        for index, one in enumerate(columns)
        for field, name in titles.items()
        if name == one.title
    }
    panel = panel.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    panel = panel.with_transformation(
        dashboard.DataTransformerConfig(
            id_val="organize",
            options={"excludeByName": hidden, "renameByName": titles, "indexByName": order},
        )
    )
    if sort is not None:
        panel = panel.sort_by([common_builders.TableSortByFieldState().display_name(sort).desc(descending)])
    for one in columns:
        panel = panel.override_by_name(one.title, _format(one))
    return panel


def draw_states(
    title: str,
    description: str,
    queries: Sequence[Query],
    words: Words,
    *,
    empty: str,
    width: int = HALF,
    height: int = HIGH,
    links: Links = (),
) -> statetimeline.Panel:
    """Build a state timeline: one row for each series, its values in words."""
    return (
        frame(
            statetimeline.Panel(),
            title,
            description,
            queries,
            "series",
            width=width,
            height=height,
            empty=empty,
            links=links,
        )
        .unit("none")
        .mappings(mapping_of(words))
        .show_value(common.VisibilityMode.NEVER)
        .row_height(0.8)
        .merge_values(merge_values=True)
        .fill_opacity(80)
        .line_width(0)
        .legend(show_legend())
    )


def draw_heatmap(
    title: str,
    description: str,
    query: Query,
    *,
    unit: str,
    counted: str,
    empty: str,
    width: int = HALF,
    height: int = HIGH,
) -> heatmap.Panel:
    """Build a heatmap of a histogram with cumulative buckets `le`; `unit` is that of its bounds.

    `counted` names what is counted, in the tooltip.
    """
    return (
        frame(
            heatmap.Panel(), title, description, [query], "heatmap", width=width, height=height, empty=empty
        )
        .unit("short")
        .calculate(calculate=False)
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Blues"))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common.AxisPlacement.LEFT))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(common.HeatmapCellLayout.LE).value(counted))
        .cell_gap(1)
        .show_legend()
    )


def draw_bars(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    unit: str,
    empty: str,
    thresholds: Thresholds,
    maximum: float | None = None,
    width: int = HALF,
    height: int = HIGH,
    links: Links = (),
) -> bargauge.Panel:
    """Build a panel of horizontal bars: one for each present value, from 0."""
    panel = (
        frame(
            bargauge.Panel(),
            title,
            description,
            queries,
            "instant",
            width=width,
            height=height,
            empty=empty,
            links=links,
        )
        .unit(unit)
        .min(0)
        .orientation(common.VizOrientation.HORIZONTAL)
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(levels_of(thresholds))
        .color_scheme(dashboard_builders.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )
    return panel if maximum is None else panel.max(maximum)


def _format(column: Column) -> list[dashboard.DynamicConfigValue]:
    """Properties of the override of a column."""
    properties = style(custom__width=column.width, unit=column.unit)
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
