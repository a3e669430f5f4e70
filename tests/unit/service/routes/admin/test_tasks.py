"""The decision rule of a task over HTTP, and the served decisions that follow it."""

from typing import Any

import numpy as np

from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import register_calibration
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.service.routes.admin.test_admin import eventually
from tests.unit.service.routes.test_operations import error_of
from tests.unit.store.design_samples import SCREENING, binary_recommendation

TASK = {"name": "screening", "classes": ["benign", "malignant"], "costs": [[0, 1], [1, 0]]}
RULE = {"kind": "target_value", "metric": "TPR", "value": 0.9, "positive_class": 1}


def add(service: Service, **more: Any) -> Any:
    return service.client.post("/v1/admin/tasks", json={**TASK, **more})


def test_a_task_without_a_rule_decides_for_the_least_expected_cost(service: Service) -> None:
    task = add(service).json()
    assert (task["decision_rule"], task["decision_rule_text"]) == ({"kind": "bayes"}, "least expected cost")


def test_decisions_follow_the_rule_of_the_task(service: Service) -> None:
    answer = add(service, decision_rule=RULE)
    assert answer.status_code == 201, answer.text
    assert answer.json()["decision_rule"] == RULE
    phrase = "sensitivity of malignant at least 0.9, then the best specificity"
    assert answer.json()["decision_rule_text"] == phrase
    assert service.client.get("/v1/admin/tasks").json()["tasks"][-1] == answer.json()
    rng = np.random.default_rng(0)
    labels = (np.arange(600) % 10 == 0).astype(np.int64)
    logits = (2 * np.eye(2)[labels] + rng.normal(size=(600, 2))).astype(np.float32)
    service.store.models.add("screening", "skin", kind="external", actor="test")
    register_calibration(service.store, "skin", LabeledLogits(logits, labels), actor="test")
    (shown,) = service.client.get("/v1/admin/models/skin/heads").json()["heads"]
    assert shown["head"]["decision_rule"] == RULE
    assert 0 < shown["head"]["cut_off"] < 0.5
    assert shown["decision_rule_text"] == f"{phrase} (cut-off {shown['head']['cut_off']:.3g})"
    expected = shown["head"]["provenance"]["expected_criterion"]
    assert expected["low"] <= 0.9 <= expected["high"]
    assert shown["expected_criterion_text"].startswith(f"sensitivity of malignant {expected['value']:.2f} (")
    console = Console(service)
    page = console.get("/console/tasks/screening").text
    assert f"Heads are fitted for this rule: {phrase}." in page
    assert shown["expected_criterion_text"][1:] in page
    assert "not as the task" not in page
    body = {"model": "skin", "logits": logits[:200].tolist()}
    eventually(lambda: service.client.post("/v1/logits", json=body).status_code == 200)
    found = service.client.post("/v1/logits", json=body).json()["predictions"]
    decided = np.array([one["decision"] for one in found])
    risk = np.array([one["probabilities"][1] for one in found])
    assert (decided == (risk >= shown["head"]["cut_off"])).all()
    assert (decided != (risk > 0.5)).any(), "the rule matters here"
    assert decided[labels[:200] == 1].mean() >= 0.8
    service.store.recommendations.attach("screening", binary_recommendation(SCREENING), actor="test")
    assert "not as the task" in console.get("/console/tasks/screening").text


def test_a_rule_that_does_not_fit_is_named(service: Service) -> None:
    for rule, field in (
        ({"kind": "majority"}, "decision_rule.kind"),
        ({**RULE, "value": 1.5}, "decision_rule.value"),
        ({**RULE, "metric": "LR+"}, "decision_rule.metric"),
        ({**RULE, "positive_class": 2}, "decision_rule.positive_class"),
        ({**RULE, "threshold": 1}, "decision_rule.threshold"),
        ({"kind": "cut_offs", "thresholds": [0.1, 0.2, 0.3]}, "decision_rule.thresholds"),
        ("argmax", "decision_rule"),
    ):
        refused = add(service, decision_rule=rule)
        assert (refused.status_code, error_of(refused)["field"]) == (422, field)
        assert [task.name for task in service.store.tasks.list()] == ["skin"]
