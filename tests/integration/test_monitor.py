"""The monitor as a real process with a real Prometheus: a shift is detected, answered and on every panel."""

import copy
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from grafana.generate import DASHBOARD_FILE
from lifelong_core.configuration.settings import Settings
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Model, Scope, Store
from tests import databases, tools
from tests.integration.processes import running_service
from tests.ports import free_port
from tests.unit.monitor.population import (
    BALANCED,
    COSTS,
    SHIFTED,
    add_model,
    draw,
    label,
    open_store,
    predict,
    settings_for,
)
from tests.unit.monitor.recommendations import attach, metric, naming

DASHBOARD: dict[str, Any] = json.loads(DASHBOARD_FILE.read_text(encoding="utf-8"))
PATIENCE_SECONDS = 40.0
_OF_THE_SERVICE = re.compile(r"lifelong_(requests|request|predictions|spool|spooled)_")
LATE_LABELS = 450
"""Of the 600 predictions of the head that answered the shift."""
_OFTEN_ABSENT = {"candidate", "threshold"}
"""Legends of lines beside others: not every cycle considers another head, and not every metric has a threshold."""


def until(happened: Callable[[], Any], *, what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)
    return result


_OF_A_RULE = "lifelong_decision_rule_"
"""The task minimises a cost; tests/integration/test_decision_rules.py has tasks with other rules."""
STATED = metric("EC", parameters={"costs": COSTS, "prevalence": BALANCED})


