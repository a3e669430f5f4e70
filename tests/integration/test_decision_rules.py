"""From the interview to the decision, over HTTP: costs and targets are attached, served, watched and kept under shifts.

A service, a monitor and a Prometheus with the shipped alert rules run as processes. Only the first token comes from the
command line's way in, as in an installation.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import httpx
import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Scope, Store
from lifelong_core.values.arrays import Floats, Integers
from tests.integration.dashboards import BOARDS, expect_data
from tests.integration.monitors import running_monitor
from tests.integration.processes import eventually, running_service
from tests.integration.prometheus import Prometheus, prometheus

CLASS_NAMES = ["healthy", "ill"]
STATED = (0.98, 0.02)
ANSWERS: Mapping[str, Any] = {
    "class_scores_available": True,
    "unequal_interest": False,
    "prevalences_representative": False,
    "class_contribution": "target_prevalences",
    "target_prevalences_known": True,
    "target_prevalences": STATED,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
COST_OF_A_MISS = 50.0
SCREENING = {
    "decision_rule": "cost_benefit",
    "unequal_severity": True,
    "costs_available": True,
    "threshold_perspective": "explicit_costs",
    "costs": [[0, 1], [COST_OF_A_MISS, 0]],
}
SENSITIVITY = {
    "decision_rule": "target_value",
    "target_metric": "TPR",
    "target_value": 0.9,
    "target_class": 1,
    "unequal_severity": False,
}
PRECISION = SENSITIVITY | {
    "target_metric": "PPV",
    "target_value": 0.8,
    "target_prevalences": (0.6, 0.4),
}
ACCEPTED_COST = 0.3
"""At the stated prevalences decisions cost about .16."""
RARE, OFTEN = 0.02, 0.4
WINDOW = 1500
MOST_LABELS = 1000
"""of one request"""
ALERTS = ("LifelongTargetMissed", "LifelongThresholdMissed")


@dataclass(frozen=True)
class Drawn:
    """Predictions of a population: logits of a known classifier, so that the best decisions are known."""

    logits: Floats
    """shape (N, 2)"""
    labels: Integers
    """shape (N,)"""
    decisions: Integers
    """as they were served, shape (N,)"""
    ids: list[str]
    head_version: int


def sample(share: float, size: int, *, seed: int) -> tuple[Floats, Integers]:
    """Logits and labels with exactly this share of the ill; the log likelihood ratio is twice the difference."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation((np.arange(size) < round(share * size)).astype(np.int64))
    return 2 * np.eye(2)[labels] + rng.normal(size=(size, 2)), labels


