"""The monitor as a real process with a real Prometheus: a shift is detected, answered and on every panel."""

import copy
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lifelong_core.configuration.settings import Settings
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Model, Scope, Store
from tests import databases, tools
from tests.integration.dashboards import BOARDS, expect_data, fill, panel_of, troubles
from tests.integration.monitors import Monitor, running_monitor
from tests.integration.processes import eventually, running_service
from tests.integration.prometheus import Prometheus, prometheus
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

LATE_LABELS = 450
"""Of the 600 predictions of the head that answered the shift."""
_OFTEN_ABSENT = frozenset(
    (
        # Not every cycle considers another head, not every metric has a threshold, and nobody pinned a head.
        "candidate",
        "threshold",
        "pinned",
        "Refusals",
        "Errors",
        # Nothing is wrong with the processes, no retraining is proposed, and no model is on trial.
        "Fault",
        "Warning",
        "Severity",
        "Alert",
        "Instance",
        "Proposed for",
        "Candidate",
        "its accuracy",
        "its cost",
        "its shift",
        "{{model}} as {{role}}",
        "{{kind}} runs",
        # Of rules with a searched cut-off: tests/integration/test_decision_rules.py.
        "{{metric}} {{class}} by {{by}}",
        "{{metric}} {{class}} with any cut-off",
        "{{class}}",
    )
)
"""Lines and columns without data in this story."""
_OF_A_RULE = "Metric of the decision rule, expected and realised"
STATED = metric("EC", parameters={"costs": COSTS, "prevalence": BALANCED})


def started(settings: Settings, **more: Any) -> AbstractContextManager[Monitor]:
    """A monitor of the store of these settings."""
    return running_monitor(
        settings.data_directory,
        data_directory=settings.data_directory,
        database_url=settings.resolved_database_url,
        window_samples=settings.window_samples,
        policy__unusual_traffic=settings.policy.unusual_traffic,
        **more,
    )


@dataclass(frozen=True)
class Watched:
    """A store, the service and the monitor of it, and the Prometheus that scrapes both with a token."""

    store: Store
    model: Model
    prometheus: Prometheus
    monitor: Monitor
    secret: str
    client: httpx.Client
    """of the service, with the token below"""
    token: str

    @property
    def variables(self) -> dict[str, str]:
        """Those of dashboards."""
        return {"model": self.model.reference, "environment": "clinic", "class": "benign"}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    settings = settings_for(folder)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings))
        _, secret = store.tokens.create("prometheus", [Scope.METRICS], actor="tests")
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
        _, token = store.tokens.create("clinic", [Scope.READ, Scope.FEEDBACK, Scope.PREDICT], actor="tests")
        service = stack.enter_context(
            running_service(folder, token, data_directory=folder, workers=1, open_metrics="false")
        )
        monitor = stack.enter_context(started(settings, open_metrics="false"))
        scraping = stack.enter_context(prometheus(folder, monitor.port, service.port, token=secret))
        eventually(lambda: scraping.query("vector(1)"), "Prometheus")
        service.wait_until_ready()
        address = f"http://127.0.0.1:{service.port}"
        client = stack.enter_context(
            httpx.Client(base_url=address, timeout=30, headers={"Authorization": f"Bearer {token}"})
        )
        yield Watched(store, model, scraping, monitor, secret, client, token)


@dataclass(frozen=True)
class Story:
    """What had happened by which time."""

    outcomes_before: dict[str, set[str]]
    swap_version: int
    cycle_id: UUID
    estimate: np.ndarray[Any, Any]


def decide(watched: Watched, logits: np.ndarray[Any, Any]) -> None:
    """Let the service decide in the clinic, and wait until Prometheus has counted that."""
    counted = 'sum(lifelong_predictions_total{environment="clinic"})'
    before = watched.prometheus.value(counted) or 0
    ask = {"logits": logits.tolist(), "model": watched.model.reference, "environment": "clinic"}
    watched.client.post("/v1/logits", json=ask).raise_for_status()
    eventually(lambda: watched.prometheus.value(counted) == before + len(logits), "the decisions")


