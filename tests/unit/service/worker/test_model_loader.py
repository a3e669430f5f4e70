"""Models that cannot be loaded are reported and not promoted; loaded graphs, and models without a head."""

import json
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import sqlalchemy as sa
from onnx import TensorProto

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store, promote_calibrated, register_calibration
from lifelong_core.store.registry.registry import bump_revision
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import LifelongError
from lifelong_service.worker.model_loader import GraphLoader
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import GREY, Service, calibration, png
from tests.unit.service.routes.test_operations import error_of
from tests.unit.service.waiting import eventually


def test_a_model_that_cannot_be_loaded_takes_nobody_down(
    registered: None, serve: Callable[..., Service], settings: Settings
) -> None:
    first = serve()
    artifact = first.store.models.get("table").artifact
    assert artifact is not None
    first.store.artifacts.path(artifact).unlink()
    service = serve()
    ready = service.client.get("/readyz").json()
    assert ready["ready"] is True
    assert list(ready["failed_models"]) == ["table@1"]
    assert any("table@1 cannot be loaded" in problem for problem in ready["degraded"])
    assert ready["execution_providers"]["linear@1"] == "CPUExecutionProvider"
    text = service.client.get("/metrics").text
    assert "lifelong_failed_models 1.0" in text
    assert 'lifelong_execution_provider{model="linear@1",provider="CPUExecutionProvider"} 1.0' in text
    assert service.client.post("/v1/predict", content=png()).status_code == 200
    answer = service.client.post("/v1/predict?model=table", content=png())
    assert answer.status_code == 503
    assert error_of(answer)["field"] == "model"


def test_a_worker_that_cannot_load_the_only_promoted_model_is_not_ready(
    registered: None, serve: Callable[..., Service], store: Store
) -> None:
    artifact = store.models.get("linear").artifact
    assert artifact is not None
    store.artifacts.path(artifact).unlink()
    service = serve()
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert "the promoted model linear@1 cannot be loaded" in answer.json()["reasons"][0]
    predicted = service.client.post("/v1/predict", content=png())
    assert predicted.status_code == 503
    assert "cannot be loaded" in error_of(predicted)["message"]
    assert "being loaded" not in predicted.text


def test_promoting_what_no_worker_can_load_is_refused_with_the_reason(
    registered: None, serve: Callable[..., Service], store: Store
) -> None:
    artifact = store.models.get("table").artifact
    assert artifact is not None
    store.artifacts.path(artifact).unlink()
    service = serve()
    eventually(lambda: store.workers.list() and store.workers.list()[0].models)
    answer = service.client.post("/v1/admin/models/table/promote")
    assert answer.status_code == 409
    assert "1 of 1 workers cannot load the model table@1" in error_of(answer)["message"]
    assert "is not in" in error_of(answer)["message"]
    body = {"logits": calibration().logits.tolist(), "labels": calibration().labels.tolist()}
    answer = service.client.post("/v1/admin/models/table/calibration-sets", json=body)
    assert (answer.status_code, error_of(answer)["field"]) == (409, "model")
    assert service.client.get("/v1/admin/models/linear").json()["promoted"] is True
    promoted = service.client.post("/v1/admin/models/nan/promote").json()
    assert promoted["serving"] == "nan@1 is served now: it is promoted and run by 1 of 1 worker."


def test_promoting_a_model_that_only_the_memory_of_workers_holds_is_refused(service: Service) -> None:
    eventually(lambda: service.store.workers.list()[0].models)
    artifact = service.store.models.get("table").artifact
    assert artifact is not None
    service.store.artifacts.path(artifact).unlink()
    answer = service.client.post("/v1/admin/models/table/promote")
    assert answer.status_code == 409, answer.text
    assert artifact in error_of(answer)["message"]
    assert "backup" in error_of(answer)["hint"]
    assert service.client.get("/v1/admin/models/linear").json()["promoted"] is True


def test_a_model_that_was_never_calibrated_says_so_instead_of_try_again(service: Service) -> None:
    service.store.models.add(
        "skin", "raw", kind="onnx", onnx=onnx_graphs.linear(), preprocessing=GREY, actor="test"
    )
    service.store.models.add("skin", "elsewhere", kind="external", actor="test")
    some = {"logits": [[1, 2, 3]], "model": "elsewhere"}  # a worker that knows the last one knows both
    eventually(lambda: service.client.post("/v1/logits", json=some).status_code != 404)
    image = service.client.post("/v1/predict?model=raw", content=png())
    logits = service.client.post("/v1/logits", json=some)
    for answer, name in ((image, "raw@1"), (logits, "elsewhere@1")):
        assert answer.status_code == 409
        assert f"{name} has no calibration set" in error_of(answer)["message"]
        assert f"lifelong calibrate {name}" in error_of(answer)["hint"]
        assert "Retry-After" not in answer.headers