@dataclass
class Stage:
    """What a client of an installation can reach: HTTP of the service, metrics of the monitor, alerts."""

    client: httpx.Client
    metrics: Prometheus
    seeds: Iterator[int] = field(default_factory=lambda: count(100))

    def post(self, path: str, document: Any) -> Any:
        answer = self.client.post(path, json=document)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        return self.client.get(path).raise_for_status().json()

    def add(self, name: str, cost_of_a_false_alarm: float = 1) -> None:
        """A task, an external model and its balanced calibration set."""
        costs = [[0, cost_of_a_false_alarm], [1, 0]]
        self.post("/v1/admin/tasks", {"name": name, "classes": CLASS_NAMES, "costs": costs})
        self.post("/v1/admin/models", {"task": name, "name": name, "kind": "external"})
        logits, labels = sample(0.5, 2000, seed=1)
        self.post(
            f"/v1/admin/models/{name}/calibration-sets",
            {"logits": logits.tolist(), "labels": labels.tolist()},
        )

    def interview(self, name: str, rule: Mapping[str, Any], thresholds: list[dict[str, Any]]) -> Any:
        """Answer the interview of the task, attach the recommendation, and fit the head again."""
        interview = self.post("/v1/admin/interviews", {"task": name})
        stated = {**ANSWERS, **rule}
        while (question := interview["question"]) is not None:
            answer = {question["field"]: stated[question["field"]]}
            interview = self.post(f"/v1/admin/interviews/{interview['id']}/answers", {"answers": answer})
        assert interview["stage"] == "complete", interview
        self.post(f"/v1/admin/interviews/{interview['id']}/finish", {})
        attached = self.post(
            f"/v1/admin/tasks/{name}/recommendations",
            {"interview": interview["id"], "refit_head": True, "thresholds": thresholds},
        )
        (published,) = attached["published"]
        assert published["environment"] is None
        self.wait_for_head(name, "default", published["version"])
        return attached

    def wait_for_head(self, name: str, environment: str, version: int) -> None:
        """Until the worker decides with this head."""
        ask = {"logits": [[0.0, 0.0]], "model": name, "environment": environment}
        eventually(lambda: self.post("/v1/logits", ask)["head_version"] == version, "the head to serve")

    def predict(self, name: str, environment: str, share: float, size: int = WINDOW) -> Drawn:
        """Decisions of one request."""
        logits, labels = sample(share, size, seed=next(self.seeds))
        answer = self.post(
            "/v1/logits", {"logits": logits.tolist(), "model": name, "environment": environment}
        )
        rows = answer["predictions"]
        return Drawn(
            logits,
            labels,
            np.array([CLASS_NAMES.index(row["label"]) for row in rows]),
            [row["prediction_id"] for row in rows],
            answer["head_version"],
        )

    def label(self, drawn: Drawn) -> None:
        """Late labels of all of them."""
        labels = [
            {"prediction_id": one, "label": true}
            for one, true in zip(drawn.ids, drawn.labels.tolist(), strict=True)
        ]
        for begin in range(0, len(labels), MOST_LABELS):
            self.post("/v1/feedback", {"labels": labels[begin : begin + MOST_LABELS]})

    def cycles(self, name: str, environment: str) -> list[dict[str, Any]]:
        """Those of a population, newest first."""
        found = self.client.get("/v1/admin/cycles", params={"model": name, "environment": environment})
        return found.raise_for_status().json()["cycles"]

    def next_cycle(self, name: str, environment: str, share: float) -> dict[str, Any]:
        """Predict, and wait until a cycle has judged a window with these predictions only."""
        known = len(self.cycles(name, environment))
        self.predict(name, environment, share)
        eventually(lambda: len(self.cycles(name, environment)) > known, "a cycle")
        return self.cycles(name, environment)[0]

    def gauge(self, metric: str, name: str, environment: str, /, **labels: str) -> float | None:
        """A value that the monitor exports, as Prometheus has it."""
        wanted = {"model": f"{name}@1", "environment": environment} | labels
        selector = ",".join(f'{key}="{value}"' for key, value in wanted.items())
        return self.metrics.value(f"lifelong_{metric}{{{selector}}}")

    def is_alarmed(self, alert: str, name: str, environment: str) -> bool:
        """Whether an alert fires for a population."""
        place = {"alertname": alert, "model": f"{name}@1", "environment": environment}
        return any(place.items() <= labels.items() for labels in self.metrics.alerts())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("rules")
    settings = Settings(data_directory=folder / "data")
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        _, token = store.tokens.create("admin", [Scope.ADMIN], actor="tests")
    headers = {"Authorization": f"Bearer {token}"}
    with ExitStack() as stack:
        service = stack.enter_context(running_service(folder, token, workers=1))
        # The token of all these predictions is new at each site.
        usual: dict[str, object] = {"quantifier": "KDEyML", "policy__unusual_traffic": "report"}
        monitor = stack.enter_context(running_monitor(folder, window_samples=WINDOW, **usual))
        metrics = stack.enter_context(prometheus(folder, monitor.port, at_once=ALERTS))
        service.wait_until_ready()
        address = f"http://127.0.0.1:{service.port}"
        client = stack.enter_context(httpx.Client(base_url=address, headers=headers, timeout=60))
        yield Stage(client, metrics)