@pytest.fixture(scope="module")
def story(watched: Watched) -> Story:
    """First the mix of development, twice; then another mix in one of the two environments."""
    store, model = watched.store, watched.model

    def judged(environment: str, cycles: int) -> bool:
        return len(store.cycles.list(model.id, environment)) >= cycles

    eventually(lambda: judged("clinic", 1) and judged("other", 1), "the first cycles")
    for part in np.split(draw(BALANCED, 600, seed=13).logits, 2):
        decide(watched, part)
    eventually(lambda: judged("clinic", 2), "a second cycle")
    before = {
        name: {cycle.outcome for cycle in store.cycles.list(model.id, name)} for name in ("clinic", "other")
    }
    # After the swap there is no evidence to show until a cycle judges the new head.
    evidence = 'lifelong_shift_log_e_value{environment="clinic"}'
    eventually(lambda: watched.prometheus.query(evidence), "the evidence in Prometheus")
    shifted = draw(SHIFTED, 600, seed=14)
    ids = predict(store, model, "clinic", shifted)
    label(store, ids[:100], list(shifted.labels[:100]))

    def swap() -> Any:
        last = store.cycles.last(model.id, "clinic")
        return last if last is not None and last.outcome == "swap" else None

    cycle = eventually(swap, "a swap")
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
    value = watched.prometheus.value
    clinic = f'{{model="{watched.model.reference}",environment="clinic"}}'
    eventually(
        lambda: value(f"lifelong_head_version{clinic}") == story.swap_version, "the head in Prometheus"
    )
    assert value(f'lifelong_cycles_total{clinic[:-1]},outcome="swap"}}') == 1
    assert value(f'lifelong_prevalence_estimate{clinic[:-1]},class="benign"}}') == pytest.approx(
        story.estimate[0]
    )
    eventually(lambda: value(f"lifelong_labelled_samples{clinic}") == 100, "the labels in Prometheus")
    estimate = f'{clinic[:-1]},metric="AC",class="",head="current"}}'
    eventually(lambda: value(f"lifelong_estimated_performance{estimate}"), "the estimated accuracy")
    low, high = (value(f"lifelong_estimated_performance_{end}{estimate}") for end in ("low", "high"))
    assert low is not None
    assert high is not None
    assert 0.5 < low < high < 1
    accepted = f'lifelong_estimated_performance_accepted{clinic[:-1]},metric="EC",class=""}}'
    eventually(lambda: value(accepted) == 1, "the accepted cost")
    assert value('lifelong_cycles_total{environment="other",outcome="swap"}') == 0
    assert value("lifelong_tick_errors_total") == 0


@pytest.mark.parametrize("name", ["overview", "population", "develop"])
def test_every_panel_and_annotation_gets_data_of_its_shape(watched: Watched, story: Story, name: str) -> None:
    # The first scrape may have come after the end of the first job: then only another one is an increase.
    watched.store.jobs.submit("validate", {}, actor="tests")
    expect_data(watched.prometheus, BOARDS[name], watched.variables, absent=_OFTEN_ABSENT)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("log_e_value{", "log_f_value{", "no data"),
        ("by (class)", "by (model)", "empty columns: {'Class'}"),
        ("lifelong:population_outcome{", "9 + lifelong:population_outcome{", "no words for"),
    ],
)
def test_the_check_of_panels_notices_a_fault(
    watched: Watched, story: Story, right: str, wrong: str, said: str
) -> None:
    broken = copy.deepcopy(BOARDS["population"])
    for panel in broken["panels"]:
        for target in panel["targets"]:
            target["expr"] = target["expr"].replace(right, wrong)
    assert said in " ".join(troubles(watched.prometheus, broken, watched.variables, absent=_OFTEN_ABSENT))


def test_the_check_of_panels_notices_an_expression_that_does_not_parse(
    watched: Watched, story: Story
) -> None:
    broken = copy.deepcopy(BOARDS["population"])
    broken["panels"][0]["targets"][0]["expr"] += ")"
    with pytest.raises(AssertionError, match="parse error"):
        troubles(watched.prometheus, broken, watched.variables)


def test_the_tables_have_one_row_for_each_population(watched: Watched, story: Story) -> None:
    for target in panel_of("overview", "All populations")["targets"]:
        rows = watched.prometheus.query(fill(target["expr"], watched.variables))
        places = [(one["metric"]["model"], one["metric"]["environment"]) for one in rows]
        assert len(places) == len(set(places)), target["expr"]
    everywhere = watched.prometheus.query("lifelong:population_state")
    assert {one["metric"]["environment"] for one in everywhere} == {"clinic", "other"}


@pytest.mark.parametrize(
    ("name", "label"), [("Changes of the head", "head"), ("Affected decisions", "decisions")]
)
def test_the_swap_is_annotated_at_the_time_of_its_activation(
    watched: Watched, story: Story, name: str, label: str
) -> None:
    annotation = next(one for one in BOARDS["population"]["annotations"]["list"] if one["name"] == name)
    expression = fill(annotation["target"]["expr"], watched.variables)

    def marks() -> dict[str, set[int]]:
        series = watched.prometheus.query(expression, ranged=True)
        return {one["metric"][label]: {round(float(value)) for _, value in one["values"]} for one in series}

    def printed() -> str | None:
        """What the annotation says of the swap, once it is known."""
        if label == "head":
            return str(story.swap_version)
        figures = watched.store.swaps.figures([story.cycle_id])
        return str(figures[story.cycle_id].counts.affected) if figures else None

    eventually(lambda: printed() in marks(), "the annotation")
    activation = watched.store.heads.activations(watched.model.reference, environment="clinic")[-1]
    assert marks()[printed() or ""] == {round(activation.activated_at.timestamp() * 1000)}
    assert f"{{{{{label}}}}}" in annotation["titleFormat"]


