"""The committed dashboards: schema of the SDK, layout, texts, links, and what dashboard-linter would say."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, get_args

import pytest
import yaml

from grafana import words
from grafana.boards import BOARDS
from grafana.dashboard import documents, to_json
from grafana.generate import DASHBOARDS
from grafana.sdk import dashboard
from lifelong_core.deploy.adaptation.reasons import ReasonCode
from lifelong_monitor.exporter.gauges import GAUGES
from lifelong_service.console import ROUTERS

RECORDS = (DASHBOARDS.parent / "prometheus" / "records.yml").read_text(encoding="utf-8")
FILES = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DASHBOARDS.glob("*.json"))
}
EXCLUSIONS = yaml.safe_load((DASHBOARDS / ".lint").read_text(encoding="utf-8"))["exclusions"]
UNITS = {"none", "short", "percentunit", "s", "d", "cps", "reqps", "dateTimeFromNow"}
"""Those in use, all of them known to Grafana."""
SELECTOR = re.compile(r"(?<![\w$:{])(?:lifelong[_:][\w:]+|up|ALERTS)\b(\{[^}]*\})?")

each_dashboard = pytest.mark.parametrize("document", FILES.values(), ids=FILES)


def expressions(document: dict[str, Any]) -> Iterator[str]:
    """PromQL of all panels and annotations."""
    for panel in document["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["expr"] for one in document["annotations"].get("list", ()))


def test_the_committed_dashboards_are_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in DASHBOARDS.glob("*.json")}
    assert written == documents(BOARDS), "run: python -m grafana.generate"


@each_dashboard
def test_the_sdk_reads_its_own_schema_back(document: dict[str, Any]) -> None:
    again = dashboard.Dashboard.from_json(document)
    assert [panel.id_val for panel in again.panels or []] == [panel["id"] for panel in document["panels"]]
    assert json.loads(to_json(again)) == document


@each_dashboard
def test_panels_are_few_numbered_and_fill_whole_lines_of_the_grid(document: dict[str, Any]) -> None:
    panels = document["panels"]
    assert len(panels) <= 15
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [panel["gridPos"] for panel in panels]
    cells = [
        {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        for place in places
    ]
    assert not any(one & other for one, other in combinations(cells, 2))
    everything = set().union(*cells)
    bottom = max(place["y"] + place["h"] for place in places)
    assert everything == {(x, y) for x in range(24) for y in range(bottom)}


@each_dashboard
def test_each_panel_explains_itself_also_without_data(document: dict[str, Any]) -> None:
    for panel in document["panels"]:
        defaults = panel["fieldConfig"]["defaults"]
        assert len(panel["description"]) > 40, panel["title"]
        assert defaults["unit"] in UNITS, panel["title"]
        assert defaults["noValue"], panel["title"]
        if panel["type"] == "timeseries":
            assert panel["options"]["legend"]["showLegend"] is True, panel["title"]


@each_dashboard
def test_each_panel_asks_the_chosen_datasource_with_named_queries(document: dict[str, Any]) -> None:
    kinds = {"stat": ("time_series", False), "bargauge": ("time_series", False), "table": ("table", False)}
    for panel in document["panels"]:
        over_time = ("heatmap" if panel["type"] == "heatmap" else "time_series", True)
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGHIJKL")[
            : len(panel["targets"])
        ]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"]
            assert (target["format"], target["range"]) == kinds.get(panel["type"], over_time), panel["title"]
            assert target["instant"] is not target["range"]
            assert target["legendFormat"]


@each_dashboard
def test_every_variable_that_is_used_is_declared(document: dict[str, Any]) -> None:
    declared = {variable["name"] for variable in document["templating"]["list"]}
    used = set(re.findall(r"\$\{?(?!__)([a-z]\w*)", json.dumps([document["panels"], document["links"]])))
    assert used <= declared
    asked = {variable["name"] for variable in document["templating"]["list"] if variable["type"] == "query"}
    texts = " ".join([*expressions(document), *(json.dumps(one) for one in document["templating"]["list"])])
    assert {name for name in asked if f"${name}" not in texts} == set()


def urls(node: Any) -> Iterator[str]:
    """Targets of all links."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "url" and value)
        for value in node.values():
            yield from urls(value)
    elif isinstance(node, list):
        for value in node:
            yield from urls(value)


@each_dashboard
def test_links_lead_to_dashboards_with_their_variables_to_the_console_and_to_runbooks(
    document: dict[str, Any],
) -> None:
    variables = {
        one["uid"]: {variable["name"] for variable in one["templating"]["list"]} for one in FILES.values()
    }
    found = list(urls(document["panels"]))
    for url in found:
        if board := re.match(r"/d/([\w-]+)\?", url):
            assert set(re.findall(r"var-(\w+)=", url)) <= variables[board[1]], url
            assert url.endswith("var-datasource=${datasource}&${__url_time_range}")
        else:
            assert re.match(r"\$\{console\}/\w|\$\{runbooks\}/[\w${}.]+$", url), url
    assert found


