"""Trials of a candidate: a canary answers a share of the requests, a shadow decides for the log only."""

import json
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.store import Store, promote_calibrated, register_calibration
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.store.rollouts.trials import start_trial
from lifelong_core.values.errors import UnavailableError
from lifelong_core.values.preprocessing import Preprocessing, Resize
from lifelong_service import metrics
from lifelong_service.decoding import process
from lifelong_service.graphs.classifier import Classifier, GraphTimeoutError
from lifelong_service.prediction.shadow import Shadow, ShadowQueue
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import GREY, Service, calibration, png
from tests.unit.service.waiting import eventually

BRIGHT = np.arange(onnx_graphs.EDGE**2).reshape(onnx_graphs.EDGE, -1) * 9


def add_candidate(
    store: Store, graph: bytes | None = None, *, name: str = "linear", preprocessing: Preprocessing = GREY
) -> str:
    """A calibrated model beside linear@1, whose logits are twice as large."""
    graph = graph or onnx_graphs.scaled(2)
    model = store.models.add("skin", name, kind="onnx", onnx=graph, preprocessing=preprocessing, actor="test")
    register_calibration(store, model.reference, calibration(), actor="test")
    return model.reference


def begin(service: Service, stage: str, share: float = 0.0, *, model: str = "linear@2") -> None:
    """Start or change the trial, and wait until the worker uses it."""
    trial = start_trial(service.store, model, stage=stage, share=share, actor="test")  # type: ignore[arg-type]
    eventually(lambda: service.worker.snapshot.registry.rollouts.get(trial.rollout.task_id) == trial.rollout)


@pytest.fixture
def trial(registered: None, store: Store, serve: Callable[..., Service]) -> Service:
    """A service with the candidate linear@2."""
    add_candidate(store)
    return serve()