@contextmanager
def process(*command: str | Path, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    with log.open("wb") as output:
        started = subprocess.Popen(
            command, env=kept | variables, cwd=log.parent, stdout=output, stderr=output
        )
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(timeout=20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


@contextmanager
def monitor(settings: Settings, port: int, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    with process(
        sys.executable,
        "-m",
        "lifelong_monitor",
        log=settings.data_directory / "monitor.log",
        LIFELONG_DATA_DIRECTORY=str(settings.data_directory),
        LIFELONG_DATABASE_URL=settings.resolved_database_url,
        LIFELONG_MONITOR_PORT=str(port),
        LIFELONG_CYCLE_INTERVAL_SECONDS="1",
        LIFELONG_WINDOW_SAMPLES=str(settings.window_samples),
        LIFELONG_POLICY__UNUSUAL_TRAFFIC=settings.policy.unusual_traffic,
        **variables,
    ) as started:
        yield started


def scrape(url: str, secret: str = "") -> str:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


class Prometheus:
    """Asks a Prometheus over HTTP, as Grafana does."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=2):
                return True
        except OSError:
            return False

    def query(self, expression: str, *, ranged: bool) -> list[Any]:
        """The resulting series; an expression that does not parse raises."""
        parameters: dict[str, Any] = {"query": expression}
        if ranged:
            parameters |= {"start": time.time() - 60, "end": time.time(), "step": 1}
        path = "query_range" if ranged else "query"
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error


@dataclass(frozen=True)
class Watched:
    """A store, a monitor that watches it, and the Prometheus that scrapes the monitor with a token."""

    store: Store
    model: Model
    prometheus: Prometheus
    metrics_url: str
    secret: str
    log: Path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    settings = settings_for(folder)
    monitor_port, prometheus_port = free_port(), free_port()
    configuration, credentials = folder / "prometheus.yml", folder / "prometheus.token"
    configuration.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [
                    {
                        "job_name": "lifelong-monitor",
                        "static_configs": [{"targets": [f"127.0.0.1:{monitor_port}"]}],
                        "authorization": {"credentials_file": str(credentials)},
                    }
                ],
            }
        )
    )
    program = tools.program(tools.PROMETHEUS)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings))
        _, secret = store.tokens.create("prometheus", [Scope.METRICS], actor="tests")
        credentials.write_text(f"{secret}\n")
        model = add_model(store)
        attach(
            store,
            AcceptanceThreshold(metric="EC", value=5),
            AcceptanceThreshold(metric="TPR", value=0.1),
            what=naming(STATED, "TPR", "AUROC"),
        )
        # Without a payload it fails at once, which is as good a job as any.
        store.jobs.submit("validate", {}, actor="tests")
        predict(store, model, "clinic", draw(BALANCED, 600, seed=11))
        predict(store, model, "other", draw(BALANCED, 600, seed=12))
        stack.enter_context(
            process(
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{prometheus_port}",
                log=folder / "prometheus.log",
            )
        )
        stack.enter_context(monitor(settings, monitor_port, LIFELONG_OPEN_METRICS="false"))
        prometheus = Prometheus(prometheus_port)
        until(prometheus.ready, what="Prometheus")
        url = f"http://127.0.0.1:{monitor_port}/metrics"
        yield Watched(store, model, prometheus, url, secret, folder / "monitor.log")


@dataclass(frozen=True)
class Story:
    """What had happened by which time."""

    outcomes_before: dict[str, set[str]]
    swap_version: int
    cycle_id: UUID
    estimate: np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def story(watched: Watched) -> Story:
    """First the mix of development, twice; then another mix in one of the two environments."""
    store, model = watched.store, watched.model

    def judged(environment: str, cycles: int) -> bool:
        return len(store.cycles.list(model.id, environment)) >= cycles

    until(lambda: judged("clinic", 1) and judged("other", 1), what="the first cycles")
    predict(store, model, "clinic", draw(BALANCED, 600, seed=13))
    until(lambda: judged("clinic", 2), what="a second cycle")
    before = {
        name: {cycle.outcome for cycle in store.cycles.list(model.id, name)} for name in ("clinic", "other")
    }
    # After the swap there is no evidence to show until a cycle judges the new head.
    evidence = 'lifelong_shift_log_e_value{environment="clinic"}'
    until(lambda: watched.prometheus.query(evidence, ranged=False), what="the evidence in Prometheus")
    shifted = draw(SHIFTED, 600, seed=14)
    ids = predict(store, model, "clinic", shifted)
    label(store, ids[:100], list(shifted.labels[:100]))

    def swap() -> Any:
        last = store.cycles.last(model.id, "clinic")
        return last if last is not None and last.outcome == "swap" else None

    cycle = until(swap, what="a swap")
    return Story(
        before, cycle.published_version, cycle.id, np.array(cycle.report["prevalence"]["prevalence"])
    )


def test_no_head_is_swapped_before_the_shift(story: Story) -> None:
    assert story.outcomes_before == {"clinic": {"keep"}, "other": {"keep"}}


def test_the_shift_is_answered_by_a_head_for_its_environment(watched: Watched, story: Story) -> None:
    assert np.abs(story.estimate - SHIFTED).sum() < 0.15
    registry = watched.store.registry()
    assert registry is not None
    active = registry.head_for(watched.model, "clinic")
    assert active.version == story.swap_version
    assert np.allclose(active.head.assumed_prevalence, story.estimate, atol=0.005)
    assert registry.head_for(watched.model, "other").version == 1
    swaps = [entry for entry in watched.store.audit.list() if entry.action == "heads.swap"]
    assert [(entry.actor, entry.subject) for entry in swaps] == [
        ("monitor", f"{watched.model.reference}/clinic")
    ]


def test_prometheus_has_the_swap(watched: Watched, story: Story) -> None:
    def value(expression: str) -> float | None:
        series = watched.prometheus.query(expression, ranged=False)
        return float(series[0]["value"][1]) if series else None

    clinic = f'{{model="{watched.model.reference}",environment="clinic"}}'
    until(
        lambda: value(f"lifelong_head_version{clinic}") == story.swap_version, what="the head in Prometheus"
    )
    assert value(f'lifelong_cycles_total{clinic[:-1]},outcome="swap"}}') == 1
    assert value(f'lifelong_prevalence_estimate{clinic[:-1]},class="benign"}}') == pytest.approx(
        story.estimate[0]
    )
    until(lambda: value(f"lifelong_labelled_samples{clinic}") == 100, what="the labels in Prometheus")
    estimate = f'{clinic[:-1]},metric="AC",class="",head="current"}}'
    until(lambda: value(f"lifelong_estimated_performance{estimate}"), what="the estimated accuracy")
    low, high = (value(f"lifelong_estimated_performance_{end}{estimate}") for end in ("low", "high"))
    assert low is not None
    assert high is not None
    assert 0.5 < low < high < 1
    accepted = f'lifelong_estimated_performance_accepted{clinic[:-1]},metric="EC",class=""}}'
    until(lambda: value(accepted) == 1, what="the accepted cost")
    assert value('lifelong_cycles_total{environment="other",outcome="swap"}') == 0
    assert value("lifelong_tick_errors_total") == 0


def panels_in_trouble(prometheus: Prometheus, dashboard: dict[str, Any], model: Model) -> set[str]:
    """Titles of the panels and annotations for which Prometheus has no data although it should.

    Those about the service, which does not run here, about rules and lines of `_OFTEN_ABSENT` must parse only.
    """
    asked = [
        (panel["title"], target["expr"], target["range"], target["legendFormat"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]
    asked += [(one["name"], one["target"]["expr"], True, "") for one in dashboard["annotations"]["list"]]
    assert len(asked) > 15
    replacements = {
        "$model": model.reference,
        "$environment": "clinic",
        "$class": "benign|malignant",
        "$__rate_interval": "5s",
    }
    trouble: set[str] = set()
    for title, expression, ranged, legend in asked:
        filled = expression
        for name, value in replacements.items():
            filled = filled.replace(name, value)
        assert "$" not in filled
        series = prometheus.query(filled, ranged=ranged)
        is_absent = _OF_THE_SERVICE.search(filled) or _OF_A_RULE in filled or legend in _OFTEN_ABSENT
        if not series and not is_absent:
            trouble.add(title)
    return trouble


def test_every_panel_and_annotation_gets_data(watched: Watched, story: Story) -> None:
    until(
        lambda: not panels_in_trouble(watched.prometheus, DASHBOARD, watched.model),
        what="data on every panel",
    )


def test_the_panel_check_notices_a_misspelt_metric(watched: Watched, story: Story) -> None:
    misspelt = copy.deepcopy(DASHBOARD)
    panel = next(panel for panel in misspelt["panels"] if panel["title"] == "Shift size")
    panel["targets"][0]["expr"] = panel["targets"][0]["expr"].replace("shift_l1", "shift_l2")
    assert "Shift size" in panels_in_trouble(watched.prometheus, misspelt, watched.model)


def test_the_panel_check_notices_an_expression_that_does_not_parse(watched: Watched, story: Story) -> None:
    broken = copy.deepcopy(DASHBOARD)
    panel = next(panel for panel in broken["panels"] if panel["title"] == "Latency of predictions")
    panel["targets"][0]["expr"] += ")"
    with pytest.raises(AssertionError, match="parse error"):
        panels_in_trouble(watched.prometheus, broken, watched.model)


@pytest.mark.parametrize(("name", "label"), [("Head swaps", "head"), ("Affected decisions", "decisions")])
def test_the_swap_is_annotated_at_the_time_of_its_activation(
    watched: Watched, story: Story, name: str, label: str
) -> None:
    annotation = next(one for one in DASHBOARD["annotations"]["list"] if one["name"] == name)
    expression = annotation["target"]["expr"].replace("$model", watched.model.reference)
    expression = expression.replace("$environment", "clinic")

    def marks() -> dict[str, set[int]]:
        series = watched.prometheus.query(expression, ranged=True)
        return {one["metric"][label]: {round(float(value)) for _, value in one["values"]} for one in series}

    def printed() -> str | None:
        """What the annotation says of the swap, once it is known."""
        if label == "head":
            return str(story.swap_version)
        figures = watched.store.swaps.figures([story.cycle_id])
        return str(figures[story.cycle_id].counts.affected) if figures else None

    until(lambda: printed() in marks(), what="the annotation")
    activation = watched.store.heads.activations(watched.model.reference, environment="clinic")[-1]
    assert marks()[printed() or ""] == {round(activation.activated_at.timestamp() * 1000)}
    assert f"{{{{{label}}}}}" in annotation["titleFormat"]


def test_the_log_says_in_words_what_happened(watched: Watched, story: Story) -> None:
    lines = watched.log.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if f"{watched.model.reference} in clinic: swap." in line]
    assert not [line for line in lines if "Traceback" in line]


def test_promtool_finds_nothing_wrong_with_what_the_process_exports(watched: Watched, story: Story) -> None:
    promtool = tools.program(tools.PROMTOOL)
    assert scrape(watched.metrics_url) == ""
    exported = scrape(watched.metrics_url, watched.secret)
    assert "lifelong_prevalence_estimate{" in exported
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=exported,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr


def gauge(watched: Watched, name: str, **labels: str) -> float | None:
    """A value that the monitor exports for the clinic; None: absent."""
    wanted = {"model": watched.model.reference, "environment": "clinic"} | labels
    found = [
        sample.value
        for family in text_string_to_metric_families(scrape(watched.metrics_url, watched.secret))
        for sample in family.samples
        if sample.name == name and wanted.items() <= sample.labels.items()
    ]
    assert len(found) < 2
    return found[0] if found else None


@dataclass(frozen=True)
class Compared:
    """The performance of the new head by the service, before and after labels of its predictions arrived."""

    client: httpx.Client
    token: str
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def head(self) -> dict[str, Any]:
        """The newest head, with labels."""
        return self.after["heads"][-1]


@pytest.fixture(scope="module")
def compared(watched: Watched, story: Story) -> Iterator[Compared]:
    """The new head decides, a cycle estimates its performance, and then labels of most of its decisions arrive."""
    logits = draw(SHIFTED, 600, seed=15)
    ids = predict(watched.store, watched.model, "clinic", logits)
    _, token = watched.store.tokens.create("clinic", [Scope.READ, Scope.FEEDBACK], actor="tests")
    path = f"/v1/admin/populations/{watched.model.reference}/clinic/performance"
    folder = watched.log.parent
    with (
        running_service(folder, token, data_directory=folder, workers=1) as service,
        httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as client,
    ):
        service.wait_until_ready()

        def performance(labels: int | None) -> dict[str, Any] | None:
            """The comparison once the newest head has an estimate of its own predictions and that many labels."""
            found = client.get(path, headers={"Authorization": f"Bearer {token}"}).raise_for_status().json()
            head = found["heads"][-1]
            realised = head["realised"]
            is_there = head["head_version"] == story.swap_version and head["estimated"] is not None
            return found if is_there and (realised and realised["samples"]) == labels else None

        def judged() -> bool:
            last = watched.store.cycles.last(watched.model.id, "clinic")
            return last is not None and last.id != story.cycle_id

        until(judged, what="a cycle of the new head")
        before = until(lambda: performance(None), what="an estimate of the new head")
        labels = [
            {"prediction_id": str(one), "label": int(true)}
            for one, true in zip(ids[:LATE_LABELS], logits.labels[:LATE_LABELS], strict=True)
        ]
        answer = client.post(
            "/v1/feedback", json={"labels": labels}, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200, answer.text
        after = until(lambda: performance(LATE_LABELS), what="the comparison with the labels")
        yield Compared(client, token, before, after)


def overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two intervals, each as value, lower and upper bound, have a value in common."""
    return max(one[1], other[1]) <= min(one[2], other[2])


def test_late_labels_confirm_the_estimate_of_the_new_head(compared: Compared) -> None:
    # Labels of the head before it give the cost at several class mixes.
    of_head = [one for one in compared.before["statements"] if one.startswith("Head")]
    assert len(of_head) == 2
    assert all("none of its predictions had a label" in one for one in of_head)
    head = compared.head
    for name in ("AC", "EC"):
        assert overlap(head["estimated"]["metrics"][name], head["realised"]["metrics"][name])
        assert head["agreement"][name]["verdict"] == "agree"
    assert not [one for one in compared.after["warnings"] if "disagree" in one]
    numbers = [
        f"{value:.3f} ({low:.3f} to {high:.3f})"
        for value, low, high in (head[side]["metrics"]["AC"] for side in ("estimated", "realised"))
    ]
    statement = compared.after["statements"][0]
    assert statement.startswith(
        f"Head {head['head_version']}: accuracy is {numbers[0]} by the estimate without labels,"
        f" and {numbers[1]} on {LATE_LABELS} labelled predictions. They agree"
    )


def test_the_gauges_show_the_estimate_beside_the_late_labels(watched: Watched, compared: Compared) -> None:
    until(
        lambda: gauge(watched, "lifelong_performance_labelled_samples") == LATE_LABELS,
        what="the late labels among the gauges",
    )
    until(
        lambda: gauge(watched, "lifelong_labelled_samples") == LATE_LABELS + 100,
        what="all labels among the gauges",
    )
    for name in ("AC", "EC"):
        assert gauge(watched, "lifelong_performance_agreement", metric=name) == 1
    estimate, realised = (
        [gauge(watched, f"{name}{end}", **labels) for end in ("", "_low", "_high")]
        for name, labels in (
            ("lifelong_estimated_performance", {"metric": "AC", "class": "", "head": "current"}),
            ("lifelong_realised_accuracy", {}),
        )
    )
    assert estimate == pytest.approx(compared.head["estimated"]["metrics"]["AC"])
    # The realised gauges also count the 100 labels from before the swap.
    assert overlap([value or 0 for value in estimate], [value or 0 for value in realised])
    assert realised[1:] == sorted(value or 0 for value in realised[1:])


@pytest.mark.parametrize("legend", ["AC", "EC"])
def test_the_panel_of_agreement_shows_the_verdict(watched: Watched, compared: Compared, legend: str) -> None:
    panel = next(one for one in DASHBOARD["panels"] if one["title"] == "Agreement of labels and estimate")
    expression = panel["targets"][0]["expr"].replace("$model", watched.model.reference)
    expression = expression.replace("$environment", "clinic")

    def shown() -> bool:
        series = watched.prometheus.query(expression, ranged=False)
        return [one["value"][1] for one in series if one["metric"]["metric"] == legend] == ["1"]

    until(shown, what="the verdict in Prometheus")


def test_the_console_shows_the_estimate_beside_the_late_labels(watched: Watched, compared: Compared) -> None:
    """As a browser does: without a header, but with the cookie of the login."""
    path = f"/console/performance/{watched.model.reference}/clinic"
    assert compared.client.get(path).status_code == 303
    login = compared.client.post(
        "/console/login", data={"token": compared.token}, headers={"Sec-Fetch-Site": "same-origin"}
    )
    assert login.status_code == 303, login.text
    page = compared.client.get(path)
    assert page.status_code == 200
    for statement in compared.after["statements"]:
        # The cost at several class mixes is a table there.
        assert f'<p class="lead">{statement}</p>' in page.text or statement.startswith(
            "Expected cost (EC) is "
        )
    assert "At the stated, estimated and realised prevalences" in page.text
    assert len(compared.after["statements"]) == 3
    assert "estimated</title>" in page.text
    assert "labelled</title>" in page.text


def test_it_survives_an_outage_of_postgresql(tmp_path: Path) -> None:
    with databases.PostgreSQL() as server:
        url = server.create(migrated=True)
        settings, port = settings_for(tmp_path, database_url=url), free_port()

        def administer(statement: str) -> None:
            administrator = server.url("postgres").replace("postgresql+psycopg://", "postgresql://")
            with psycopg.connect(administrator, autocommit=True) as connection:
                connection.execute(statement.encode())

        def failed_ticks() -> float:
            found = re.search(
                r"^lifelong_tick_errors_total (\S+)", scrape(f"http://127.0.0.1:{port}/metrics"), re.M
            )
            return float(found[1]) if found else 0

        name = url.partition("?")[0].rpartition("/")[2]
        with open_store(settings) as store:
            model = add_model(store)
            predict(store, model, "clinic", draw(BALANCED, 600, seed=11))
            with monitor(settings, port) as running:
                until(store.cycles.list, what="a first cycle")
                store.close()
                administer(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
                until(lambda: failed_ticks() >= 2, what="failed ticks")
                assert running.poll() is None
                administer(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
                predict(store, model, "clinic", draw(BALANCED, 600, seed=13))
                until(lambda: len(store.cycles.list()) >= 2, what="a cycle after the outage")
            assert running.returncode == 0
