"""Options of the GPU providers of ONNX Runtime, from the settings."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnxruntime

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.libraries import CUDA, TENSORRT
from lifelong_service.graphs.trial_images import image_shape

PRECISION: Final = "lifelong.precision"
"""Entry in the metadata of graphs that this product converted."""
HALF: Final = "half"
_SILENT: Final = 4


@dataclass(frozen=True)
class GraphInput:
    """What TensorRT must know of a graph before it builds its engine.

    Attributes:
        name: of the input.
        smallest: shape of a batch of one image; None: the size of images is free.
        has_free_batch: whether the graph takes batches of any size.
        is_half: whether the graph computes in half precision.
        digest: SHA-256 of the graph.
    """

    name: str
    smallest: tuple[int, ...] | None
    has_free_batch: bool
    is_half: bool
    digest: str


def provider_options(
    name: str, use: GpuUse, graph: GraphInput | None = None, *, captures: bool = False
) -> dict[str, Any]:
    """Return the options of an execution provider; those of the CPU and of unknown providers are empty.

    Args:
        name: the provider.
        use: how this process uses the GPU.
        graph: the graph, which TensorRT needs.
        captures: whether CUDA captures kernels.
    """
    if name == CUDA:
        return _cuda(use) | ({"enable_cuda_graph": 1} if captures else {})
    if name == TENSORRT and graph is not None:
        return _tensorrt(use, graph)
    return {}


def _cuda(use: GpuUse) -> dict[str, Any]:
    options: dict[str, Any] = {
        "device_id": use.device,
        # The default doubles the arena, and the doubled part is then missing in the other workers.
        "arena_extend_strategy": "kSameAsRequested",
        # The default runs every algorithm for every new shape, which takes seconds.
        "cudnn_conv_algo_search": "HEURISTIC",
        "use_tf32": int(use.tf32),
    }
    if use.graph_bytes is not None:
        options["gpu_mem_limit"] = use.graph_bytes
    return options


def _tensorrt(use: GpuUse, graph: GraphInput) -> dict[str, Any]:
    options: dict[str, Any] = {"device_id": use.device, "trt_fp16_enable": graph.is_half}
    if use.graph_bytes is not None:
        options["trt_max_workspace_size"] = use.graph_bytes
    if use.engines is not None:
        # ONNX Runtime names an engine by the names in the graph, not by its weights: every graph has its own folder.
        folder = use.engines / graph.digest
        options |= {
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(folder),
            "trt_timing_cache_enable": True,
            "trt_timing_cache_path": str(folder),
        }
    if graph.has_free_batch and graph.smallest is not None:
        # Without a profile, the engine is built anew whenever a larger batch comes.
        largest = (use.maximum_batch_size, *graph.smallest[1:])
        options |= {
            "trt_profile_min_shapes": _profile(graph.name, graph.smallest),
            "trt_profile_opt_shapes": _profile(graph.name, largest),
            "trt_profile_max_shapes": _profile(graph.name, largest),
        }
    return options


def read_input(graph: Path | bytes, preprocessing: Preprocessing) -> GraphInput:
    """Return what TensorRT must know of a graph.

    Args:
        graph: file or content of the ONNX model.
        preprocessing: of its images.

    Raises:
        Exception: ONNX Runtime cannot load the graph; it has a class for each of its status codes.
    """
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = _SILENT
    session = onnxruntime.InferenceSession(
        graph if isinstance(graph, bytes) else str(graph),
        sess_options=settings,
        providers=["CPUExecutionProvider"],
    )
    described = session.get_inputs()[0]
    shape = image_shape(described.shape, preprocessing)
    content = graph if isinstance(graph, bytes) else graph.read_bytes()
    return GraphInput(
        described.name,
        None if shape is None else (1, *shape),
        not isinstance(described.shape[0], int),
        computes_in_half(session),
        hashlib.sha256(content).hexdigest(),
    )


def computes_in_half(session: onnxruntime.InferenceSession) -> bool:
    """Whether a graph was converted to half precision, or takes it."""
    is_converted = session.get_modelmeta().custom_metadata_map.get(PRECISION) == HALF
    return is_converted or session.get_inputs()[0].type == "tensor(float16)"


def _profile(name: str, shape: Sequence[int]) -> str:
    return f"{name}:{'x'.join(map(str, shape))}"
