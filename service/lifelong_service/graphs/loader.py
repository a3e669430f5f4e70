"""Loads a graph as a classifier: it must fit its preprocessing and task, and it is tried once."""

import logging
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.captures import CaptureError
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.libraries import TENSORRT
from lifelong_service.graphs.limits import RunLimit
from lifelong_service.graphs.page_locked import PageLockedMemory
from lifelong_service.graphs.provider_options import computes_in_half
from lifelong_service.graphs.providers import CPU
from lifelong_service.graphs.runs import BoundRun, PlainRun, Run
from lifelong_service.graphs.sessions import OpenSession, is_on_gpu, open_session
from lifelong_service.graphs.trial import capture, check_outputs, warm_up
from lifelong_service.graphs.trial_images import batch_sizes, image_shape, trial_images

_INPUT_TYPES: Final[dict[str, type[np.generic]]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_ONE_SHOT: Final = GpuUse()
UNCAPTURED_BATCH: Final = 16
"""Batch size of graphs on CUDA whose kernels cannot be captured."""
_loading: Final = threading.Lock()
"""A session that is opened on a GPU would end the capture of another graph."""

logger = logging.getLogger(__name__)


def load_classifier(
    graph: Path | bytes,
    preprocessing: Preprocessing,
    *,
    classes: int,
    providers: Sequence[str] = (),
    threads: int = 1,
    limit: RunLimit | None = None,
    gpu: GpuUse = _ONE_SHOT,
) -> Classifier:
    """Load a graph, check that it fits the preprocessing and the task, and run it on a grey image and a gradient.

    On a GPU it also runs every batch size that occurs, and with CUDA captures its kernels: powers of two up to the
    largest one. Other batches are filled, because cuDNN plans its kernels for each new size. Kernels that cannot be
    captured would be planned at every change of the size, so such graphs run batches of one size; single images where
    these have no fixed size, because each size would fill a batch.

    Args:
        graph: file or content of the ONNX model.
        preprocessing: preprocessing of its images.
        classes: number of classes of the task.
        providers: ONNX Runtime execution providers in order of preference; empty: CUDA where it can be started, else
            the CPU.
        threads: threads within one operator; 0: one per core.
        limit: time limit of later runs; None: no limit. The trial run here is not limited: the first run on an
            accelerator may take long.
        gpu: how this process uses the GPU.

    Raises:
        InvalidInputError: the graph cannot be loaded, or does not fit; nothing of it is kept.
        ConfigurationError: a provider is not known, not installed or cannot be started, or runs no node of the graph;
            or too many graphs share the memory of the GPU.
    """
    load = partial(_load, graph, preprocessing, classes, providers=providers, threads=threads, gpu=gpu)
    with _loading if is_on_gpu(providers, gpu) else nullcontext():
        reason = None
        try:
            classifier = load(captures=True)
        except CaptureError as error:
            classifier, reason = None, str(error)
        # Not in the handler: the error refers to the session that failed, and to its memory.
        if classifier is None:
            classifier = replace(load(captures=False), uncaptured=reason)
    if classifier.uncaptured is not None:
        logger.warning("kernels are not captured", extra={"details": {"reason": classifier.uncaptured}})
    return replace(classifier, limit=limit)


def _load(
    graph: Path | bytes,
    preprocessing: Preprocessing,
    classes: int,
    *,
    providers: Sequence[str],
    threads: int,
    gpu: GpuUse,
    captures: bool,
) -> Classifier:
    opened = open_session(
        graph,
        providers=providers,
        threads=threads,
        gpu=gpu,
        preprocessing=preprocessing,
        captures=captures,
    )
    _check_signature(opened.session, preprocessing, classes)
    shape = opened.session.get_inputs()[0].shape
    images = trial_images(shape, preprocessing)
    has_fixed_size = image_shape(shape, preprocessing) is not None
    is_captured = opened.captures and has_fixed_size
    runs = _runs(opened, gpu)
    sizes = _batch_sizes(opened, gpu, is_captured=is_captured, has_fixed_size=has_fixed_size)
    classifier = Classifier(
        runs=runs,
        preprocessing=preprocessing,
        classes=classes,
        batch_sizes=sizes,
        has_fixed_batch=isinstance(shape[0], int),
        trial_shape=images[0].shape,
        provider=opened.provider,
        preprocessing_digest=preprocessing_digest(preprocessing),
        unused_gpu=opened.unused_gpu,
        is_captured=is_captured,
        uncaptured="its images have no fixed size."
        if opened.captures and not is_captured
        else opened.uncaptured,
    )
    if is_captured:
        capture(classifier, images)
    is_coarse = opened.provider != CPU or opened.is_on_gpu or computes_in_half(opened.session)
    check_outputs(classifier, images, is_coarse=is_coarse)
    if opened.is_on_gpu and not is_captured:
        warm_up(classifier, images[0])
    return classifier


def _runs(opened: OpenSession, gpu: GpuUse) -> Run:
    kind = _INPUT_TYPES[opened.session.get_inputs()[0].type]
    if not opened.is_on_gpu:
        return PlainRun(opened.session, kind)
    return BoundRun(opened.session, kind, number=gpu.device, memory=PageLockedMemory(gpu.device))


def _batch_sizes(
    opened: OpenSession, gpu: GpuUse, *, is_captured: bool, has_fixed_size: bool
) -> tuple[int, ...] | None:
    """Sizes of the batches that run; None: any."""
    batch = opened.session.get_inputs()[0].shape[0]
    if isinstance(batch, int):
        return (batch,)
    if not opened.is_on_gpu:
        return None
    if is_captured or TENSORRT in opened.in_use:
        return batch_sizes(gpu.maximum_batch_size)
    return (min(UNCAPTURED_BATCH, gpu.maximum_batch_size),) if has_fixed_size else (1,)


def _check_signature(
    session: onnxruntime.InferenceSession, preprocessing: Preprocessing, classes: int
) -> None:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise _misfit(f"{len(inputs)} input(s) and {len(outputs)} output(s), expected one of each")
    shape, kind = list(inputs[0].shape), inputs[0].type
    if len(shape) != 4:
        raise _misfit(f"an input of rank {len(shape)}, expected 4 ({preprocessing.layout})")
    if kind not in _INPUT_TYPES:
        raise _misfit(f"an input of type {kind}, expected float32, float16 or uint8")
    if _INPUT_TYPES[kind] is np.uint8 and not preprocessing.keeps_values:
        raise InvalidInputError(
            "the graph takes grey values 0..255 (uint8), but the preprocessing normalises them.",
            field="preprocessing",
            hint="Leave out mean and standard_deviation: such a graph normalises its input itself.",
        )
    channels = shape[1 if preprocessing.layout == "NCHW" else 3]
    if isinstance(channels, int) and channels != preprocessing.channels:
        raise _misfit(f"{channels} input channel(s), but the preprocessing gives {preprocessing.channels}")
    logits = list(outputs[0].shape)
    is_single = classes == 2 and (len(logits) == 1 or logits[1:] == [1])
    if not is_single and (len(logits) != 2 or (isinstance(logits[1], int) and logits[1] != classes)):
        raise _misfit(f"an output of another shape, expected (N, {classes}): one logit per class of the task")


def _misfit(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"the graph has {what}.", field="onnx", hint="Export it again, or correct task and preprocessing."
    )
