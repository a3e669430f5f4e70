"""A configured execution provider runs the graph, or the error names the reason; this machine has no accelerator."""

import onnxruntime
import pytest

from lifelong_core.values.errors import ConfigurationError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.providers import CPU, choose_providers
from tests.unit.service import onnx_graphs

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


def load(*providers: str) -> str:
    return load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=providers).provider


def test_the_cpu_may_be_configured_and_is_there_by_itself() -> None:
    assert load(CPU) == load() == CPU


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="this installation has CUDA"
)
@pytest.mark.parametrize("name", ["CUDAExecutionProvider", "TensorrtExecutionProvider"])
def test_a_provider_that_is_not_installed_is_an_error_and_not_the_cpu(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is not in this installation.*{CPU}") as refused:
        load(name, CPU)
    assert refused.value.field == "LIFELONG_EXECUTION_PROVIDERS"
    assert "extra gpu" in (refused.value.hint or "")


def test_a_misspelt_provider_gets_the_one_that_was_meant() -> None:
    for name in ("CUDAExecutionProvder", "cudaexecutionprovider", "CUDA"):
        with pytest.raises(ConfigurationError, match=f"no execution provider '{name}'") as refused:
            choose_providers([name])
        assert refused.value.hint == "Did you mean CUDAExecutionProvider?"


def test_an_unknown_provider_gets_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        choose_providers(["quantum"])
    assert CPU in (refused.value.hint or "")


@pytest.mark.skipif(
    "AzureExecutionProvider" not in onnxruntime.get_available_providers(), reason="this installation lacks it"
)
@pytest.mark.parametrize("more", [(), (CPU,)])
def test_a_configured_provider_that_runs_no_node_is_an_error(more: tuple[str, ...]) -> None:
    """ONNX Runtime lists it for the session all the same, and in the first place."""
    with pytest.raises(
        ConfigurationError, match=f"AzureExecutionProvider would run no node.*{CPU}"
    ) as refused:
        load("AzureExecutionProvider", *more)
    assert refused.value.field == "LIFELONG_EXECUTION_PROVIDERS"
