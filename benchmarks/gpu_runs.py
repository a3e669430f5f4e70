"""Times of one graph in batches: our classifier beside the bare session, and the parts of a run."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from benchmarks.gpu_graphs import CLASSES, Architecture, jpeg
from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.images import model_input
from lifelong_service.graphs.libraries import TENSORRT
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.page_locked import PageLockedMemory
from lifelong_service.graphs.providers import CPU
from lifelong_service.graphs.sessions import open_session

Row = dict[str, Any]
Work = Callable[[], object]
_WARM_UP = 3
ARMS: Mapping[str, str] = {
    "ours": "Classifier.logits: list of images in, logits out",
    "session": "the bare session with our options: session.run with an array of numpy",
    "defaults": "the bare session with the default options of ONNX Runtime (TF32, exhaustive search)",
    "binding": "the bare session with our options and IO binding: input copied from pageable memory",
    "kernel": "input and output already on the device: computation alone",
    "copy": "input from page-locked memory to the device alone",
    "pageable": "the same from pageable memory",
    "stack": "images into one batch, on the host",
}


class Graph:
    """One graph, as our classifier and as bare sessions."""

    def __init__(
        self, architecture: Architecture, file: Path, providers: Sequence[str], gpu: GpuUse, threads: int
    ) -> None:
        self.architecture = architecture
        preprocessing = architecture.preprocessing
        common = {"providers": providers, "threads": threads}
        self.classifier = load_classifier(file, preprocessing, classes=CLASSES, gpu=gpu, **common)
        self._bare = open_session(file, gpu=gpu, preprocessing=preprocessing, **common).session
        # TensorRT would build an engine for every batch size.
        self._defaults = None if TENSORRT in providers else _default_session(file, providers, threads)
        self._input, self._output = (
            one[0].name for one in (self._bare.get_inputs(), self._bare.get_outputs())
        )
        self._device = ("cpu", 0) if self.classifier.provider == CPU else ("cuda", gpu.device)
        self._memory = None if self.classifier.provider == CPU else PageLockedMemory(gpu.device)

    def measure(self, batch: int, seconds: float, *, with_defaults: bool) -> Row:
        """Images per second and 99th percentile of each arm; the arms take turns.

        Args:
            batch: number of images.
            seconds: time of each arm.
            with_defaults: whether the session with default options runs: it searches for seconds in each batch size.
        """
        images = random_images(self.architecture.edge, batch)
        arms = self._arms(images)
        if with_defaults and (defaults := self._defaults) is not None:
            stacked = np.stack(images)
            arms["defaults"] = lambda: defaults.run(None, {self._input: stacked})
        latencies = alternate(arms, seconds)
        return {"batch": batch} | {name: summary(times, batch) for name, times in latencies.items()}

    def changing_sizes(self, sizes: Sequence[int], seconds: float) -> Row:
        """Images per second of our classifier and of the bare session when the batch size changes with every run."""
        images = random_images(self.architecture.edge, max(sizes))
        batches = {size: np.stack(images[:size]) for size in sizes}
        order = np.random.default_rng(0).permutation(np.repeat(sizes, 8)).tolist()
        arms: dict[str, Callable[[int], object]] = {
            "ours": lambda size: self.classifier.logits(images[:size]),
            "session": lambda size: self._bare.run(None, {self._input: batches[size]}),
        }
        found: Row = {}
        for name, work in arms.items():
            count, began = 0, time.perf_counter()
            for size in itertools.cycle(order):
                work(size)
                count += size
                if time.perf_counter() - began > seconds:
                    break
            found[name] = count / (time.perf_counter() - began)
        return found

    def default_logits(self, images: Sequence[NDArray[np.float32]]) -> NDArray[np.floating] | None:
        """Logits of the session with the default options of ONNX Runtime, if there is one."""
        if self._defaults is None:
            return None
        return np.asarray(self._defaults.run(None, {self._input: np.stack(images)})[0])

    def _arms(self, images: list[NDArray[np.float32]]) -> dict[str, Work]:
        batch = np.stack(images)
        locked = batch.copy()
        if self._memory is not None:
            locked = self._memory.empty(batch.shape, np.float32)
            locked[:] = batch
        on_device = self._bare.create_ortvalue_from_shape_and_type(
            list(batch.shape), np.float32, *self._device
        )
        on_device.update_inplace(batch)
        to_host, stays = (self._binding(on_device, device) for device in (("cpu", 0), self._device))

        def bound() -> None:
            on_device.update_inplace(batch)
            self._bare.run_with_iobinding(to_host)
            to_host.copy_outputs_to_cpu()

        def alone() -> None:
            self._bare.run_with_iobinding(stays)
            stays.synchronize_outputs()

        return {
            "ours": lambda: self.classifier.logits(images),
            "session": lambda: self._bare.run(None, {self._input: batch}),
            "binding": bound,
            "kernel": alone,
            "copy": lambda: on_device.update_inplace(locked),
            "pageable": lambda: on_device.update_inplace(batch),
            "stack": lambda: np.stack(images, out=locked),
        }

    def _binding(self, on_device: onnxruntime.OrtValue, output: tuple[str, int]) -> onnxruntime.IOBinding:
        binding = self._bare.io_binding()
        binding.bind_ortvalue_input(self._input, on_device)
        binding.bind_output(self._output, *output)
        return binding


def alternate(arms: Mapping[str, Work], seconds: float) -> dict[str, list[float]]:
    """Seconds of each call; the arms take turns, so that a change of the machine meets all of them."""
    for work in arms.values():
        for _ in range(_WARM_UP):
            work()
    latencies: dict[str, list[float]] = {name: [] for name in arms}
    ends_at = time.perf_counter() + seconds * len(arms)
    while time.perf_counter() < ends_at or not latencies["ours"]:
        for name, work in arms.items():
            began = time.perf_counter()
            work()
            latencies[name].append(time.perf_counter() - began)
    return latencies


def summary(latencies: Sequence[float], images: int) -> Row:
    """Throughput by the mean time, and quantiles in milliseconds."""
    p50, p99 = np.quantile(latencies, (0.5, 0.99)) * 1000
    return {
        "images_per_second": images / float(np.mean(latencies)),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "runs": len(latencies),
    }


def decoding(architecture: Architecture, source_edge: int, seconds: float) -> float:
    """Images per second that one thread decodes and preprocesses, from JPEG files of one size."""
    files = [jpeg(source_edge, seed) for seed in range(8)]
    preprocessing = architecture.preprocessing
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        model_input(files[count % len(files)], preprocessing, maximum_pixels=10**8)
        count += 1
    return count / (time.perf_counter() - began)


def differences(graphs: Mapping[str, Graph], *, float32: str, half: str) -> Row:
    """Largest differences of a logit from float32 without TF32, and the range of the logits."""
    images = random_images(graphs[float32].architecture.edge, 16)
    exact = graphs[float32].classifier.logits(images)
    others = {
        "half": graphs[half].classifier.logits(images),
        "defaults": graphs[float32].default_logits(images),
    }
    return {"range": float(np.ptp(exact))} | {
        name: float(np.abs(found - exact).max()) for name, found in others.items() if found is not None
    }


def random_images(edge: int, count: int) -> list[NDArray[np.float32]]:
    """Normalised images of random colours in blocks."""
    rng = np.random.default_rng(0)
    coarse = rng.normal(size=(count, 3, 8, 8)).astype(np.float32)
    return list(np.kron(coarse, np.ones((1, 1, edge // 8, edge // 8), np.float32)))


def _default_session(file: Path, providers: Sequence[str], threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        str(file), sess_options=options, providers=list(providers), enable_fallback=0
    )