def best_decisions(logits: Floats, share: float, cost_of_a_miss: float) -> Integers:
    """Those of least expected cost, from the true densities."""
    odds = np.exp(2 * (logits[:, 1] - logits[:, 0])) * share / (1 - share)
    return (cost_of_a_miss * odds >= 1).astype(np.int64)


def mean_cost(drawn: Drawn, share: float) -> float:
    """Of the decisions, weighed to a share of the ill."""
    false_alarms = (drawn.decisions[drawn.labels == 0] == 1).mean()
    misses = (drawn.decisions[drawn.labels == 1] == 0).mean()
    return float((1 - share) * false_alarms + share * COST_OF_A_MISS * misses)


def test_screening_where_a_miss_costs_fifty_false_alarms(stage: Stage) -> None:
    """The stated cost holds after the shift; the realised one does not, and an alert says so."""
    stage.add("screening", cost_of_a_false_alarm=20)
    before = stage.predict("screening", "default", RARE)
    stage.interview("screening", SCREENING, [{"metric": "EC", "value": ACCEPTED_COST, "by": "estimate"}])
    assert stage.get("/v1/admin/tasks")["tasks"][0]["costs"] == SCREENING["costs"]
    after = stage.predict("screening", "default", RARE)
    assert after.head_version == before.head_version + 1
    best = best_decisions(after.logits, RARE, COST_OF_A_MISS)
    assert (after.decisions == best).mean() > 0.97
    assert (before.decisions == best_decisions(before.logits, RARE, COST_OF_A_MISS)).mean() < 0.95

    shifted = stage.predict("screening", "clinic", OFTEN)
    stage.label(shifted)
    eventually(
        lambda: stage.gauge("realised_metric", "screening", "clinic", metric="EC", prevalence="estimated"),
        "the cost at the estimated prevalences",
    )
    cost = {
        mix: stage.gauge("realised_metric", "screening", "clinic", metric="EC", prevalence=mix) or 0.0
        for mix in ("stated", "estimated", "realised")
    }
    assert cost["stated"] == pytest.approx(mean_cost(shifted, RARE))
    assert cost["realised"] == pytest.approx(mean_cost(shifted, OFTEN))
    assert cost["estimated"] == pytest.approx(cost["realised"], rel=0.15)
    assert cost["stated"] < ACCEPTED_COST < cost["realised"] / 3
    accepted = stage.gauge(
        "realised_metric_accepted", "screening", "clinic", metric="EC", prevalence="stated"
    )
    assert accepted == 1
    eventually(lambda: stage.is_alarmed("LifelongThresholdMissed", "screening", "clinic"), "the alert")
    shown = stage.get("/v1/admin/populations/screening@1/clinic/performance")
    assert [one["mix"] for one in shown["class_mixes"]] == ["stated", "estimated", "realised"]
    assert any("reaches its threshold 0.3 at the stated prevalences" in text for text in shown["warnings"])

    swap = eventually(lambda: swap_of(stage, "screening", "clinic"), "a swap")
    stage.wait_for_head("screening", "clinic", swap["published_version"])
    adapted = stage.predict("screening", "clinic", OFTEN)
    assert (adapted.decisions == best_decisions(adapted.logits, OFTEN, COST_OF_A_MISS)).mean() > 0.97
    assert mean_cost(adapted, OFTEN) < mean_cost(shifted, OFTEN) / 2


def swap_of(stage: Stage, name: str, environment: str) -> dict[str, Any] | None:
    """The newest cycle that published a head; None: there is none yet."""
    return next(
        (one for one in stage.cycles(name, environment) if one["published_version"] is not None), None
    )


def sensitivity(drawn: Drawn) -> float:
    return float((drawn.decisions[drawn.labels == 1] == 1).mean())


def precision(drawn: Drawn) -> float:
    return float((drawn.labels[drawn.decisions == 1] == 1).mean())


