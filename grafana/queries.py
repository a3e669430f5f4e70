"""PromQL queries of panels, variables and annotations: their datasource, selectors and formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from grafana.sdk import common, prometheus, prometheus_models

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
POPULATION = 'model="$model",environment="$environment"'
"""Label matchers of the population that is chosen on the dashboard."""
BY_POPULATION = "by (model, environment)"
ANSWERED = 'role!~"shadow|former"'
"""Label matcher of models whose answers reach clients."""

Kind: TypeAlias = Literal["series", "instant", "table", "heatmap"]
"""Series over the time range, values at its end, those as rows of a table, or buckets of a histogram over time."""

_FORMATS = {
    "series": prometheus_models.PromQueryFormat.TIME_SERIES,
    "instant": prometheus_models.PromQueryFormat.TIME_SERIES,
    "table": prometheus_models.PromQueryFormat.TABLE,
    "heatmap": prometheus_models.PromQueryFormat.HEATMAP,
}


@dataclass(frozen=True)
class Query:
    """One line, band, value or column of a panel: PromQL and its name."""

    expression: str
    legend: str


def of_population(metric: str, legend: str, *, aggregation: str = "max") -> Query:
    """A query of a gauge for the chosen population; `aggregation` is over the processes that export it."""
    return Query(f"{aggregation} {BY_POPULATION} ({metric}{{{POPULATION}}})", legend)


def of_each(metric: str, *, labels: str = "", aggregation: str = "max") -> str:
    """PromQL of a gauge, one value for each population."""
    return (
        f"{aggregation} {BY_POPULATION} ({metric}{{{labels}}})"
        if labels
        else f"{aggregation} {BY_POPULATION} ({metric})"
    )


def build_query(ref_id: str, source: Query, kind: Kind = "series") -> prometheus.Dataquery:
    """Build the query of a panel or an annotation."""
    target = (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(DATASOURCE)
        .expr(source.expression)
        .legend_format(source.legend)
        .format(_FORMATS[kind])
    )
    return target.instant() if kind in ("instant", "table") else target.range()


def list_ref_ids() -> Iterator[str]:
    """Names of the queries of a panel, in order."""
    return iter("ABCDEFGHIJKLMNOP")
