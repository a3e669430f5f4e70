"""The page of a dashboard: its variables, marks and panels, in the grid of Grafana."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lifelong.grafana_preview.fields import tone_of
from lifelong.grafana_preview.panels import Panels
from lifelong.grafana_preview.source import Prometheus
from lifelong.grafana_preview.times import SAMPLES
from lifelong.grafana_preview.variables import choose, legend, substitute
from lifelong.monitoring_files import monitoring_files
from lifelong_core.charts.style import STYLE
from lifelong_core.charts.time_series import Mark

_PREFIX = "dashboards/lifelong-"


def dashboards() -> dict[str, dict[str, Any]]:
    """The dashboards of the product by their names: `overview` and others."""
    return {
        name.removeprefix(_PREFIX).removesuffix(".json"): json.loads(content)
        for name, content in monitoring_files().items()
        if name.startswith(_PREFIX)
    }


def preview(
    document: Mapping[str, Any], prometheus: Prometheus, chosen: Mapping[str, str], grafana: str
) -> str:
    """The page that shows a dashboard, as HTML without scripts and further files.

    Args:
        document: the dashboard.
        prometheus: where its queries go.
        chosen: values of variables; the others begin as in Grafana.
        grafana: address of Grafana, for links.

    Raises:
        InvalidInputError: there is no such variable, or Prometheus refuses a query.
        UnavailableError: Prometheus does not answer.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    variables = choose(document, chosen, prometheus)
    values = {**variables, **_own_values(prometheus)}
    panels = Panels(prometheus, values, grafana.rstrip("/"), tuple(_marks(document, values, prometheus)))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page.html.jinja").render(
        title=document["title"],
        description=document.get("description", ""),
        variables={
            one["name"]: variables[one["name"]]
            for one in document["templating"]["list"]
            if one["type"] not in ("datasource", "textbox")
        },
        prometheus=prometheus,
        links=list(_links(document, values, panels.grafana)),
        panels=[panels.show(one) for one in document["panels"] if one["type"] != "row"],
        style=STYLE,
    )


def _links(document: Mapping[str, Any], values: Mapping[str, str], grafana: str) -> Iterator[tuple[str, str]]:
    """The links in the head of the dashboard; one to all dashboards is one to each of the others."""
    for one in document.get("links", ()):
        if one["type"] == "link":
            yield one["title"], substitute(one["url"], values)
            continue
        for other in dashboards().values():
            if other["uid"] != document["uid"]:
                yield other["title"], f"{grafana}/d/{other['uid']}?{values['__url_time_range']}"


def _own_values(prometheus: Prometheus) -> dict[str, str]:
    """Grafana's own variables."""
    since, until = (round(at.timestamp() * 1_000) for at in (prometheus.since, prometheus.until))
    return {
        "__url_time_range": f"from={since}&to={until}",
        "__range": f"{(until - since) // 1_000}s",
        "__interval": f"{prometheus.step(SAMPLES):.0f}s",
        "__rate_interval": prometheus.rate_window(SAMPLES),
        "datasource": "lifelong-prometheus",
    }


def _marks(document: Mapping[str, Any], values: Mapping[str, str], prometheus: Prometheus) -> Iterator[Mark]:
    """The annotations: each value is a time in milliseconds."""
    for one in document.get("annotations", {}).get("list", ()):
        if "expr" not in one:
            continue
        for line in prometheus.ranged(substitute(one["expr"], values), SAMPLES):
            for moment in sorted({value for _, value in line.samples}):
                yield Mark(
                    datetime.fromtimestamp(moment / 1_000, UTC),
                    one["name"],
                    title=legend(one.get("titleFormat", one["name"]), line.labels),
                    # Blue and purple have one tone; marks must differ.
                    tone="calm" if one.get("iconColor") == "blue" else tone_of(one.get("iconColor")),
                )