def test_a_sensitivity_is_kept_before_and_after_a_shift(stage: Stage) -> None:
    stage.add("sensitive")
    stage.interview("sensitive", SENSITIVITY, [])
    (task,) = [one for one in stage.get("/v1/admin/tasks")["tasks"] if one["name"] == "sensitive"]
    assert task["decision_rule"]["metric"] == "TPR"
    for environment, share in (("often", 0.5), ("seldom", 0.1)):
        cycle = stage.next_cycle("sensitive", environment, share)
        assert cycle["report"]["criterion"]["target"] == 0.9
        # The stated prevalence of the ill is .02, so the cycle swaps: for the probabilities, the decisions stay.
        stage.wait_for_head("sensitive", environment, cycle["published_version"])
        served = stage.predict("sensitive", environment, share, 4000)
        reached = cycle["report"]["candidate_criterion"]
        assert reached["low"] - 0.03 <= sensitivity(served) <= reached["high"] + 0.03
        of_class = {"metric": "TPR", "class": "ill"}
        shown = eventually(
            lambda name=environment, labels=of_class: stage.gauge(
                "decision_rule_expected", "sensitive", name, **labels
            ),
            "the gauge",
        )
        assert shown == pytest.approx(0.9, abs=0.03)
        assert not stage.is_alarmed("LifelongTargetMissed", "sensitive", environment)
    # Decisions of least expected errors do not keep it where few are ill.
    assert sensitivity(replace(served, decisions=best_decisions(served.logits, 0.1, 1))) < 0.85


def test_a_precision_is_kept_by_another_cut_off_and_a_pinned_head_that_misses_it_raises_the_alert(
    stage: Stage,
) -> None:
    stage.add("precise")
    stage.interview("precise", PRECISION, [])
    for environment in ("clinic", "pinned"):
        assert stage.next_cycle("precise", environment, 0.4)["outcome"] == "keep"
    stage.post("/v1/admin/models/precise/heads/pin", {"environment": "pinned", "reason": "a trial"})
    frozen = stage.predict("precise", "pinned", 0.15)
    assert precision(frozen) < 0.7
    stage.predict("precise", "clinic", 0.15)
    swap = eventually(lambda: swap_of(stage, "precise", "clinic"), "a swap")
    now, then = swap["report"]["criterion"], swap["report"]["candidate_criterion"]
    assert now["high"] < 0.8 < then["high"]
    assert then["cut_off"] > now["cut_off"]
    assert "rule_refitted" in [reason["code"] for reason in swap["report"]["reasons"]]
    stage.wait_for_head("precise", "clinic", swap["published_version"])
    served = stage.predict("precise", "clinic", 0.15, 4000)
    assert then["low"] - 0.04 <= precision(served) <= then["high"] + 0.04
    stage.label(served)

    for _ in range(2):
        stage.next_cycle("precise", "pinned", 0.15)
    eventually(lambda: stage.is_alarmed("LifelongTargetMissed", "precise", "pinned"), "the alert")
    labels = {"metric": "PPV", "class": "ill"}
    eventually(lambda: stage.gauge("decision_rule_realised", "precise", "clinic", **labels), "the labels")
    realised = stage.gauge("decision_rule_realised", "precise", "clinic", **labels)
    assert realised == pytest.approx(precision(served))
    assert stage.gauge("decision_rule_reached", "precise", "pinned", by="estimate", **labels) == 0
    assert not stage.is_alarmed("LifelongTargetMissed", "precise", "clinic")
    rule = stage.get("/v1/admin/populations/precise@1/clinic/performance")["rule_metric"]
    assert (rule["metric"], rule["class_name"], rule["target"]) == ("PPV", "ill", 0.8)


def test_the_panels_of_decision_rules_get_data_of_their_shape(stage: Stage) -> None:
    """It needs the tests above, which give the population its history."""
    panels = [
        panel
        for panel in BOARDS["quality"]["panels"]
        if any("lifelong_decision_rule_" in target["expr"] for target in panel["targets"])
    ]
    assert len(panels) == 3
    variables = {"model": "precise@1", "environment": "clinic"}
    expect_data(stage.metrics, {"title": "rules", "panels": panels, "annotations": {}}, variables)
