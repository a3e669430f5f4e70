"""Traces of requests: one span for each stage, in the trace of the caller, and nothing that names a patient."""

from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_service.prediction.batch_pipeline import BatchPipeline
from tests.collector import collecting, traced
from tests.unit.service.conftest import Installations, png, running

CALLER = f"00-{'a' * 32}-{'b' * 16}-01"


def test_a_prediction_is_a_trace_of_its_stages(
    installations: Installations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = installations.copy_to(tmp_path)
    settings = Settings(data_directory=tmp_path, registry_poll_seconds=0.02)
    with collecting(monkeypatch) as collector, running(traced(settings, collector), secrets) as service:
        path = "/v1/predict?environment=site-a&group=patient-7&request_id=secret-1"
        headers = {"traceparent": CALLER, "Content-Type": "image/png"}
        answer = service.client.post(path, content=png(), headers=headers)
        assert answer.status_code == 200
        service.client.get("/readyz")
        stages = ("queue", "decode", "infer", "head", "log")
        spans = collector.wait_for("POST /v1/predict", *stages)
        bodies = b"".join(request.body for request in collector.receiver.received)
    request = spans["POST /v1/predict"]
    assert (request.service, request.trace, request.parent) == ("lifelong-service", "a" * 32, "b" * 16)
    assert request.attributes["http.response.status_code"] == 200
    assert {spans[name].parent for name in stages} == {request.id}
    assert spans["log"].attributes["lifelong.prediction_id"] == answer.json()["prediction_id"]
    for secret in (b"patient-7", b"secret-1", secrets["admin"].encode(), b"readyz"):
        assert secret not in bodies


def test_a_request_that_fails_has_its_status(
    installations: Installations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = installations.copy_to(tmp_path)
    settings = Settings(data_directory=tmp_path, registry_poll_seconds=0.02)
    with collecting(monkeypatch) as collector, running(traced(settings, collector), secrets) as service:
        assert service.client.get("/v1/admin/models/absent").status_code == 404
        body = {"logits": [[1.0, float("1e30")]], "model": "absent"}
        assert service.client.post("/v1/logits", json=body).status_code == 404
        spans = collector.wait_for("GET /v1/admin/models/{model}", "POST /v1/logits")
    assert {
        span.attributes["http.response.status_code"] for span in spans.values() if "POST" in span.name
    } == {404}


def test_a_service_without_traces_has_the_plain_pipeline(
    installations: Installations, tmp_path: Path
) -> None:
    secrets = installations.copy_to(tmp_path)
    with running(Settings(data_directory=tmp_path), secrets) as service:
        assert type(service.worker.batcher._process) is BatchPipeline
