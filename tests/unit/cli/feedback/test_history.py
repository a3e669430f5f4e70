"""`lifelong feedback history`."""

import json
from collections.abc import Callable
from uuid import uuid4

import pytest

from lifelong.commands.common import open_store
from lifelong_core.store import LogEntry, NewLabel
from lifelong_core.values.errors import NotFoundError
from tests.unit.store.samples import add_serving_model, prediction


def test_every_change_is_listed_with_its_actor(installed: Callable[..., str]) -> None:
    with open_store() as store:
        model, _ = add_serving_model(store)
        row = prediction(model.id)
        store.predictions.append([LogEntry((row,))])
        before = installed("feedback", "history", str(row.id))
        store.labels.record([NewLabel(row.id, 1, "pathology")], actor="lis")
        store.labels.record([NewLabel(row.id, 2, propensity=0.5)], actor="dr-b")
    assert before == "The prediction has no label.\n"
    header, first, second = installed("feedback", "history", str(row.id)).splitlines()
    assert header.split() == ["revision", "recorded", "at", "from", "to", "propensity", "source", "actor"]
    assert first.split()[-3:] == ["benign", "pathology", "lis"]
    assert second.split()[-4:] == ["benign", "malignant", "0.5", "dr-b"]
    document = json.loads(installed("feedback", "history", str(row.id), "--json"))
    assert [one["name"] for one in document["revisions"]] == ["benign", "malignant"]
    assert document["model"] == model.reference


def test_an_unknown_prediction_is_not_found(installed: Callable[..., str]) -> None:
    with pytest.raises(NotFoundError):
        installed("feedback", "history", str(uuid4()))