def test_the_log_says_in_words_what_happened(watched: Watched, story: Story) -> None:
    lines = watched.monitor.log.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if f"{watched.model.reference} in clinic: swap." in line]
    assert not [line for line in lines if "Traceback" in line]


def test_promtool_finds_nothing_wrong_with_what_the_process_exports(watched: Watched, story: Story) -> None:
    promtool = tools.program(tools.PROMTOOL)
    assert watched.monitor.metrics() == ""
    exported = watched.monitor.metrics(watched.secret)
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
        for family in text_string_to_metric_families(watched.monitor.metrics(watched.secret))
        for sample in family.samples
        if sample.name == name and wanted.items() <= sample.labels.items()
    ]
    assert len(found) < 2
    return found[0] if found else None


@dataclass(frozen=True)
class Compared:
    """The performance of the new head by the service, before and after labels of its predictions arrived."""

    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def head(self) -> dict[str, Any]:
        """The newest head, with labels."""
        return self.after["heads"][-1]


@pytest.fixture(scope="module")
def compared(watched: Watched, story: Story) -> Compared:
    """The new head decides, a cycle estimates its performance, and then labels of most of its decisions arrive."""
    logits = draw(SHIFTED, 600, seed=15)
    ids = predict(watched.store, watched.model, "clinic", logits)
    path = f"/v1/admin/populations/{watched.model.reference}/clinic/performance"

    def performance(labels: int | None) -> dict[str, Any] | None:
        """The comparison once the newest head has an estimate of its own predictions and that many labels."""
        found = watched.client.get(path).raise_for_status().json()
        head = found["heads"][-1]
        realised = head["realised"]
        is_there = head["head_version"] == story.swap_version and head["estimated"] is not None
        return found if is_there and (realised and realised["samples"]) == labels else None

    def judged() -> bool:
        last = watched.store.cycles.last(watched.model.id, "clinic")
        return last is not None and last.id != story.cycle_id

    eventually(judged, "a cycle of the new head")
    before = eventually(lambda: performance(None), "an estimate of the new head")
    labels = [
        {"prediction_id": str(one), "label": int(true)}
        for one, true in zip(ids[:LATE_LABELS], logits.labels[:LATE_LABELS], strict=True)
    ]
    answer = watched.client.post("/v1/feedback", json={"labels": labels})
    assert answer.status_code == 200, answer.text
    return Compared(before, eventually(lambda: performance(LATE_LABELS), "the comparison with the labels"))


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
    eventually(
        lambda: gauge(watched, "lifelong_performance_labelled_samples") == LATE_LABELS,
        "the late labels among the gauges",
    )
    eventually(
        lambda: gauge(watched, "lifelong_labelled_samples") == LATE_LABELS + 100,
        "all labels among the gauges",
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


def test_every_panel_about_the_quality_gets_data_of_its_shape(watched: Watched, compared: Compared) -> None:
    document = copy.deepcopy(BOARDS["quality"])
    document["panels"] = [panel for panel in document["panels"] if panel["title"] != _OF_A_RULE]
    expect_data(watched.prometheus, document, watched.variables, absent=_OFTEN_ABSENT)
    (asked,) = panel_of("quality", "Labels and estimate")["targets"]
    shown = watched.prometheus.query(fill(asked["expr"], watched.variables))
    assert {one["metric"]["metric"]: one["value"][1] for one in shown} == {"AC": "1", "EC": "1"}


def test_the_console_shows_the_estimate_beside_the_late_labels(watched: Watched, compared: Compared) -> None:
    """As a browser does: without a header, but with the cookie of the login."""
    path = f"/console/performance/{watched.model.reference}/clinic"
    with httpx.Client(base_url=watched.client.base_url, timeout=30) as browser:
        assert browser.get(path).status_code == 303
        login = browser.post(
            "/console/login", data={"token": watched.token}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert login.status_code == 303, login.text
        page = browser.get(path)
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
        settings = settings_for(tmp_path, database_url=url)

        def administer(statement: str) -> None:
            administrator = server.url("postgres").replace("postgresql+psycopg://", "postgresql://")
            with psycopg.connect(administrator, autocommit=True) as connection:
                connection.execute(statement.encode())

        name = url.partition("?")[0].rpartition("/")[2]
        with open_store(settings) as store:
            model = add_model(store)
            predict(store, model, "clinic", draw(BALANCED, 600, seed=11))
            with started(settings) as running:

                def failed_ticks() -> float:
                    found = re.search(r"^lifelong_tick_errors_total (\S+)", running.metrics(), re.M)
                    return float(found[1]) if found else 0

                eventually(store.cycles.list, "a first cycle")
                store.close()
                administer(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
                eventually(lambda: failed_ticks() >= 2, "failed ticks")
                assert running.process.poll() is None
                administer(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
                predict(store, model, "clinic", draw(BALANCED, 600, seed=13))
                eventually(lambda: len(store.cycles.list()) >= 2, "a cycle after the outage")
            assert running.process.returncode == 0
