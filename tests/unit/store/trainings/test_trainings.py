"""Trained models: registered once with their training, and removed with it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import ConflictError, NotFoundError, UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, calibration

RECIPE = Recipe(architecture="resnet18", seed=3)


@pytest.fixture(autouse=True)
def task(store: Store) -> None:
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")


def record(store: Store, job_id: UUID | None = None, **changes: Any) -> Model:
    given: dict[str, Any] = {
        "onnx": b"graph",
        "preprocessing": Preprocessing(),
        "recipe": RECIPE,
        "result": b"result",
        "calibration": calibration(),
        "test_set": b"test set",
        "job_id": uuid4() if job_id is None else job_id,
        "actor": "ann",
    }
    return store.trainings.record("lesions", "net", **given | changes)


def is_kept(store: Store, digest: str | None) -> bool:
    return digest is not None and store.artifacts.has(digest)


def test_a_model_is_registered_with_its_training(store: Store) -> None:
    job_id = uuid4()
    model = record(store, job_id)
    training = store.trainings.get("net@1")
    assert training == store.trainings.of_job(job_id)
    assert (training.model_id, training.job_id, training.recipe) == (model.id, job_id, RECIPE)
    assert store.artifacts.get(training.result) == b"result"
    assert store.artifacts.get(training.test_set) == b"test set"
    assert store.artifacts.get(model.artifact or "") == b"graph"
    assert (training.report, training.report_page) == (None, None)
    assert model.calibration_set_id is not None
    assert store.calibration_sets.load(model.calibration_set_id) == calibration()
    assert [entry.action for entry in store.audit.list(limit=3)] == [
        "trainings.add",
        "calibration_sets.add",
        "models.add",
    ]


@sqlite_only
def test_a_job_that_begins_anew_registers_no_second_model(store: Store) -> None:
    job_id = uuid4()
    first = record(store, job_id)
    assert record(store, job_id, onnx=b"the same training, another graph") == first
    assert [model.reference for model in store.models.list()] == ["net@1"]
    assert record(store).reference == "net@2"
    assert [one.model_id for one in store.trainings.list(1)] == [first.id + 1]


@sqlite_only
def test_a_report_replaces_the_one_before(store: Store) -> None:
    record(store)
    bare = store.trainings.get("net@1")
    first = store.trainings.put_report(
        "net@1", test_set=b"paired", report=b"report", page=b"page", actor="ann"
    )
    again = store.trainings.put_report(
        "net@1", test_set=b"paired", report=b"report 2", page=b"page", actor="ann"
    )
    assert again == store.trainings.get("net@1")
    assert store.artifacts.get(again.report or "") == b"report 2"
    assert is_kept(store, again.report_page)
    assert not is_kept(store, first.report)
    assert not is_kept(store, bare.test_set)
    assert is_kept(store, again.test_set)
    assert again.report_page == first.report_page


@sqlite_only
def test_a_removed_model_takes_its_training_along(store: Store) -> None:
    record(store)
    record(store, result=b"another result", test_set=b"another set")
    training = store.trainings.put_report(
        "net@1", test_set=b"paired", report=b"report", page=b"page", actor="ann"
    )
    other = store.trainings.get("net@2")
    store.remove_model("net@1", actor="ann")
    assert store.trainings.of_job(training.job_id) is None
    assert not any(is_kept(store, digest) for digest in training.artifacts)
    assert all(is_kept(store, digest) for digest in other.artifacts)


@sqlite_only
def test_the_deletion_of_an_expired_job_leaves_the_training_whole(store: Store) -> None:
    store.jobs.submit("retrain", {}, actor="ann")
    job = store.jobs.claim("tests", lease_seconds=60)
    assert job is not None
    record(store, job.id)
    training = store.trainings.get("net@1")
    store.jobs.succeed(job, {"result": training.result})
    assert store.jobs.delete_expired(1, datetime.now(UTC).date() + timedelta(days=3)) == 1
    assert is_kept(store, training.result)


@sqlite_only
def test_what_does_not_fit_is_refused(store: Store) -> None:
    add_model(store, "taken", task="lesions")
    store.tasks.add("others", CLASSES, COSTS, actor="tests")
    given: dict[str, Any] = {
        "onnx": b"graph",
        "preprocessing": Preprocessing(),
        "recipe": RECIPE,
        "result": b"result",
        "calibration": calibration(),
        "test_set": b"test set",
        "job_id": uuid4(),
        "actor": "ann",
    }
    with pytest.raises(ConflictError, match="another task"):
        store.trainings.record("others", "taken", **given)
    with pytest.raises(NotFoundError):
        store.trainings.record("nothing", "net", **given)
    with pytest.raises(NotFoundError, match="not trained here"):
        store.trainings.get("taken@1")
    with pytest.raises(NotFoundError, match="not trained here"):
        store.trainings.put_report("taken", test_set=b"", report=b"", page=b"", actor="ann")
    assert store.trainings.of_job(given["job_id"]) is None


def test_a_damaged_recipe_is_named(store: Store) -> None:
    record(store)
    damaged = replace(store.trainings.get("net@1"), recipe_document='{"epochs": 1}')
    with pytest.raises(UnavailableError, match="the recipe of the model"):
        _ = damaged.recipe