@pytest.mark.parametrize(("rank", "element"), [(1, TensorProto.FLOAT), (2, TensorProto.UINT8)])
def test_a_graph_with_one_logit_or_bytes_serves_a_task_of_two_classes(
    serve: Callable[..., Service], rank: int, element: int
) -> None:
    service = serve()
    client = service.client
    client.post("/v1/admin/tasks", json={"name": "two", "classes": ["no", "yes"], "costs": [[0, 1], [1, 0]]})
    plain = {"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]}
    document = json.dumps({"task": "two", "name": "single", "preprocessing": plain})
    graph = onnx_graphs.one_logit(rank=rank, element=element)
    added = client.post("/v1/admin/models", data={"document": document}, files={"onnx": graph})
    assert added.status_code == 201, added.text
    labels = [0, 1] * 30
    noise = np.random.default_rng(0).normal(size=60)
    body = {
        "logits": [[0, 2 * label - 1 + z] for label, z in zip(labels, noise, strict=True)],
        "labels": labels,
    }
    assert client.post("/v1/admin/models/single/calibration-sets", json=body).status_code == 201
    eventually(lambda: client.post("/v1/predict", content=png()).status_code == 200)
    dark, light = (client.post("/v1/predict", content=png(value)).json() for value in (0, 255))
    assert dark["probabilities"]["yes"] < 0.5 < light["probabilities"]["yes"]
    logged = service.store.predictions.read_since(None, limit=10)[0][-1]
    assert logged.logits.tolist() == [0, 127.5 if element == TensorProto.UINT8 else 0.5]


def test_a_promoted_model_that_cannot_be_loaded_leaves_the_old_one_in_place(service: Service) -> None:
    broken = service.store.models.add(
        "skin", "broken", kind="onnx", onnx=b"no", preprocessing=GREY, actor="test"
    )
    register_calibration(service.store, broken.reference, calibration(), actor="test")
    promote_calibrated(service.store, broken.reference, actor="test")
    eventually(lambda: "broken@1" in service.client.get("/readyz").json()["failed_models"])
    assert service.client.post("/v1/predict", content=png()).json()["model"] == "linear"
    assert service.client.post("/v1/predict?model=broken", content=png()).status_code == 503


def test_a_removed_model_goes_from_every_worker_and_one_in_use_stays(service: Service) -> None:
    client = service.client
    refused = client.request("DELETE", "/v1/admin/models/linear@1")
    assert (refused.status_code, error_of(refused)["field"]) == (409, "model")
    assert "the task skin serves it" in error_of(refused)["message"]
    assert client.request("DELETE", "/v1/admin/models/table").status_code == 422
    assert client.request("DELETE", "/v1/admin/models/table@7").status_code == 404
    denied = client.request("DELETE", "/v1/admin/models/table@1", headers=service.header("operate"))
    assert denied.status_code == 403
    assert "table@1" in client.get("/readyz").json()["execution_providers"]
    answer = client.request("DELETE", "/v1/admin/models/table@1")
    assert (answer.status_code, answer.json()) == (200, {"removed": "table@1"})
    eventually(lambda: "table@1" not in client.get("/readyz").json()["execution_providers"])
    assert client.post("/v1/predict?model=table", content=png()).status_code == 404
    assert client.get("/v1/admin/audit?limit=1").json()["audit"][0]["action"] == "models.remove"
    provider = 'lifelong_execution_provider{model="table@1",provider="CPUExecutionProvider"} 0.0'
    assert provider in client.get("/metrics").text


def test_a_promoted_model_without_a_head_is_told_of_everywhere(service: Service) -> None:
    assert "lifelong_models_without_head 0.0" in service.client.get("/metrics").text
    with service.store.database.write() as connection:
        connection.execute(sa.delete(tables.head_activations))
        bump_revision(connection)
    eventually(lambda: service.client.get("/readyz").status_code == 503)
    ready = service.client.get("/readyz").json()
    said = "the promoted model linear@1 has no default head that can be served"
    assert ready["reasons"] == [f"{said}."]
    assert said in ready["degraded"]
    assert "lifelong_models_without_head 1.0" in service.client.get("/metrics").text


def test_the_thread_keeps_neither_the_last_graph_nor_the_last_error() -> None:
    class Graph:
        pass

    def load(model: Any, _: Any) -> Any:
        if model == "broken":
            raise LifelongError("it cannot be loaded")
        return Graph()

    loader = GraphLoader(load)
    future = loader.submit(cast("Any", "sound"), cast("Any", "task"))
    graph = weakref.ref(future.result())
    failed = loader.submit(cast("Any", "broken"), cast("Any", "task"))
    error = weakref.ref(cast("Exception", failed.exception()))
    del future, failed
    eventually(lambda: graph() is None and error() is None)
    loader.close()
