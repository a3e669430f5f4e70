"""What a report tells of models: training data and their distance, size and time."""

from typing import Any

import pytest

from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.develop.fingerprints.distances.registry import distance
from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.store import Model, Store
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds.model_facts import cost_on_grey, data_distance, trained_on
from tests.unit.develop.training.results import make_result
from tests.unit.monitor.population import BALANCED, draw
from tests.unit.service import onnx_graphs

RECIPE = Recipe(architecture="resnet18")
GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.5], "standard_deviation": [0.5]})


def trained(store: Store, data: str, fingerprint: str | None = None) -> Model:
    """A model that was trained on data with this digest, by a job that named this fingerprint."""
    job = store.jobs.submit("retrain", {}, actor="tests")
    claimed = store.jobs.claim("tests", lease_seconds=60, kinds=("retrain",))
    assert claimed is not None
    store.jobs.succeed(claimed, {"fingerprint": fingerprint})
    result = make_result(RECIPE).model_copy(update={"data": data})
    return store.trainings.record(
        "lesions",
        "trained",
        onnx=onnx_graphs.scaled(1),
        preprocessing=GREY,
        recipe=RECIPE,
        result=result.to_json().encode(),
        calibration=draw(BALANCED, 60, seed=1),
        test_set=LabelledSet(draw(BALANCED, 30, seed=2)).to_bytes(),
        job_id=job.id,
        actor="tests",
    )


def kept(store: Store, task: str, *keywords: str) -> tuple[KeywordFingerprint, str]:
    """A fingerprint that is kept, and its digest."""
    made = KeywordFingerprint(keywords)
    if task not in {one.name for one in store.tasks.list()}:
        store.tasks.add(task, ("a", "b"), [[0, 1], [1, 0]], actor="tests")
    return made, store.knowledge.put_fingerprint(task, made, actor="tests").digest


def test_the_data_of_a_model_are_known_where_it_was_trained_here(store: Store, model: Model) -> None:
    assert trained_on(store, trained(store, "1" * 64)) == "1" * 64
    assert trained_on(store, model) is None


def test_the_distance_is_that_of_the_fingerprints_of_both_trainings(store: Store, model: Model) -> None:
    one, other = kept(store, "lesions", "skin", "lesion"), kept(store, "other", "skin", "mole")
    new, current = trained(store, "1" * 64, one[1]), trained(store, "2" * 64, other[1])
    found = data_distance(store, new, current)
    assert found.distance == pytest.approx(distance(other[0], one[0]))
    assert (found.method, found.reason) == ("Manual", None)


def test_equal_data_have_no_distance(store: Store, model: Model) -> None:
    found = data_distance(store, trained(store, "1" * 64), trained(store, "1" * 64))
    assert found.distance == 0


def test_what_cannot_be_compared_says_why(store: Store, model: Model) -> None:
    assert data_distance(store, model, model) is None
    new, current = (
        trained(store, "1" * 64, kept(store, "lesions", "skin")[1]),
        trained(store, "2" * 64, "0" * 64),
    )
    cases: list[tuple[Any, Any, str]] = [
        (new, current, f"of {current.reference} is not kept"),
        (current, new, f"of {current.reference} is not kept"),
        (new, model, f"{model.reference} was not trained here"),
        (model, new, f"{model.reference} was not trained here"),
    ]
    for one, other, text in cases:
        found = data_distance(store, one, other)
        assert found.distance is None
        assert text in (found.reason or "")


def test_a_stored_graph_has_a_size(store: Store, model: Model) -> None:
    made = trained(store, "1" * 64)
    graph = store.artifacts.get(made.artifact or "")
    found = cost_on_grey(store, made)
    assert found.graph_bytes == len(graph)
    assert cost_on_grey(store, model) is None
