"""A service on the CPU beside an installed CUDA says so, with the reason, in log, /readyz and metrics."""

import logging
from collections.abc import Callable

import onnxruntime
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.values.errors import ConfigurationError
from lifelong_service.process.checks import check_database
from tests.unit.service.conftest import Service, png
from tests.unit.service.graphs.gpu_double import CPU, CUDA, Machine
from tests.unit.service.waiting import eventually


def test_the_reason_is_in_log_readiness_and_metrics(
    gpu: Machine, registered: None, serve: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    gpu.missing = {"libcudnn.so.9"}
    with caplog.at_level(logging.WARNING):
        client = serve().client
        eventually(lambda: client.post("/v1/predict", content=png()).status_code == 200)
    ready = client.get("/readyz").json()
    assert ready["ready"] is True
    assert set(ready["execution_providers"].values()) == {CPU}
    said = [problem for problem in ready["degraded"] if "CUDA" in problem]
    assert len(said) == 1
    assert "libcudnn.so.9 is missing" in said[0]
    assert "lifelong_unused_gpu 1.0" in client.get("/metrics").text
    warned = [one for one in caplog.records if one.message == "CUDA is installed and cannot be started"]
    assert warned
    assert "libcudnn.so.9" in warned[0].__dict__["details"]["reason"]


def test_a_service_on_the_gpu_says_so_and_predicts(
    gpu: Machine, registered: None, serve: Callable[..., Service]
) -> None:
    client = serve().client
    eventually(lambda: client.post("/v1/predict", content=png()).status_code == 200)
    ready = client.get("/readyz").json()
    assert set(ready["execution_providers"].values()) == {CUDA}
    assert not any("CUDA" in problem for problem in ready["degraded"])
    text = client.get("/metrics").text
    assert "lifelong_unused_gpu 0.0" in text
    assert f'lifelong_execution_provider{{model="linear@1",provider="{CUDA}"}} 1.0' in text
    assert gpu.bound_runs > 0


def test_a_worker_whose_gpu_fails_answers_503_is_not_ready_and_ends(
    gpu: Machine, registered: None, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: list[str] = []
    monkeypatch.setattr("lifelong_service.worker.wiring.stop_worker", reasons.append)
    client = serve().client
    eventually(lambda: client.post("/v1/predict", content=png()).status_code == 200)

    def fail(*_: object) -> None:
        raise RuntimeError("CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=h")

    monkeypatch.setattr(onnxruntime.InferenceSession, "run_with_iobinding", fail)
    answer = client.post("/v1/predict", content=png())
    assert answer.status_code == 503, answer.text
    assert "CUDA failure 719" in answer.json()["error"]["message"]
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["reasons"] == [
        "the GPU fails: CUDA failure 719: unspecified launch failure; this worker is replaced."
    ]
    eventually(lambda: reasons == ["the GPU fails: CUDA failure 719: unspecified launch failure"])


def test_a_service_with_a_configured_provider_that_cannot_be_started_does_not_start(
    gpu: Machine, settings: Settings
) -> None:
    gpu.missing = {"libcublas.so.13"}
    configured = settings.model_copy(update={"execution_providers": (CUDA, CPU)})
    with pytest.raises(ConfigurationError, match=r"libcublas\.so\.13 is missing"):
        check_database(configured)
