"""What a GPU provider lacks is named: for a configured one in an error, else in a warning beside the CPU."""

import io
import json
import re

import numpy as np
import pytest

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs import providers as module
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.page_locked import PageLockedMemory
from lifelong_service.graphs.providers import choose_providers
from tests.unit.service import onnx_graphs
from tests.unit.service.graphs.gpu_double import CPU, CUDA, TENSORRT, Machine

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


@pytest.mark.parametrize(
    ("provider", "library", "hint"),
    [
        (CUDA, "libcublasLt.so.13", "CUDA 13"),
        (CUDA, "libcudart.so.13", "[gpu]"),
        (CUDA, "libcurand.so.10", "CUDA 13"),
        (CUDA, "libcudnn.so.9", "cuDNN 9"),
        (CUDA, "libcuda.so.1", "driver"),
        (TENSORRT, "libnvinfer.so.10", "TensorRT 10"),
        (TENSORRT, "libnvonnxparser.so.10", "TensorRT 10"),
        (TENSORRT, "libcudnn.so.9", "cuDNN 9"),
    ],
)
def test_a_configured_provider_without_a_library_is_an_error_that_names_it(
    gpu: Machine, provider: str, library: str, hint: str
) -> None:
    assert choose_providers([provider, CPU]).names == (provider, CPU)
    gpu.missing = {library}
    with pytest.raises(
        ConfigurationError, match=f"{provider} cannot be started: the library {library} is missing"
    ) as error:
        choose_providers([provider, CPU])
    assert error.value.field == "LIFELONG_EXECUTION_PROVIDERS"
    assert hint.replace(".", "[") in (error.value.hint or "")


def test_cuda_needs_no_library_of_tensorrt(gpu: Machine) -> None:
    gpu.missing = {"libnvinfer.so.10", "libnvonnxparser.so.10"}
    assert choose_providers([CUDA]).names == (CUDA,)


def test_a_library_that_another_one_needs_is_named(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(library: str) -> None:
        raise OSError(f"libnvJitLink.so.13: cannot open shared object file: needed by {library}")

    monkeypatch.setattr("lifelong_service.graphs.libraries.ctypes.CDLL", load)
    with pytest.raises(ConfigurationError, match=r"the library libnvJitLink\.so\.13 is missing") as raised:
        choose_providers([CUDA])
    assert str(raised.value.hint).startswith("It belongs to CUDA 13")


def test_a_library_that_is_there_and_does_not_load_is_shown_with_the_reason(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(library: str) -> None:
        raise OSError("/lib/libm.so.6: version `GLIBC_2.43' not found")

    monkeypatch.setattr("lifelong_service.graphs.libraries.ctypes.CDLL", load)
    with pytest.raises(ConfigurationError, match=r"libcublasLt\.so\.13 cannot be loaded .*GLIBC_2\.43"):
        choose_providers([CUDA])


def test_an_old_driver_is_named_with_its_version(gpu: Machine) -> None:
    gpu.driver = 12_080
    with pytest.raises(ConfigurationError, match=r"supports CUDA 12\.8, and ONNX Runtime needs CUDA 13"):
        choose_providers([CUDA])


def test_a_driver_without_a_gpu(gpu: Machine) -> None:
    gpu.devices = 0
    with pytest.raises(ConfigurationError, match="shows no GPU") as error:
        choose_providers([CUDA])
    assert "container" in (error.value.hint or "")


def test_a_gpu_that_does_not_exist(gpu: Machine) -> None:
    gpu.devices = 2
    assert choose_providers([CUDA], device=1).names == (CUDA,)
    with pytest.raises(ConfigurationError, match="there is no GPU 2, the driver shows 2") as error:
        choose_providers([CUDA], device=2)
    assert "LIFELONG_GPU_DEVICE" in (error.value.hint or "")


def test_without_a_setting_cuda_runs_where_it_can_be_started(gpu: Machine) -> None:
    chosen = choose_providers([])
    assert (chosen.names, chosen.unused_gpu) == ((CUDA, CPU), None)


@pytest.mark.parametrize(
    ("missing", "devices", "said"),
    [({"libcudnn.so.9"}, 1, r"libcudnn\.so\.9 is missing"), (set(), 0, "shows no GPU")],
)
def test_without_a_setting_the_cpu_runs_beside_the_reason(
    gpu: Machine, missing: set[str], devices: int, said: str
) -> None:
    gpu.missing, gpu.devices = missing, devices
    loaded = load_classifier(onnx_graphs.linear(), GREY, classes=3)
    assert loaded.provider == CPU
    assert loaded.unused_gpu is not None
    assert re.search(said, loaded.unused_gpu)
    assert gpu.providers == []


def test_a_start_that_fails_for_another_reason_is_no_silent_fallback_either(gpu: Machine) -> None:
    gpu.starts = False
    with pytest.raises(ConfigurationError, match=f"{CUDA} could not be started, only {CPU}"):
        load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CUDA, CPU])
    automatic = load_classifier(onnx_graphs.linear(), GREY, classes=3)
    assert automatic.provider == CPU
    assert "did not start it" in (automatic.unused_gpu or "")