def test_links_to_the_console_lead_to_its_pages() -> None:
    pages = [route.path for router in ROUTERS for route in router.routes if "GET" in route.methods]
    patterns = [re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)) for path in (*pages, "/console")]
    links = {url for url in urls(list(FILES.values())) if url.startswith("${console}")}
    assert len(links) > 8
    for link in links:
        path = re.sub(r"\$\{[^}]+\}", "x", link.replace("${console}", "/console"))
        assert any(pattern.fullmatch(path) for pattern in patterns), link


def test_links_to_cells_of_a_row_name_columns_of_the_table() -> None:
    seen = 0
    for document in FILES.values():
        for panel in document["panels"]:
            titles = (
                panel.get("transformations", [{}])[-1].get("options", {}).get("renameByName", {}).values()
            )
            for url in urls(panel):
                for column in re.findall(r"__data\.fields\.(\w+)", url):
                    assert column in titles, (panel["title"], url)
                    seen += 1
    assert seen > 10


@each_dashboard
def test_the_linter_of_grafana_finds_nothing(document: dict[str, Any]) -> None:
    """Its rules, but for those that need a parser of PromQL: tests/integration asks a real Prometheus."""
    assert document["editable"] is False
    (source,) = [one for one in document["templating"]["list"] if one["type"] == "datasource"]
    assert (source["name"], source["label"]) == ("datasource", "Data source")
    for one in document["templating"]["list"]:
        if one["type"] == "query":
            assert one["refresh"] == 2
            assert one["datasource"]["uid"] == "${datasource}"
            assert re.fullmatch(r"label_values\(.+\)", one["query"]["query"])
    for text in expressions(document):
        assert not re.search(r"\birate\(|\brate\([^\[]*\[(?!\$__rate_interval\])", text), text
        for counter in re.finditer(r"(\w+\()?(lifelong_\w+_total)\b", text):
            assert counter[1] in ("rate(", "increase("), text
    without_instance = {one["dashboard"] for one in EXCLUSIONS["target-instance-rule"]["entries"]}
    if document["title"] not in without_instance:
        (instance,) = [one for one in document["templating"]["list"] if one["name"] == "instance"]
        assert (instance["multi"], instance["allValue"], instance["label"]) == (True, ".+", "Instance")
        for text in expressions(document):
            assert all('instance=~"$instance"' in (one[1] or "") for one in SELECTOR.finditer(text)), text


def test_every_gauge_of_a_population_is_on_a_dashboard() -> None:
    shown = " ".join(text for document in FILES.values() for text in expressions(document)) + RECORDS
    kept_for_alerts_and_people = {name for name in GAUGES if not re.search(rf"{name}\b(?!_)", shown)}
    assert kept_for_alerts_and_people == {
        "lifelong_shift_evidence_samples",
        "lifelong_expected_probability_gain",
        "lifelong_expected_probability_gain_low",
        "lifelong_expected_probability_gain_high",
        "lifelong_affected_decisions_expected_cost",
        "lifelong_decision_rule_missed_cycles",
        "lifelong_decision_rule_realised_low",
        "lifelong_decision_rule_realised_high",
        "lifelong_realised_accuracy_low",
        "lifelong_realised_accuracy_high",
        "lifelong_realised_expected_cost_low",
        "lifelong_realised_expected_cost_high",
        "lifelong_performance_agreement_p_value",
        "lifelong_performance_labelled_samples",
        "lifelong_calibration_drift_level",
        "lifelong_label_selection_level",
        "lifelong_realised_metric_low",
        "lifelong_realised_metric_high",
    }


def test_every_value_has_a_word() -> None:
    assert set(words.REASONS) == set(get_args(ReasonCode))
    assert set(words.FAULTS) == set(re.findall(r"fault: (\w+)", RECORDS))
    needs = {
        int(number)
        for number in re.findall(r"(?:expr: | {10}\(?)(\d) \* \(?(?:max|min|time|lifelong)", RECORDS)
    }
    assert {value for value, _, _ in words.STATES} == {-1, 0, *needs}


def test_an_estimate_is_drawn_with_its_band_the_realised_value_and_the_threshold() -> None:
    for panel in FILES["lifelong-quality.json"]["panels"]:
        if panel["title"] not in (
            "Accuracy, estimated and realised",
            "Expected cost, estimated and realised",
        ):
            continue
        overrides = {
            item["matcher"]["options"]: {one["id"]: one["value"] for one in item["properties"]}
            for item in panel["fieldConfig"]["overrides"]
        }
        legends = {target["legendFormat"] for target in panel["targets"]}
        assert legends == {"estimate", "low", "high", "candidate", "realised", "threshold"} == set(overrides)
        assert overrides["high"]["custom.fillBelowTo"] == "low"
        assert overrides["threshold"]["custom.lineStyle"]["fill"] == "dash"


def test_annotations_are_range_queries_and_can_be_switched_off() -> None:
    names = {
        name: [one["name"] for one in document["annotations"].get("list", ())]
        for name, document in FILES.items()
    }
    assert names["lifelong-overview.json"] == ["Changes of the head", "Affected decisions"]
    assert names["lifelong-population.json"][2:] == ["Changes of the prevalence"]
    for document in FILES.values():
        for one in document["annotations"].get("list", ()):
            assert one["target"]["range"] is True
            assert one["target"]["expr"] == one["expr"]
            assert one["useValueForTime"] is True
            assert one["enable"] is True
            assert "placement" not in one
