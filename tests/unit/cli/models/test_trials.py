"""Trials on the command line: shadow, canary, promotion and roll-back of a model, without a running worker."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong_core.entities.cycles import Outcome
from lifelong_core.store import Cycle, LogEntry, NewLabel, Prediction, new_prediction_id, register_calibration
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.values.errors import LifelongError, NotFoundError
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import CLASS_NAMES, COSTS, GREY, calibration

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def run(installed: Callable[..., str]) -> Callable[..., str]:
    """The command line with the promoted model skin@1 and the calibrated skin@2."""
    with open_store() as store:
        store.tasks.add("skin", CLASS_NAMES, COSTS, actor="test")
        for factor in (1, 2):
            graph = onnx_graphs.scaled(factor)
            preprocessing = Preprocessing.model_validate(GREY)
            model = store.models.add(
                "skin", "skin", kind="onnx", onnx=graph, preprocessing=preprocessing, actor="test"
            )
            register_calibration(store, model.reference, calibration(), actor="test")
    return installed


def predict(label: int) -> UUID:
    """Log a prediction of skin@1 with that of its shadow and the true class."""
    served = new_prediction_id()
    with open_store() as store:
        store.environments.ensure("site-a", limit=9)
        for model_id, identity, decision in ((1, served, 0), (2, shadow_prediction_id(served), label)):
            logits = np.array([1, 2, 3], np.float32)
            store.predictions.append(
                [LogEntry((Prediction(identity, model_id, "site-a", 1, decision, logits),))]
            )
        store.labels.record([NewLabel(served, label)])
    return served


def judge(model_id: int, outcome: Outcome = "keep") -> None:
    """Record a cycle in mode shadow that estimates a prevalence."""
    estimate = {"prevalence": [0.2, 0.3, 0.5], "low": [0.1, 0.2, 0.4], "high": [0.3, 0.4, 0.6]}
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=model_id,
        environment="site-a",
        due_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        outcome=outcome,
        report={"prevalence": estimate},
        window_samples=500,
        log_position=1,
        head_version=1,
        published_version=None,
    )
    with open_store() as store:
        candidate = store.heads.get("skin@1", 1).head if outcome == "swap" else None
        store.cycles.finish(cycle, candidate=candidate, expected_sequence=None, mode="shadow")


def test_a_model_is_tried_promoted_and_rolled_back(run: Callable[..., str]) -> None:
    assert "No model of skin is on trial" in run("models", "trial", "skin")
    assert run("models", "trial", "skin", "--json").strip() == "[]"
    assert "no worker is running" in run("models", "shadow", "skin@2")
    assert "as a shadow since" in run("models", "trial", "skin")
    assert "No cycle or label" in run("models", "trial", "skin")
    predict(2)
    judge(2)
    found = json.loads(run("models", "trial", "skin", "--json"))
    assert [(row["model"], row["role"], row["labelled"], row["accuracy"]) for row in found] == [
        ("skin@1", "promoted", 1, 0.0),
        ("skin@2", "shadow", 1, 1.0),
    ]
    assert [row["expected_cost"] for row in found] == [5.0, 0.0]
    assert found[1]["prevalence"].startswith("benign 0.200 (0.100 to 0.300), unclear 0.300")
    assert found[0]["prevalence"] is None
    run("models", "canary", "skin@2", "--share", "0.25")
    assert "as a canary with the share 0.25 since" in run("models", "trial", "skin")
    with pytest.raises(LifelongError, match="canary"):
        run("models", "rollback", "skin")
    run("models", "promote", "skin@2")
    assert "skin@1 is promoted" in run("models", "rollback", "skin", "--expected-sequence", "2")
    history = json.loads(run("models", "promotions", "skin", "--json"))
    assert [(row["sequence"], row["model"], row["reason"]) for row in history] == [
        (3, "skin@1", "rollback"),
        (2, "skin@2", "promote"),
        (1, "skin@1", "first"),
    ]


def test_a_cycle_that_published_nothing_is_no_swap(run: Callable[..., str]) -> None:
    run("models", "shadow", "skin@2")
    predict(2)
    judge(1, "swap")
    found = json.loads(run("models", "trial", "skin", "--json"))
    assert [row["cycle"] for row in found] == ["would swap", None]


def test_a_promotion_tells_for_which_environments_heads_were_fitted(run: Callable[..., str]) -> None:
    with open_store() as store:
        head = store.heads.get("skin@1", 1).head
        for environment in ("site-b", "site-a"):
            store.heads.publish("skin@1", head, environment=environment, actor="test")
    assert "Fitted heads for: site-a, site-b." in run("models", "promote", "skin@2")
    assert "Fitted heads" not in run("models", "promote", "skin@1")


def test_a_trial_is_ended(run: Callable[..., str]) -> None:
    run("models", "shadow", "skin@2")
    assert run("models", "trial", "skin", "--end").strip() == "Ended the trial of skin@2."
    with pytest.raises(NotFoundError, match="on trial"):
        run("models", "trial", "skin", "--end")


def test_a_share_is_above_zero_and_at_most_one(run: Callable[..., str]) -> None:
    for share in ("0", "1.5", "half"):
        run("models", "canary", "skin@2", "--share", share, status=2)
