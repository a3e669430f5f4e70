"""PromQL queries of panels, variables and annotations: their datasource, selectors and formats."""

from collections.abc import Iterator
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


def of_population(
    metric: str, matchers: str = "", *, by: str = "model, environment", aggregation: str = "max"
) -> str:
    """PromQL of a gauge for the chosen population; `aggregation` is over the processes that export it."""
    more = f",{matchers}" if matchers else ""
    return f"{aggregation} by ({by}) ({metric}{{{POPULATION}{more}}})"


def of_each(metric: str, matchers: str = "", *, aggregation: str = "max") -> str:
    """PromQL of a gauge, one value for each population."""
    selected = f"{metric}{{{matchers}}}" if matchers else metric
    return f"{aggregation} {BY_POPULATION} ({selected})"


def rate_of(counter: str, matchers: str = "", *, by: str = "") -> str:
    """PromQL of the events per second of a counter, summed over all labels but these."""
    selected = f"{counter}{{{matchers}}}" if matchers else counter
    summed = f"sum by ({by}) " if by else "sum"
    return f"{summed}(rate({selected}[$__rate_interval]))"


def firing(matchers: str, labels: str) -> str:
    """PromQL of the firing alerts by these labels: 3 for critical ones, 2 for warnings, 1 for information."""
    alerts = f'ALERTS{{alertstate="firing",{matchers},severity'
    ranks = enumerate(("info", "warning", "critical"), start=1)
    return " or ".join(f'{rank} * max by ({labels}) ({alerts}="{name}"}})' for rank, name in ranks)


def build_query(
    ref_id: str, expression: str, legend: str = "", kind: Kind = "series"
) -> prometheus.Dataquery:
    """Build the query of a panel or an annotation."""
    target = prometheus.Dataquery().ref_id(ref_id).datasource(DATASOURCE).expr(expression)
    target = target.legend_format(legend).format(_FORMATS[kind])
    return target.instant() if kind in ("instant", "table") else target.range()


def list_ref_ids() -> Iterator[str]:
    """Names of the queries of a panel, in order."""
    return iter("ABCDEFGHIJKLMNOP")