def predict(
    service: Service, query: str = "", content: bytes | None = None, **headers: str
) -> dict[str, Any]:
    answer = service.client.post(f"/v1/predict{query}", content=content or png(BRIGHT), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def factor(service: Service, prediction_id: str) -> float:
    """The factor of the graph that gave the logged logits of `BRIGHT`."""
    logged = service.store.predictions.get(UUID(prediction_id))
    pixels = (BRIGHT.astype(np.float32).ravel() / 255 - 0.5) / 0.5
    return float(np.median(logged.logits / (pixels @ onnx_graphs.linear_weights())))


def value(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_canary_answers_a_share_of_the_groups_and_keeps_them_when_it_grows(trial: Service) -> None:
    groups = [f"patient-{number}" for number in range(15)]

    def chosen() -> set[str]:
        answers = {group: predict(trial, f"?group={group}") for group in groups}
        for answer in answers.values():
            assert factor(trial, answer["prediction_id"]) == pytest.approx(answer["model_version"])
        repeated = {group for group in groups if predict(trial, f"?group={group}")["model_version"] == 2}
        assert repeated == {group for group, answer in answers.items() if answer["model_version"] == 2}
        return repeated

    assert chosen() == set()
    begin(trial, "canary", 0.3)
    few = chosen()
    begin(trial, "canary", 0.7)
    many = chosen()
    begin(trial, "canary", 1)
    assert 0 < len(few) < len(many) < len(groups) == len(chosen())
    assert few < many
    trial.store.rollouts.end("skin", actor="test")
    eventually(lambda: not trial.worker.snapshot.registry.rollouts)
    assert chosen() == set()


def test_all_workers_choose_the_same(trial: Service, serve: Callable[..., Service]) -> None:
    begin(trial, "canary", 0.5)
    other = serve()
    for query in [f"?group={number}" for number in range(12)] + [f"?request_id={n}" for n in range(12)]:
        image = png(BRIGHT)
        assert predict(trial, query, image)["model_version"] == predict(other, query, image)["model_version"]
    images = [png(shade) for shade in range(12)]
    versions = [[predict(one, "", image)["model_version"] for image in images] for one in (trial, other)]
    assert versions[0] == versions[1]
    assert set(versions[0]) == {1, 2}


def test_only_requests_without_a_version_reach_the_candidate(trial: Service) -> None:
    begin(trial, "canary", 1)
    assert predict(trial)["model_version"] == 2
    assert predict(trial, "?model=linear")["model_version"] == 2
    assert predict(trial, "?model=linear@1")["model_version"] == 1
    assert predict(trial, "?model=table", png(0))["model"] == "table"
    logits = trial.client.post("/v1/logits", json={"logits": [[1, 2, 3]]}).json()
    assert logits["model_version"] == 1


def test_a_candidate_of_another_name_gets_only_requests_without_a_model(
    registered: None, store: Store, serve: Callable[..., Service]
) -> None:
    service = serve()
    begin(service, "canary", 1, model="table")
    assert predict(service, "", png(0))["model"] == "table"
    assert predict(service, "?model=linear")["model"] == "linear"


def test_a_repeated_request_gets_its_first_answer_whatever_stage_began_meanwhile(trial: Service) -> None:
    first: list[bytes] = []

    def send(number: int) -> bytes:
        return trial.client.post(f"/v1/predict?request_id=r{number}", content=png(BRIGHT)).content

    def logits() -> bytes:
        body = {"logits": [[1.0, 2.0, 3.0]], "request_id": "logits"}
        return trial.client.post("/v1/logits", json=body).content

    def check() -> None:
        first.append(send(len(first)))
        assert [send(number) for number in range(len(first))] == first
        assert logits() == sent

    sent = logits()
    check()
    begin(trial, "shadow")
    check()
    begin(trial, "canary", 1)
    check()
    promote_calibrated(trial.store, "linear@2", actor="test")
    eventually(lambda: trial.worker.snapshot.registry.resolve_model(None).version == 2)
    check()
    trial.store.promotions.roll_back("skin", actor="test")
    eventually(lambda: trial.worker.snapshot.registry.resolve_model(None).version == 1)
    check()
    assert [json.loads(answer)["model_version"] for answer in first] == [1, 1, 2, 2, 1]
    other = trial.client.post("/v1/predict?request_id=r2", content=png(1))
    assert other.status_code == 409


def test_of_two_answers_to_a_request_the_older_one_is_repeated(trial: Service) -> None:
    older, newer = (predict(trial, f"?request_id=r1&model=linear@{version}") for version in (2, 1))
    begin(trial, "canary", 1)
    assert older["prediction_id"] != newer["prediction_id"]
    assert predict(trial, "?request_id=r1") == older


def test_where_a_canary_fails_the_promoted_model_answers(
    registered: None, serve: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    service = serve()
    begin(service, "canary", 1, model="table")  # fails on a white image
    before = value("lifelong_candidate_failures_total", model="table@1", role="canary")
    assert predict(service, "", png(0))["model"] == "table"
    assert predict(service, "?request_id=r1", png(255))["model"] == "linear"
    assert predict(service, "?request_id=r1", png(255))["model"] == "linear"
    assert value("lifelong_candidate_failures_total", model="table@1", role="canary") == before + 1
    assert [record.getMessage() for record in caplog.records].count("a candidate failed") == 1
    # An image that no model can read is an error of the request, not of the candidate.
    assert service.client.post("/v1/predict", content=b"no image").status_code == 422
    assert value("lifelong_candidate_failures_total", model="table@1", role="canary") == before + 1
    assert predict(service, "", png(0))["model"] == "table"


def test_a_canary_without_a_head_fails_no_request(trial: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(trial, "canary", 1)
    snapshot = trial.worker.snapshot
    heads = {place: head for place, head in snapshot.registry.heads.items() if head.version != 1}
    candidate = snapshot.registry.resolve_model("linear@2")
    damaged = {(candidate.id, None): "its digest is wrong"}
    registry = replace(snapshot.registry, heads={**snapshot.registry.heads, **heads}, damaged=damaged)
    broken = replace(
        registry, heads={place: head for place, head in registry.heads.items() if place[0] != candidate.id}
    )
    monkeypatch.setattr(trial.worker.serving, "snapshot", replace(snapshot, registry=broken))
    assert predict(trial)["model_version"] == 1


def test_a_candidate_that_takes_too_long_is_suspended_until_its_stage_changes(
    trial: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(trial, "canary", 1)
    slow = trial.worker.snapshot.classifiers[trial.store.models.get("linear@2").id]
    runs: list[int] = []
    original = Classifier.logits

    def hang(classifier: Classifier, inputs: Any) -> Any:
        if classifier is slow:
            runs.append(len(inputs))
            raise GraphTimeoutError("too slow")
        return original(classifier, inputs)

    monkeypatch.setattr(Classifier, "logits", hang)
    assert [predict(trial)["model_version"] for _ in range(3)] == [1, 1, 1]
    assert len(runs) == 1
    begin(trial, "canary", 0.99999)
    assert predict(trial, "?group=a")["model_version"] == 1
    assert len(runs) == 2


def test_a_shadow_decides_about_the_same_images_for_the_log_only(trial: Service) -> None:
    begin(trial, "shadow")
    header = trial.header("predict")
    answers = [predict(trial, f"?environment=e&group=g{number}", **header) for number in range(3)]
    assert {answer["model_version"] for answer in answers} == {1}
    eventually(lambda: trial.logged() == 6)
    for answer in answers:
        served = trial.store.predictions.get(UUID(answer["prediction_id"]))
        shadow = trial.store.predictions.get(shadow_prediction_id(UUID(answer["prediction_id"])))
        assert shadow.model_id == trial.store.models.get("linear@2").id
        assert (shadow.environment, shadow.group_hash) == (served.environment, served.group_hash)
        assert shadow.group_hash is not None
        np.testing.assert_allclose(shadow.logits, served.logits * 2, rtol=1e-5)
        label = {"prediction_id": answer["prediction_id"], "label": 1}
        assert trial.client.post("/v1/feedback", json=label).json()["outcome"] == "stored"
        labelled = trial.store.labels.newest_labelled(shadow.model_id, "e", limit=9, classes=3)
        assert shadow.id in labelled.ids
    # Named versions, logits and repetitions are not its business.
    predict(trial, "?model=linear@1")
    trial.client.post("/v1/logits", json={"logits": [[1, 2, 3]]})
    for _ in range(2):
        predict(trial, "?request_id=r")
    eventually(lambda: trial.logged() == 6 + 4)
    assert len(trial.worker._parts.shadow._queue) == 0


def test_a_shadow_with_another_preprocessing_decodes_the_image_itself(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve()
    begin(service, "shadow", model="table")
    before = value("lifelong_candidate_failures_total", model="table@1", role="shadow")
    answer = predict(service, "", png(0))
    eventually(lambda: service.logged() == 2)
    shadow = service.store.predictions.get(shadow_prediction_id(UUID(answer["prediction_id"])))
    assert shadow.logits.tolist() == [0, 1, 2]
    predict(service, "", png(255))
    eventually(
        lambda: value("lifelong_candidate_failures_total", model="table@1", role="shadow") == before + 1
    )
    assert service.logged() == 3


def test_feedback_finds_the_request_under_the_model_that_answered_it(trial: Service) -> None:
    begin(trial, "canary", 1)
    answer = predict(trial, "?request_id=r1")
    assert answer["model_version"] == 2
    trial.store.rollouts.end("skin", actor="test")
    eventually(lambda: not trial.worker.snapshot.registry.rollouts)
    stored = trial.client.post("/v1/feedback", json={"request_id": "r1", "label": 0}).json()
    assert stored == {"prediction_id": answer["prediction_id"], "outcome": "stored"}
    named = {"request_id": "r1", "environment": "default", "model": "linear", "label": 0}
    assert trial.client.post("/v1/feedback", json=named).json()["outcome"] == "unchanged"
    named["model"] = "linear@1"
    assert trial.client.post("/v1/feedback", json=named).status_code == 404


def test_images_that_do_not_fit_in_the_queue_of_the_shadow_are_dropped(
    registered: None, store: Store, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_candidate(store)
    gate, taken = threading.Event(), threading.Event()
    original = Shadow._decide

    def wait(shadow: Shadow, images: Any) -> None:
        taken.set()
        gate.wait(20)
        original(shadow, images)

    monkeypatch.setattr(Shadow, "_decide", wait)
    service = serve(shadow_queue_capacity=2)
    begin(service, "shadow")
    before = value("lifelong_dropped_shadows_total", reason="full")
    predict(service)
    assert taken.wait(20)
    for _ in range(5):
        predict(service)  # answered while the shadow waits
    assert value("lifelong_dropped_shadows_total", reason="full") == before + 3
    gate.set()
    eventually(lambda: service.logged() == 6 + 3)


def test_the_queue_of_the_shadow_is_bounded_in_bytes(trial: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(trial, "shadow")
    queue = ShadowQueue(capacity=99, maximum_bytes=600)
    monkeypatch.setattr(trial.worker.batcher._process, "_shadows", queue.offer)
    for _ in range(9):
        predict(trial)
    (first, *_) = images = queue.take(99)
    assert len(images) == 600 // first.size < 9
    for image in images:
        queue.offer(image)
    assert len(queue) == len(images)
    queue.close()
    assert queue.take(99) == []


def test_during_an_outage_the_shadow_logs_nothing(trial: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(trial, "shadow")
    before = value("lifelong_dropped_shadows_total", reason="outage")
    monkeypatch.setattr(trial.worker._parts.shadow, "_outage", lambda: "the database is away")
    predict(trial)
    eventually(lambda: value("lifelong_dropped_shadows_total", reason="outage") == before + 1)

    def refuse(_: Any) -> None:
        raise UnavailableError("the database is away")

    monkeypatch.setattr(trial.worker._parts.shadow, "_outage", lambda: None)
    monkeypatch.setattr(trial.worker._parts.shadow, "_write", refuse)
    predict(trial)
    eventually(lambda: value("lifelong_dropped_shadows_total", reason="outage") == before + 2)
    assert trial.logged() == 2


def test_the_heads_of_a_candidate_are_its_own(trial: Service) -> None:
    head = trial.store.heads.get("linear@2", 1).head
    own = PostProcessingHead(1.0, [9.0, 0, 0], head.costs, [0.2, 0.2, 0.6], head.class_names)
    trial.store.heads.publish("linear@2", own, environment="site-a", actor="test")
    begin(trial, "canary", 1)
    assert predict(trial, "?environment=site-a")["head_version"] == 2
    assert predict(trial)["head_version"] == 1


def test_after_many_promotions_only_the_promoted_graph_and_the_one_before_are_loaded(trial: Service) -> None:
    for name in ("table", "nan", "linear"):  # the others of the fixture are promoted, too
        promote_calibrated(trial.store, name, actor="test")
    # `nan` refuses every image as long as the worker has it.
    eventually(lambda: trial.worker.snapshot.registry.revision == trial.store.registry().revision)
    graphs: list[weakref.ref[Any]] = []
    for version in range(2, 7):
        reference = f"linear@{version}" if version == 2 else add_candidate(trial.store)
        promote_calibrated(trial.store, reference, actor="test")
        eventually(lambda version=version: predict(trial)["model_version"] == version)
        model_id = trial.store.models.get(reference).id
        graphs.append(weakref.ref(trial.worker.snapshot.classifiers[model_id]))
        eventually(lambda: len(trial.worker.snapshot.classifiers) == 2)
    eventually(lambda: [graph() is not None for graph in graphs] == [False] * 3 + [True] * 2)
    refused = trial.client.post("/v1/predict?model=linear@2", content=png(1))
    assert refused.status_code == 409
    assert "lifelong models shadow linear@2" in refused.json()["error"]["hint"]
    # The roll-back needs no load: its graph is the same object.
    trial.store.promotions.roll_back("skin", actor="test")
    eventually(lambda: predict(trial)["model_version"] == 5)
    kept = trial.worker.snapshot.classifiers[trial.store.models.get("linear@5").id]
    assert kept is graphs[3]()


def test_a_costly_image_reaches_the_candidate_too_and_the_promoted_model_where_that_fails(
    registered: None, store: Store, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process that decodes costly images has the lowest priority, and the machine may be busy.
    monkeypatch.setattr(process, "PATIENCE_SECONDS", 60)
    resized = GREY.model_copy(update={"resize": Resize(height=onnx_graphs.EDGE, width=onnx_graphs.EDGE)})
    plain = Preprocessing.model_validate(resized.model_dump() | {"mean": [0.0], "standard_deviation": [1.0]})
    add_candidate(store, onnx_graphs.linear(), name="big", preprocessing=resized)
    add_candidate(store, onnx_graphs.fails_on_white(), name="big", preprocessing=plain)
    promote_calibrated(store, "big@1", actor="test")
    service = serve(request_timeout_seconds=60)
    begin(service, "canary", 1, model="big@2")
    answers = [predict(service, "", png(shade, size=1500)) for shade in (0, 255)]
    assert [answer["model_version"] for answer in answers] == [2, 1]
    assert service.client.post("/v1/predict", content=png(0, size=1500)[:-200]).status_code == 422
