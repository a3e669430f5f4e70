"""Options of the GPU providers follow from the settings, and graphs share the memory of the GPU."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.configuration.settings import Settings
from lifelong_core.values.errors import ConfigurationError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.half_precision import to_half_precision
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.trial_images import batch_sizes
from tests.unit.service import onnx_graphs
from tests.unit.service.graphs.gpu_double import CPU, CUDA, TENSORRT, Machine

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


def options(gpu: Machine, provider: str) -> dict[str, Any]:
    """Options of a provider in the newest session."""
    return dict(gpu.providers[-1])[provider]


def load(use: GpuUse, *providers: str, graph: bytes | None = None) -> Any:
    return load_classifier(
        graph or onnx_graphs.linear(), GREY, classes=3, providers=providers or (CUDA,), gpu=use
    )


def test_cuda_gets_device_memory_search_and_precision(gpu: Machine) -> None:
    gpu.devices = 2
    load(GpuUse(device=1, graph_bytes=10**9))
    assert options(gpu, CUDA) == {
        "device_id": 1,
        "arena_extend_strategy": "kSameAsRequested",
        "cudnn_conv_algo_search": "HEURISTIC",
        "use_tf32": 0,
        "gpu_mem_limit": 10**9,
        "enable_cuda_graph": 1,
    }


def test_without_a_budget_the_arena_has_no_limit_and_tf32_is_a_choice(gpu: Machine) -> None:
    load(GpuUse(tf32=True))
    assert "gpu_mem_limit" not in options(gpu, CUDA)
    assert options(gpu, CUDA)["use_tf32"] == 1


def test_the_cpu_gets_no_options(gpu: Machine) -> None:
    load(GpuUse(graph_bytes=10**9), CUDA, CPU)
    assert options(gpu, CPU) == {}


@pytest.mark.parametrize(("workers", "graphs", "share"), [(1, 1, 6), (2, 1, 4), (4, 2, 12 / 9)])
def test_all_graphs_of_all_workers_and_one_check_share_the_budget(
    workers: int, graphs: int, share: float
) -> None:
    budget = 12 * 10**9
    settings = Settings(gpu_memory_bytes=budget, gpu_graphs_per_worker=graphs)
    use = GpuUse.from_settings(settings, workers=workers)
    assert use.graph_bytes == int(share * 10**9)
    assert use.graph_bytes * (workers * graphs + 1) <= budget
    assert GpuUse(**use.to_document()).graph_bytes == use.graph_bytes


def test_no_more_graphs_are_loaded_than_share_the_memory_until_one_goes(gpu: Machine) -> None:
    use = GpuUse(graph_bytes=10**9, graphs=2)
    held = [load(use), load(use)]
    with pytest.raises(ConfigurationError, match="holds 2 graphs on the GPU") as error:
        load(use)
    assert error.value.field == "LIFELONG_GPU_GRAPHS_PER_WORKER"
    load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CPU], gpu=use)
    del held[0]
    load(use)
    assert len(held) == 1


def test_without_a_budget_any_number_of_graphs_is_loaded(gpu: Machine) -> None:
    held = [load(GpuUse(graphs=1)) for _ in range(3)]
    assert {one.provider for one in held} == {CUDA}


def test_tensorrt_gets_profiles_of_the_batches_and_a_folder_for_each_graph(
    gpu: Machine, tmp_path: Path
) -> None:
    use = GpuUse(graph_bytes=10**9, maximum_batch_size=20, engines=tmp_path / "engines")
    load(use, TENSORRT, CUDA)
    given = options(gpu, TENSORRT)
    assert given["trt_profile_min_shapes"] == "image:1x1x4x4"
    assert given["trt_profile_opt_shapes"] == given["trt_profile_max_shapes"] == "image:20x1x4x4"
    assert given["trt_fp16_enable"] is False
    assert given["trt_max_workspace_size"] == 10**9
    assert given["trt_engine_cache_enable"]
    assert given["trt_timing_cache_enable"]
    # Engines of other weights have the same name.
    load(use, TENSORRT, CUDA, graph=onnx_graphs.scaled(2))
    folders = {dict(one)[TENSORRT]["trt_engine_cache_path"] for one in gpu.providers}
    assert len(folders) == 2
    assert all(Path(folder).parent == tmp_path / "engines" for folder in folders)
    assert options(gpu, CUDA)["cudnn_conv_algo_search"] == "HEURISTIC"


def test_tensorrt_computes_in_half_precision_only_if_the_graph_does(gpu: Machine) -> None:
    graph = onnx_graphs.linear()
    load(GpuUse(), TENSORRT, graph=to_half_precision(graph))
    assert options(gpu, TENSORRT)["trt_fp16_enable"] is True
    load(GpuUse(), TENSORRT, graph=onnx_graphs.linear(element=onnx.TensorProto.FLOAT16))
    assert options(gpu, TENSORRT)["trt_fp16_enable"] is True
    load(GpuUse(), TENSORRT, graph=graph)
    assert options(gpu, TENSORRT)["trt_fp16_enable"] is False


def test_a_graph_with_a_fixed_batch_needs_no_profile_and_no_folder_none(gpu: Machine) -> None:
    load(GpuUse(), TENSORRT, graph=onnx_graphs.linear(batch=2))
    assert options(gpu, TENSORRT) == {"device_id": 0, "trt_fp16_enable": False}


def test_batch_sizes_rise_to_the_maximum_and_at_most_double() -> None:
    for maximum in (1, 2, 3, 64, 100):
        sizes = batch_sizes(maximum)
        assert (sizes[0], sizes[-1]) == (1, maximum)
        assert all(a < b <= 2 * a for a, b in pairwise(sizes))
