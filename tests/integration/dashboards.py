"""The queries of the shipped dashboards, asked of a real Prometheus: does each panel get data of its shape?"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from grafana.generate import DASHBOARDS
from tests.integration.processes import eventually
from tests.integration.prometheus import Prometheus

BOARDS: dict[str, dict[str, Any]] = {
    path.stem.removeprefix("lifelong-"): json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(DASHBOARDS.glob("*.json"))
}
# Prometheus has no empty labels: of a metric over all classes there is no class.
ONE_LABEL = re.compile(r"{{(\w+)}}")


def fill(text: str, variables: Mapping[str, str]) -> str:
    """A query as Grafana sends it."""
    for name, value in {"__rate_interval": "1h", "top": "20", "instance": ".+", **variables}.items():
        text = text.replace(f"${name}", value)
    assert not re.search(r"\$(?!1)", text), text
    return text


def panel_of(board: str, title: str) -> dict[str, Any]:
    """A panel by its title."""
    return next(panel for panel in BOARDS[board]["panels"] if panel["title"] == title)


def expect_data(
    prometheus: Prometheus,
    document: Mapping[str, Any],
    variables: Mapping[str, str],
    *,
    absent: Collection[str] = (),
) -> None:
    """Wait until nothing is wrong; arguments as of `troubles`."""
    found: set[str] = set()

    def is_fine() -> bool:
        found.clear()
        found.update(troubles(prometheus, document, variables, absent=absent))
        return not found

    try:
        eventually(is_fine, "data on every panel")
    except AssertionError as error:
        raise AssertionError(f"{document['title']}: {sorted(found)}") from error


def troubles(
    prometheus: Prometheus,
    document: Mapping[str, Any],
    variables: Mapping[str, str],
    *,
    absent: Collection[str] = (),
) -> set[str]:
    """What is wrong with the answers to all panels and annotations; `absent` are lines and columns without data."""
    found: set[str] = set()
    for panel in document["panels"]:
        found |= {f"{panel['title']}: {one}" for one in _troubles(prometheus, panel, variables, absent)}
    for annotation in document["annotations"].get("list", ()):
        if annotation["name"] not in absent:
            series = prometheus.query(fill(annotation["expr"], variables), ranged=True)
            if not series:
                found.add(f"{annotation['name']}: no mark")
    return found


def _troubles(
    prometheus: Prometheus, panel: Mapping[str, Any], variables: Mapping[str, str], absent: Collection[str]
) -> Iterator[str]:
    labels: set[str] = set()
    for target in panel["targets"]:
        legend = target["legendFormat"]
        series = prometheus.query(fill(target["expr"], variables), ranged=target["range"])
        if not series:
            if legend not in absent:
                yield f"no data for {legend}"
            continue
        if not any(math.isfinite(value) for value in _values(series)):
            yield f"no number for {legend}"
        labels |= {name for one in series for name in one["metric"] if name != "__name__"}
        missing = set(ONE_LABEL.findall(legend)) - labels - {"class"}
        if missing and panel["type"] != "heatmap":
            yield f"{legend} names labels that are missing"
        yield from _odd_values(panel, series)
    if panel["type"] == "table" and labels:
        yield from _odd_columns(panel, labels, absent)


def _odd_values(panel: Mapping[str, Any], series: list[Any]) -> Iterator[str]:
    """Values without a word where the panel has words; buckets that are no histogram."""
    words = {key for one in panel["fieldConfig"]["defaults"].get("mappings", ()) for key in one["options"]}
    if words and (odd := {f"{value:g}" for value in _values(series)} - words):
        yield f"no words for {odd}"
    if panel["type"] == "heatmap":
        bounds = sorted(
            (float(one["metric"].get("le", "nan")), float(one["values"][-1][1])) for one in series
        )
        counts = [count for _, count in bounds]
        if len(bounds) < 3 or not math.isinf(bounds[-1][0]) or counts != sorted(counts):
            yield f"no histogram: {bounds}"


def _odd_columns(panel: Mapping[str, Any], labels: set[str], absent: Collection[str]) -> Iterator[str]:
    """Labels without a column, and columns without a label."""
    organize = panel["transformations"][-1]["options"]
    titles = {name: title for name, title in organize["renameByName"].items() if not name.startswith("Value")}
    if labels - titles.keys():
        yield f"columns without a title: {labels - titles.keys()}"
    missing = {title for name, title in titles.items() if name not in labels and title not in absent}
    if missing:
        yield f"empty columns: {missing}"


def _values(series: list[Any]) -> Iterator[float]:
    for one in series:
        for _, value in one.get("values") or [one["value"]]:
            yield float(value)
