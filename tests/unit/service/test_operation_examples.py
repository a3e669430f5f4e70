"""The example of each operation, sent over HTTP by the Python client; its answer stands in the description of the API.

A change of an answer is seen here: copy the file that the failure names to `lifelong_core/operations/examples.json`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong.client import Client
from lifelong.client_messages import request_of
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.design import start_interview
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.entities.entity import document_of
from lifelong_core.operations.operation import Call, Context, Operation, operations_of
from lifelong_core.store import (
    Cycle,
    LogEntry,
    NewLabel,
    Prediction,
    Store,
    new_prediction_id,
    promote_calibrated,
    register_calibration,
)
from lifelong_service.routes.operations import MODULES
from tests.unit.develop.training.results import make_result
from tests.unit.performance_samples import comparison
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import GREY, Installations, Service, running
from tests.unit.store.knowledge_samples import make_entry, make_histogram
from tests.unit.store.labelling_samples import new_plan, sample

OPERATIONS = [operation for module in MODULES for operation in operations_of(module)]
CLASSES = ("benign", "malignant")
PREDICTION = new_prediction_id()
FIXED = {
    r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00": "2026-01-01T12:00:00+00:00",
    r"\b[0-9a-f]{64}\b": 64 * "0",
    r"\bll_[\w-]{43}": "ll_" + 43 * "x",
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "0190b5a8-7c1e-7000-8000-3f6d9c1e2a4b",
}
LONGEST = 10_000
"""Characters of an answer that is kept whole."""
VARYING = {"host": "server-1", "process": 4711, "revision": 42, "worker": "worker-1"}


def labelled(seed: int) -> LabeledLogits:
    rng = np.random.default_rng(seed)
    labels = np.arange(200) % 2
    return LabeledLogits((2 * np.eye(2)[labels] + rng.normal(size=(200, 2))).astype(np.float32), labels)


def fill(store: Store) -> None:
    """A task with three versions of a model, and an environment with two heads of its own."""
    store.tasks.add("skin", CLASSES, [[0, 1], [5, 0]], actor="ann")
    graph = onnx_graphs.linear(classes=2)
    for version in (1, 2, 3):
        store.models.add("skin", "resnet", kind="onnx", onnx=graph, preprocessing=GREY, actor="ann")
        register_calibration(store, f"resnet@{version}", labelled(version), actor="ann")
    promote_calibrated(store, "resnet@2", actor="ann", force_reason="an example")
    store.environments.add("clinic-a", actor="ann")
    store.calibration_sets.add("resnet@2", labelled(4), actor="ann")
    head = store.heads.get("resnet@2", 1).head
    for _ in range(2):
        store.heads.publish("resnet@2", head, environment="clinic-a", actor="ann")
    model = store.models.get("resnet@2")
    store.performance.store(model.id, "clinic-a", comparison())
    missed = MissedThreshold("TPR", 1, 0.712, 0.65, 0.77, 0.8)
    for reason in ("estimated_performance", "realised_performance"):
        need = RetrainingNeed(reason, (missed,), datetime(2026, 1, 1, tzinfo=UTC), ("cycle-1", "cycle-2"))
        store.proposals.propose(model.id, "clinic-a", need)
    logged = Prediction(PREDICTION, model.id, "clinic-a", 2, 0, np.ones(2, np.float32), None)
    store.predictions.append([LogEntry((logged,))])
    store.labels.record([NewLabel(PREDICTION, 1, "pathology")], actor="ann")
    plan = new_plan([logged], environment="clinic-a", head_version=2)
    store.labelling_plans.add(plan, [sample(logged, 0)], actor="ann")
    for environment in ("clinic-c", "clinic-d"):
        store.environments.add(environment, actor="ann")
        propose(store, model.id, environment, head)
    for task in ("moles", "nevi"):
        store.knowledge.put(make_entry(task, sources=("skin",)), actor="ann")
    store.knowledge.put_fingerprint("moles", make_histogram(), actor="ann")
    store.trainings.record(
        "skin",
        "trained",
        onnx=graph,
        preprocessing=GREY,
        recipe=Recipe(),
        result=make_result(Recipe()).to_json().encode(),
        calibration=labelled(5),
        test_set=b"logits",
        job_id=new_prediction_id(),
        actor="ann",
    )
    store.evaluations.put(
        "resnet@2",
        result=b"{}",
        report=b"<h1>Report</h1>",
        labelled_set=LabelledSet(labelled(6)).to_bytes(),
        head=store.heads.get("resnet@2", 1).head.digest,
        recommendation_version=None,
        accepted=True,
        samples=200,
        actor="ann",
    )
    store.jobs.submit("cycle", {"model": "resnet@2", "environment": "clinic-a"}, actor="ann")
    store.interviews.start(start_interview(class_names=CLASSES), task="skin", actor="ann")


def propose(store: Store, model_id: int, environment: str, served: PostProcessingHead) -> None:
    """A cycle that a monitor records in mode propose: the serving head with another bias."""
    due_at = datetime(2026, 1, 1, tzinfo=UTC)
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=model_id,
        environment=environment,
        due_at=due_at,
        started_at=due_at,
        finished_at=due_at,
        outcome="swap",
        report={
            "schema_version": 2,
            "outcome": "swap",
            "reasons": [{"code": "gain_sufficient", "text": "It pays."}],
            "assumed_prevalence": [0.5, 0.5],
            "samples": 300,
        },
        window_samples=500,
        log_position=17,
        head_version=1,
        published_version=None,
    )
    candidate = replace(served, bias=served.bias + 1.0, provenance={"cycle": str(cycle.id)})
    store.cycles.finish(cycle, candidate=candidate, expected_sequence=0, mode="propose")


def with_ids(call: Call[Any], store: Store) -> Call[Any]:
    """The call with the ids of this store in place of made-up ones."""
    proposals = [*store.proposals.list(state="open"), *store.proposals.list()]
    cycles = [*store.cycles.proposals(), *store.cycles.list()]
    ids = {
        "job": store.jobs.list()[0].id,
        "proposal": str(proposals[0].id),
        "prediction": PREDICTION,
        "cycle": str(cycles[0].id),
        "plan": store.labelling_plans.list()[0].id,
        "interview": store.interviews.list()[0].id,
    }
    return call.model_copy(update={name: ids[name] for name in call.model_fields_set & ids.keys()})


@pytest.fixture(scope="module")
def filled(installations: Installations, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("examples")
    secrets = installations.copy_to(folder, is_registered=False)
    settings = Settings(data_directory=folder, registry_poll_seconds=0.02)
    with Store.from_settings(settings) as store:
        fill(store)
    with running(settings, secrets) as service:
        yield service


def plain(document: Any) -> Any:
    """A document without what differs from run to run."""
    if isinstance(document, dict):
        return {name: VARYING.get(name, plain(value)) for name, value in document.items()}
    if isinstance(document, list):
        return [plain(value) for value in document]
    if isinstance(document, float):
        return float(f"{document:.3g}")
    if isinstance(document, str):
        for pattern, text in FIXED.items():
            document = re.sub(pattern, text, document)
    return document


def stable(document: Any) -> Any:
    """A document without the checks of the doctor that depend on the machine."""
    if isinstance(document, dict) and "checks" in document:
        checks = [check for check in document["checks"] if check["check"] == "models"]
        return {"status": "ok", "checks": checks, "left_out": []}
    return document


def shortened(document: Any) -> Any:
    """A long document with the first entry of each list of objects."""
    if isinstance(document, dict):
        return {name: shortened(value) for name, value in document.items()}
    if isinstance(document, list):
        entries = document[:1] if document and isinstance(document[0], dict) else document
        return [shortened(value) for value in entries]
    return document


def test_examples_are_answered_as_the_description_says(filled: Service, tmp_path: Path) -> None:
    client = Client("http://test")
    client._client = filled.client  # answers are compared with the OpenAPI document
    answers: dict[str, Any] = {}
    for operation in OPERATIONS:
        answer = client.send(with_ids(operation.example, filled.store))
        document = stable(plain(document_of(answer, operation.answer)))
        is_long = len(json.dumps(document)) > LONGEST
        answers[operation.name] = shortened(document) if is_long else document
    found = tmp_path / "examples.json"
    found.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    source = OPERATIONS[0].carry_out.__code__.co_filename
    known = json.loads((Path(source).parent / "examples.json").read_text(encoding="utf-8"))
    assert answers == known, f"copy {found} to lifelong_core/operations/examples.json"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_operation_is_declared_as_http_expects_it(operation: Operation[Any]) -> None:
    sent = request_of(operation.example)
    assert "{" not in sent.path
    assert operation.description.endswith(".")
    assert set(operation.path_fields) <= set(operation.call.model_fields)
    assert operation.method != "GET" or not operation.has_body


def test_an_operation_says_the_same_in_the_store_and_over_http(filled: Service) -> None:
    client = Client("http://test")
    client._client = filled.client
    context = Context(filled.store, filled.settings, "ann", 1.0)
    for operation in OPERATIONS:
        if operation.method == "GET":
            call = with_ids(operation.example, filled.store)
            local = document_of(operation(context, call), operation.answer)
            remote = document_of(client.send(call), operation.answer)
            for answer in (local, remote):
                if operation.name == "list_affected":
                    del answer["figures"]["counted_at"]  # now
            assert stable(local) == stable(remote), operation.name
