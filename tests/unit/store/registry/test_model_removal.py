"""An unused model is removed with everything that belongs to it alone; its version is never used again."""

from collections.abc import Callable

import pytest

from lifelong_core.store import Model, Store, promote_calibrated, register_calibration
from lifelong_core.values.errors import ConflictError, NotFoundError
from lifelong_core.values.preprocessing import Preprocessing
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, calibration, cycle, entry, head


def add(store: Store, *, graph: bytes = b"graph", seed: int | None = None) -> Model:
    """The next version of the model net; with a seed it is calibrated."""
    if "lesions" not in {task.name for task in store.tasks.list()}:
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    model = store.models.add(
        "lesions", "net", kind="onnx", onnx=graph, preprocessing=Preprocessing(), actor="tests"
    )
    if seed is not None:
        register_calibration(store, model.reference, calibration(seed), actor="tests")
    return store.models.get(model.reference)


def test_all_that_belongs_to_it_alone_goes_with_it(store: Store):
    kept, removed = add(store, seed=0), add(store, graph=b"other", seed=1)
    (labelled,) = store.calibration_sets.list("net@2")
    revision = store.revision()
    assert store.remove_model("net@2", actor="ann") == removed
    assert store.revision() == revision + 1
    assert [model.reference for model in store.models.list()] == ["net@1"]
    registry = store.registry()
    assert registry is not None
    assert set(registry.models) == {kept.id}
    assert {model_id for model_id, _ in registry.heads} == {kept.id}
    for digest in (removed.artifact, labelled.digest):
        with pytest.raises(NotFoundError):
            store.artifacts.get(digest or "")
    assert store.artifacts.get(kept.artifact or "") == b"graph"
    newest = store.audit.list(limit=1)[0]
    assert (newest.action, newest.subject, newest.actor) == ("models.remove", "net@2", "ann")
    with pytest.raises(NotFoundError):
        store.remove_model("net@2", actor="ann")


@sqlite_only
def test_what_another_model_uses_too_stays(store: Store):
    kept = add(store, seed=0)
    add(store, seed=0)
    store.remove_model("net@2", actor="tests")
    assert store.artifacts.get(kept.artifact or "") == b"graph"
    assert store.calibration_sets.load(kept.calibration_set_id or 0).samples == 120


@sqlite_only
def test_neither_its_id_nor_its_version_is_used_again(store: Store):
    add(store, seed=0)
    removed = add(store)
    store.remove_model(removed.reference, actor="tests")
    again = add(store)
    assert again.version == removed.version + 1
    assert again.id != removed.id
    assert store.artifacts.get(again.artifact or "") == b"graph"


def promoted(store: Store, model: Model) -> None:
    promote_calibrated(store, model.reference, actor="tests")


def logged(store: Store, model: Model) -> None:
    store.predictions.append([entry(model_id=model.id)])


def in_force_somewhere(store: Store, model: Model) -> None:
    store.environments.ensure("site-a", limit=9)
    store.heads.publish(model.reference, head(), environment="site-a", actor="tests")


def watched(store: Store, model: Model) -> None:
    store.cycles.finish(cycle(model), candidate=None, expected_sequence=None)


def waited_for(store: Store, model: Model) -> None:
    store.jobs.submit("validate", {"model": model.reference}, actor="tests")


@sqlite_only
@pytest.mark.parametrize(
    ("use", "says"),
    [
        (promoted, "the task lesions serves it"),
        (logged, "predictions of it are logged"),
        (in_force_somewhere, "in force in site-a"),
        (watched, "cycles of it"),
        (waited_for, "the job .* needs it"),
    ],
)
def test_a_model_that_is_used_stays(store: Store, use: Callable[[Store, Model], None], says: str):
    add(store, seed=0)
    model = add(store, seed=1)
    use(store, model)
    before = store.revision()
    with pytest.raises(ConflictError, match=says):
        store.remove_model("net@2", actor="tests")
    assert store.revision() == before
    assert store.artifacts.get(model.artifact or "") == b"graph"
    assert store.models.get("net@2").calibration_set_id is not None