def test_a_driver_that_refuses_is_no_fault_of_the_graph(gpu: Machine) -> None:
    """What ONNX Runtime 1.31 raises beside a driver without the calls of CUDA 13."""
    gpu.failure = (
        "[ONNXRuntimeError] : 1 : FAIL : CUDA failure 36: API call is not supported in the installed CUDA driver ;"
        " GPU=-1 ; hostname=ward ; file=/onnxruntime_src/cuda_execution_provider_info.cc ; line=70"
    )
    with pytest.raises(ConfigurationError, match="cannot be started: CUDA failure 36: API call") as error:
        load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CUDA])
    assert "hostname" not in error.value.message
    automatic = load_classifier(onnx_graphs.linear(), GREY, classes=3)
    assert automatic.provider == CPU
    assert "CUDA failure 36" in (automatic.unused_gpu or "")
    with pytest.raises(InvalidInputError, match="cannot load the graph"):
        load_classifier(b"not a graph", GREY, classes=3)


def test_a_gpu_without_memory_is_no_reason_for_the_cpu(gpu: Machine) -> None:
    gpu.failure = "CUDA failure 2: out of memory ; GPU=0 ; hostname=ward"
    with pytest.raises(InvalidInputError, match="more memory than there is"):
        load_classifier(onnx_graphs.linear(), GREY, classes=3)


def test_doctors_question_is_answered_with_the_reason(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.missing = {"libcudnn.so.9"}

    def ask(*providers: str) -> tuple[int, dict[str, object]]:
        request = {"execution_providers": providers, "device": 0}
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(request)))
        status = module.main()
        return status, json.loads(capsys.readouterr().out)

    status, answer = ask()
    assert (status, answer["providers"]) == (0, [CPU])
    assert "libcudnn.so.9 is missing" in str(answer["unused_gpu"])
    status, answer = ask(CUDA)
    assert status == 2
    assert "libcudnn.so.9 is missing" in str(answer["message"])


def test_page_locked_memory_belongs_to_its_device_and_is_freed_after_the_last_view(gpu: Machine) -> None:
    gpu.devices = 3
    memory = PageLockedMemory(2)
    array = memory.empty((2, 3), np.float16)
    assert (array.shape, array.dtype, gpu.current_device) == ((2, 3), np.float16, 2)
    array[:] = 1.5
    row = array[1]
    del array
    assert len(gpu.locked) == 1
    assert row.tolist() == [1.5] * 3
    del row
    # Freed by the next call: at any other time, it would end the capture of another thread.
    assert len(gpu.locked) == 1
    other = memory.empty((1,), np.float32)
    assert len(gpu.locked) == 1
    assert other.size == 1


def test_memory_that_cannot_be_locked_is_an_error_with_cudas_words(gpu: Machine) -> None:
    with pytest.raises(ConfigurationError, match="cannot lock host memory: error 101"):
        PageLockedMemory(5).empty((2,), np.float32)
    gpu.missing = {"libcudart.so.13"}
    with pytest.raises(ConfigurationError, match=r"libcudart\.so\.13 is missing"):
        PageLockedMemory(GpuUse().device)
