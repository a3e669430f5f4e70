import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from grafana.dashboard import build, to_json
from grafana.generate import DASHBOARD_FILE
from grafana.sdk import dashboard

DOCUMENT: dict[str, Any] = json.loads(DASHBOARD_FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DOCUMENT["panels"] if panel["type"] != "row"]
BY_TITLE = {panel["title"]: panel for panel in PANELS}


def test_the_committed_dashboard_is_up_to_date() -> None:
    assert to_json(build()) == DASHBOARD_FILE.read_text(encoding="utf-8"), "run: python -m grafana.generate"


def test_the_sdk_reads_its_own_schema_back() -> None:
    again = dashboard.Dashboard.from_json(DOCUMENT)
    assert [panel.id_val for panel in again.panels or []] == [panel["id"] for panel in DOCUMENT["panels"]]
    assert json.loads(to_json(again)) == DOCUMENT


def test_every_panel_has_its_own_number() -> None:
    numbers = [panel["id"] for panel in DOCUMENT["panels"]]
    assert all(isinstance(number, int) and number > 0 for number in numbers)
    assert len(set(numbers)) == len(numbers)


def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
    place = panel["gridPos"]
    return {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}


def test_no_two_panels_overlap_and_none_leaves_the_grid() -> None:
    for first, second in combinations(DOCUMENT["panels"], 2):
        assert not cells(first) & cells(second), f"{first['title']} and {second['title']}"
    assert all(place["x"] + place["w"] <= 24 for place in (panel["gridPos"] for panel in DOCUMENT["panels"]))


def test_each_panel_explains_itself() -> None:
    for panel in PANELS:
        assert len(panel["description"]) > 40, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        if panel["type"] == "timeseries":
            assert panel["options"]["legend"]["showLegend"] is True, panel["title"]
            assert panel["options"]["legend"]["displayMode"] == "list", panel["title"]


def test_each_panel_asks_the_chosen_datasource_with_named_queries() -> None:
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert references == list("ABCDEFGH")[: len(references)], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"], panel["title"]
            assert target["expr"], panel["title"]
            assert target["legendFormat"], panel["title"]
            assert target["range"] is not target["instant"], panel["title"]


def expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and key in ("expr", "query", "definition", "title"):
                yield value
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def test_every_variable_that_is_used_is_declared() -> None:
    declared = {variable["name"] for variable in DOCUMENT["templating"]["list"]}
    used = {name for text in expressions(DOCUMENT) for name in re.findall(r"\$(?!__)\{?(\w+)", text)}
    assert used == {"model", "environment", "class"}
    assert declared == used | {"datasource"}


def test_each_class_gets_a_panel_with_band_and_assumption() -> None:
    panel = BY_TITLE["Prevalence of $class"]
    assert panel["repeat"] == "class"
    names = [target["legendFormat"] for target in panel["targets"]]
    overrides = {item["matcher"]["options"]: item["properties"] for item in panel["fieldConfig"]["overrides"]}
    assert set(overrides) == set(names)
    properties = {item["id"]: item["value"] for item in overrides["high"]}
    assert properties["custom.fillBelowTo"] == "low"


@pytest.mark.parametrize(("quantity", "metric"), [("Accuracy", "AC"), ("Expected cost", "EC")])
def test_estimate_with_band_realised_value_and_threshold_share_their_axes(quantity: str, metric: str) -> None:
    panel = BY_TITLE[f"{quantity}, estimated and realised"]
    queries = {target["legendFormat"]: target["expr"] for target in panel["targets"]}
    overrides = {
        item["matcher"]["options"]: {one["id"]: one["value"] for one in item["properties"]}
        for item in panel["fieldConfig"]["overrides"]
    }
    assert set(queries) == {"estimate", "low", "high", "candidate", "realised", "threshold"}
    assert set(overrides) == set(queries)
    assert overrides["high"]["custom.fillBelowTo"] == "low"
    assert overrides["threshold"]["custom.lineStyle"]["fill"] == "dash"
    assert "lifelong_realised_" in queries["realised"]
    assert all(f'metric="{metric}"' in text for name, text in queries.items() if name != "realised")
    for name in ("estimate", "low", "high", "candidate"):
        head = "candidate" if name == "candidate" else "current"
        assert f'head="{head}"' in queries[name]


def test_annotations_are_range_queries_and_can_be_switched_off() -> None:
    annotations = DOCUMENT["annotations"]["list"]
    assert [one["name"] for one in annotations] == ["Head swaps", "Affected decisions"]
    for one in annotations:
        assert one["target"]["range"] is True
        assert one["target"]["expr"] == one["expr"]
        assert one["useValueForTime"] is True
        assert one["enable"] is True
        assert "placement" not in one


SHOWN = [
    "lifelong_requests_total",
    "lifelong_request_seconds_bucket",
    "lifelong_predictions_total",
    "lifelong_prevalence_shift_l1",
    "lifelong_cycles_total",
    "lifelong_head_version",
    "lifelong_estimated_performance{",
    "lifelong_estimated_performance_low",
    "lifelong_estimated_performance_high",
    "lifelong_estimated_performance_threshold",
    "lifelong_estimated_performance_accepted",
    "lifelong_estimated_performance_method",
    "lifelong_estimated_performance_validated_error",
    "lifelong_estimated_performance_warnings",
    "lifelong_realised_accuracy",
    "lifelong_realised_expected_cost",
    'lifelong_realised_metric{model="$model",environment="$environment",prevalence="stated"}',
    "lifelong_decision_rule_expected{",
    "lifelong_decision_rule_expected_low",
    "lifelong_decision_rule_expected_high",
    "lifelong_decision_rule_realised{",
    "lifelong_decision_rule_target",
    "lifelong_decision_rule_reached",
    "lifelong_decision_rule_reachable",
    "lifelong_decision_rule_cut_off",
    "lifelong_decision_rule_missed_cycles",
    "lifelong_realised_metric{",
    "lifelong_realised_metric_accepted",
    "lifelong_jobs_total",
    "lifelong_jobs_running",
    "lifelong_jobs_waiting",
    "lifelong_job_waiting_since_timestamp_seconds",
    "lifelong_job_last_duration_seconds",
    "lifelong_window_samples",
    "lifelong_quarantined_predictions",
    "lifelong_shift_log_e_value",
    "lifelong_shift_log_e_value_alarm",
    "lifelong_assumption_p_value",
    "lifelong_assumption_level",
    "lifelong_expected_gain_low",
    "lifelong_expected_gain_high",
    "lifelong_expected_probability_gain",
    "lifelong_expected_probability_gain_low",
    "lifelong_expected_probability_gain_high",
    "lifelong_worst_case_cost_increase",
    "lifelong_affected_decisions{",
    "lifelong_affected_decisions_share",
    "lifelong_affected_decisions_expected_cost",
    "lifelong_policy_mode",
    "lifelong_head_pinned",
    "lifelong_proposal_open",
    "lifelong_retraining_proposals",
    "lifelong_spool_predictions",
    "lifelong_spool_bytes",
    "lifelong_spooled_predictions_total",
    "lifelong_spool_delivered_predictions_total",
]


def test_what_was_asked_for_is_shown() -> None:
    texts = list(expressions(DOCUMENT))
    assert [metric for metric in SHOWN if not any(metric in text for text in texts)] == []
