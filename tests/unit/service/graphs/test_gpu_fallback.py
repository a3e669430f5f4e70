"""A service on the CPU beside an installed CUDA says so, with the reason, in log, /readyz and metrics."""

import logging
from collections.abc import Callable

import pytest

from lifelong_core.errors import ConfigurationError
from lifelong_core.settings import Settings
from lifelong_service.process.launch import check_database
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


def test_a_service_with_a_configured_provider_that_cannot_be_started_does_not_start(
    gpu: Machine, settings: Settings
) -> None:
    gpu.missing = {"libcublas.so.13"}
    configured = settings.model_copy(update={"execution_providers": (CUDA, CPU)})
    with pytest.raises(ConfigurationError, match=r"libcublas\.so\.13 is missing"):
        check_database(configured)
