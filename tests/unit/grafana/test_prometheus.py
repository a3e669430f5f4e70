import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lifelong_core.configuration.settings import Settings
from tests import tools

GRAFANA = Path(__file__).parents[3] / "grafana"
PROMETHEUS = GRAFANA / "prometheus"
GROUPS: dict[str, list[dict[str, Any]]] = {
    name: yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))["groups"]
    for name in ("records.yml", "rules.yml")
}
RECORDS_AND_ALERTS: list[dict[str, Any]] = [
    rule for groups in GROUPS.values() for group in groups for rule in group["rules"]
]
RULES = [rule for rule in RECORDS_AND_ALERTS if "alert" in rule]
RUNBOOKS = GRAFANA.parent / "docs" / "runbooks"
ROUTING = GRAFANA / "alertmanager" / "alertmanager.yml"
DASHBOARDS = {file.stem for file in (GRAFANA / "dashboards").glob("*.json")}
CASES: list[dict[str, Any]] = [
    document | {"tests": [case]}
    for name in ("rules_test.yml", "rules_weeks_test.yml")
    for document in [yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))]
    for case in document["tests"]
]
"""each a document of its own"""


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tools.program(tools.PROMTOOL), *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_configuration_and_the_rules_it_names_are_valid() -> None:
    checked = promtool("check", "config", PROMETHEUS / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    found = re.findall(r"(\d+) rules found", checked.stdout)
    assert sum(map(int, found)) == len(RECORDS_AND_ALERTS)


def promtool_of(cases: list[dict[str, Any]], folder: Path, expressions: dict[str, str]) -> tuple[int, str]:
    """Status and output of `promtool test rules`: each case is evaluated with the alerts that it names only, since all
    of them take ten times as long. `expressions`, by alert, replace those of the rules.
    """
    for at, case in enumerate(cases):
        text = yaml.safe_dump(case["tests"])
        groups = [
            {
                "name": group["name"],
                "rules": [
                    rule | {"expr": expressions.get(rule.get("alert"), rule["expr"])}
                    for rule in group["rules"]
                    if "ALERTS" in text or rule.get("alert", "") in text
                ],
            }
            for group in GROUPS["rules.yml"]
        ]
        (folder / f"rules_{at}.yml").write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
        document = case | {"rule_files": [f"rules_{at}.yml"]}
        (folder / f"case_{at}.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    tested = promtool("test", "rules", *(folder / f"case_{at}.yml" for at in range(len(cases))))
    return tested.returncode, tested.stdout + tested.stderr


def test_every_alert_fires_and_stays_silent_as_it_should(tmp_path: Path) -> None:
    status, said = promtool_of(CASES, tmp_path, {})
    assert status == 0, said


def test_every_record_of_the_dashboards_has_the_values_it_should() -> None:
    tested = promtool("test", "rules", PROMETHEUS / "records_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    records, tests = (
        (PROMETHEUS / name).read_text(encoding="utf-8") for name in ("records.yml", "records_test.yml")
    )
    recorded = set(re.findall(r"record: (\S+)", records))
    assert {name for name in recorded if name not in tests} == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_the_tests_notice_an_alert_that_can_never_fire(rule: dict[str, Any], tmp_path: Path) -> None:
    name = rule["alert"]
    about = [
        case | {"tests": [test | {"alert_rule_test": asked, "promql_expr_test": []}]}
        for case in CASES
        for test in case["tests"]
        if (asked := [one for one in test.get("alert_rule_test", ()) if one["alertname"] == name])
    ]
    status, said = promtool_of(about, tmp_path, {name: f"({rule['expr']}) and on () vector(1) > 2"})
    assert status == 1
    assert name in said


def test_no_rule_counts_probes_or_scrapes() -> None:
    asked = [
        text
        for rule in RECORDS_AND_ALERTS
        for text in re.findall(r"lifelong_request\w*({[^}]*})?", rule["expr"])
    ]
    assert asked
    assert all('route=~"/v1/(predict|logits|feedback)"' in selector for selector in asked)


@pytest.mark.parametrize("name", ["LifelongRefusedForLong", "LifelongMoreThanPrevalenceChanged"])
def test_alerts_that_take_a_day_leave_shadows_out(name: str) -> None:
    # promtool shows it for the others; for these it would take half a minute.
    (rule,) = (rule for rule in RULES if rule["alert"] == name)
    assert 'role!~"shadow|former"' in rule["expr"]


def test_alerts_say_what_is_wrong_what_to_do_and_where_to_read_on() -> None:
    for rule in RULES:
        texts = rule["annotations"]
        assert set(texts) == {"summary", "description", "action", "runbook_url", "dashboard_url"}, rule[
            "alert"
        ]
        assert all(len(text) > 20 for text in texts.values()), rule["alert"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]


def test_every_alert_has_cases_in_which_it_fires_and_cases_in_which_it_must_not() -> None:
    fires, stays_silent = set[str](), set[str]()
    for document in CASES:
        for case in document["tests"]:
            for one in case.get("alert_rule_test", ()):
                (fires if one["exp_alerts"] else stays_silent).add(one["alertname"])
    alerts = {rule["alert"] for rule in RULES}
    assert fires == alerts
    assert stays_silent == alerts


def test_every_alert_has_a_runbook_with_the_same_headings_and_a_row_in_the_documentation() -> None:
    files = {file.stem: file.read_text(encoding="utf-8") for file in RUNBOOKS.glob("*.md")}
    assert set(files) == {rule["alert"] for rule in RULES}
    for name, text in files.items():
        assert re.findall(r"^#+ .*$", text, re.MULTILINE) == [
            f"# {name}",
            "## What it means",
            "## What to look at",
            "## What to do",
            "## How to undo it",
        ]
    text = (GRAFANA.parent / "docs" / "monitoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| (\w+) \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(
        (rule["alert"], rule["alert"], rule["labels"]["severity"]) for rule in RULES
    )


def test_an_alert_links_its_runbook_and_the_dashboard_with_its_population() -> None:
    for rule in RULES:
        address = rule["annotations"]["runbook_url"]
        assert address == f"http://127.0.0.1:3000/console/runbooks/{rule['alert']}"
        uid, _, variables = rule["annotations"]["dashboard_url"].partition("/d/")[2].partition("?")
        assert uid in DASHBOARDS, rule["alert"]
        named = dict.fromkeys(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        if {"model", "environment"} <= named.keys():
            expected = "var-model={{ $labels.model }}&var-environment={{ $labels.environment }}"
            assert variables == expected, rule["alert"]


def amtool(*arguments: str) -> str:
    done = subprocess.run(
        [tools.program(tools.AMTOOL), *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("severity=critical instance=s:3000", "on-call"),
        ("severity=warning model=m@1 environment=b", "operators"),
        ("severity=info model=m@1 environment=b", "channel"),
        ("severity=critical model=m@1 environment=clinic-a", "clinic-a,on-call"),
    ],
)
def test_the_example_of_routing_separates_severities_and_populations(labels: str, receivers: str) -> None:
    assert "SUCCESS" in amtool("check-config", str(ROUTING))
    routed = amtool("config", "routes", "test", f"--config.file={ROUTING}", *labels.split())
    assert routed.strip() == receivers


def test_the_alerts_that_silence_others_and_those_they_silence_exist() -> None:
    names = {rule["alert"] for rule in RULES}
    for rule in yaml.safe_load(ROUTING.read_text(encoding="utf-8"))["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            pattern = re.fullmatch(r'alertname =~? "(.*)"', matcher)
            assert pattern is not None
            head, _, alternatives = pattern[1].rstrip(")").partition("(")
            assert {head + name for name in alternatives.split("|")} <= names


def test_prometheus_scrapes_the_default_ports_of_service_and_monitor() -> None:
    document = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in document["scrape_configs"]}
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    assert targets == {
        "lifelong-service": [f"{defaults['host']}:{defaults['port']}"],
        "lifelong-monitor": [f"{defaults['host']}:{defaults['monitor_port']}"],
    }


def test_grafana_is_given_a_prometheus_and_a_folder_of_dashboards() -> None:
    provisioning = GRAFANA / "provisioning"
    sources = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))
    providers = yaml.safe_load((provisioning / "dashboards" / "lifelong.yml").read_text(encoding="utf-8"))
    scraped = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))["global"]
    assert [source["type"] for source in sources["datasources"]] == ["prometheus"]
    assert sources["datasources"][0]["jsonData"]["timeInterval"] == scraped["scrape_interval"]
    assert providers["providers"][0]["options"]["path"]
