"""`lifelong predictions` and `lifelong heads diff`."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong_core.store import LogEntry, NewLabel, Prediction, new_prediction_id, register_calibration
from lifelong_core.values.errors import InvalidInputError
from tests.unit.service.conftest import CLASS_NAMES, COSTS, calibration


@pytest.fixture
def run(installed: Callable[..., str]) -> Callable[..., str]:
    """Runs one command line where four predictions were logged and a second head came in force."""
    with open_store() as store:
        store.tasks.add("skin", CLASS_NAMES, COSTS, actor="ann")
        model = store.models.add("skin", "net", kind="external", actor="ann")
        head = register_calibration(store, "net", calibration(), actor="ann").head
        store.environments.ensure("clinic", limit=9)
        logits = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.5]], np.float32)
        decided = head.apply(logits).decisions.tolist()
        for row, decision in zip(logits, decided, strict=True):
            one = Prediction(new_prediction_id(), model.id, "clinic", 1, decision, row)
            store.predictions.append([LogEntry((one,))])
        store.labels.record([NewLabel(one.id, 2, "lab")], actor="ann")
        other = replace(head, bias=[-9.0, 0.0, 9.0], assumed_prevalence=[0.1, 0.1, 0.8])
        store.heads.publish("net", other, environment="clinic", actor="ann")
    return installed


def test_predictions_are_listed_and_explained(run: Callable[..., str]) -> None:
    rows = json.loads(run("predictions", "list", "--environment", "clinic", "--json"))
    assert len(rows) == 4
    assert (rows[0]["true"], rows[1]["true"], rows[1]["decision"]) == ("malignant", "", "malignant")
    benign = json.loads(run("predictions", "list", "--decision", "benign", "--json"))
    assert [row["decision"] for row in benign] == ["benign"]
    assert run("predictions", "list", "--since", "2999-01-01T00:00Z") == "No prediction found.\n"
    shown = run("predictions", "show", benign[0]["prediction"])
    assert "benign, by head 1 of net@1 in clinic" in shown
    assert "head in force: 2, assumes 80 % malignant" in shown
    assert shown.count("decision: malignant") == 1
    with pytest.raises(InvalidInputError, match="since"):
        run("predictions", "list", "--since", "yesterday")


def test_the_difference_of_two_heads_names_decisions_that_change(run: Callable[..., str]) -> None:
    text = run("heads", "diff", "net", "1", "2", "--environment", "clinic")
    for part in (
        "Head 2 assumes 80 % malignant",
        "It assumes 80 % malignant instead of 33.3 %",
        "assumed prevalence of malignant: 0.3333 -> 0.8",
        "of the newest 4 decisions in clinic change.",
        "benign -> malignant",
    ):
        assert part in text
    assert "Both compute the same." in run("heads", "diff", "net", "2", "2")
