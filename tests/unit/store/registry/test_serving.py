"""The reported serving state is that of the workers."""

import threading
from datetime import UTC, datetime

from lifelong_core.store import ModelLoad, Store, describe_serving, register_calibration, serving_state
from lifelong_core.values.preprocessing import Preprocessing
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration

LOADED = ModelLoad("CPUExecutionProvider", None)
FAILED = ModelLoad(None, "the graph needs m.onnx.data.")


def add_graph(store: Store, *, head: bool = True) -> int:
    """The next version of the model net, with a head; its first one is promoted."""
    if "lesions" not in {task.name for task in store.tasks.list()}:
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    model = store.models.add(
        "lesions", "net", kind="onnx", onnx=b"graph", preprocessing=Preprocessing(), actor="tests"
    )
    if head:
        register_calibration(store, model.reference, calibration(), actor="tests")
    return model.id


def report(store: Store, worker: str, heads: dict[int, int], loads: dict[int, ModelLoad]) -> None:
    store.workers.record_heartbeat(
        worker,
        host="ward",
        process=7,
        started_at=datetime.now(UTC),
        revision=store.revision(),
        heads={(model, None): version for model, version in heads.items()},
        models=loads,
    )


@sqlite_only
def test_a_model_without_a_head_is_not_served(store: Store):
    add_graph(store, head=False)
    assert "net@1 is not served: it has no head" in describe_serving(store, "net@1")
    assert "lifelong calibrate net@1" in describe_serving(store, "net@1")


@sqlite_only
def test_nothing_is_served_without_a_worker(store: Store):
    add_graph(store)
    assert describe_serving(store, "net@1") == (
        "net@1 is promoted; no worker is running: start one with `lifelong serve`."
    )


def test_a_model_is_served_when_every_worker_runs_it(store: Store):
    model = add_graph(store)
    report(store, "one", {model: 1}, {model: LOADED})
    report(store, "two", {model: 1}, {})
    assert "1 of 2 workers run it so far" in describe_serving(store, "net@1")
    assert not serving_state(store, "net@1").is_settled
    report(store, "two", {model: 1}, {model: LOADED})
    assert describe_serving(store, "net@1") == (
        "net@1 is served now: it is promoted and run by 2 of 2 workers."
    )


@sqlite_only
def test_a_worker_that_cannot_load_it_is_named_with_the_reason(store: Store):
    model = add_graph(store)
    report(store, "one", {model: 1}, {model: LOADED})
    report(store, "two", {model: 1}, {model: FAILED})
    assert describe_serving(store, "net@1") == (
        "net@1 is promoted, but 1 of 2 workers cannot load it (worker 7 on ward: the graph needs m.onnx.data)."
    )
    assert serving_state(store, "net@1").is_settled


@sqlite_only
def test_the_version_that_stays_promoted_is_named(store: Store):
    first, second = add_graph(store), add_graph(store)
    report(store, "one", {first: 1, second: 1}, {first: LOADED, second: LOADED})
    assert describe_serving(store, "net@2") == (
        "net@1 stays promoted; net@2 answers only requests that name it. It is run by 1 of 1 worker."
        " To promote it: `lifelong models promote net@2`."
    )


@sqlite_only
def test_a_worker_with_an_older_head_does_not_serve_the_present_one(store: Store):
    model, record = add_serving_model(store)
    report(store, "one", {model.id: record.version}, {})
    assert "served now" in describe_serving(store, model.reference)
    register_calibration(store, model.reference, calibration(1), actor="tests")
    assert "0 of 1 worker run it so far" in describe_serving(store, model.reference)


@sqlite_only
def test_an_external_model_needs_no_graph_and_an_uncalibrated_one_a_head(store: Store):
    model = add_model(store)
    assert "has no head" in describe_serving(store, model.reference)


@sqlite_only
def test_it_waits_until_all_workers_have_answered(store: Store):
    model = add_graph(store)
    report(store, "one", {model: 1}, {})
    later = threading.Timer(0.2, report, (store, "one", {model: 1}, {model: LOADED}))
    later.start()
    serving = serving_state(store, "net@1", patience_seconds=30)
    later.join()
    assert serving.is_settled
    assert serving.ready == ("7 on ward",)
