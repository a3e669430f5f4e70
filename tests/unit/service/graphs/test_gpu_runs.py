"""On a GPU, bound buffers give the logits of a plain run, in any batch and in any number of threads."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from lifelong_core.errors import InvalidInputError
from lifelong_core.gpu import GpuUse
from lifelong_core.preprocessing import Preprocessing
from lifelong_service.graphs.classifier import Classifier, load_classifier
from lifelong_service.graphs.runs import _KEPT_BUFFERS
from tests.unit.service import onnx_graphs
from tests.unit.service.graphs.gpu_double import CPU, CUDA, Machine, images

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


def pair(graph: bytes, *, classes: int = 3, maximum: int = 8) -> tuple[Classifier, Classifier]:
    """The graph on the GPU and on the CPU."""
    use = GpuUse(device=0, maximum_batch_size=maximum)
    bound = load_classifier(graph, GREY, classes=classes, providers=[CUDA], gpu=use)
    plain = load_classifier(graph, GREY, classes=classes, providers=[CPU])
    return bound, plain


@pytest.mark.parametrize(
    ("graph", "classes"),
    [
        (onnx_graphs.linear(), 3),
        (onnx_graphs.linear(element=TensorProto.FLOAT16), 3),
        (onnx_graphs.linear(element=TensorProto.UINT8), 3),
        (onnx_graphs.linear(batch=1), 3),
        (onnx_graphs.linear(batch=4), 3),
        (onnx_graphs.one_logit(rank=1), 2),
        (onnx_graphs.one_logit(rank=2), 2),
    ],
    ids=["float32", "float16", "uint8", "batch 1", "batch 4", "rank 1", "rank 2"],
)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 21])
def test_bound_buffers_give_the_logits_of_a_plain_run(
    gpu: Machine, graph: bytes, classes: int, count: int
) -> None:
    bound, plain = pair(graph, classes=classes)
    before = gpu.bound_runs
    for _ in range(2):  # the first run of a size tells the shape of the output
        np.testing.assert_allclose(bound.logits(images(count)), plain.logits(images(count)), atol=1e-6)
    assert gpu.bound_runs > before
    assert bound.provider == CUDA


def test_loading_runs_every_batch_size_and_later_batches_need_no_new_buffers(gpu: Machine) -> None:
    bound, _ = pair(onnx_graphs.linear(), maximum=20)
    assert {(device, number) for device, number, _ in gpu.placed} == {("cuda", 0)}
    assert sorted(shape[0] for _, _, shape in gpu.placed) == [1, 2, 4, 8, 16, 20]
    placed = list(gpu.placed)
    for count in (1, 3, 5, 17, 20, 50):
        bound.logits(images(count))
    assert gpu.placed == placed


def test_the_cpu_runs_every_batch_as_it_is_and_without_buffers(gpu: Machine) -> None:
    plain = load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CPU])
    assert plain.batch_sizes is None
    before = gpu.plain_runs
    plain.logits(images(5))
    assert (gpu.plain_runs - before, gpu.bound_runs, gpu.placed) == (1, 0, [])


def test_earlier_logits_stay_when_a_later_batch_uses_the_buffers(gpu: Machine) -> None:
    bound, _ = pair(onnx_graphs.linear())
    first = bound.logits(images(2))
    copied = first.copy()
    bound.logits([image + 1 for image in images(2)])
    assert np.array_equal(first, copied)


def test_two_threads_get_their_own_logits(gpu: Machine) -> None:
    bound, plain = pair(onnx_graphs.linear())
    meets = threading.Barrier(2)
    wrong: list[str] = []

    def work(seed: int) -> None:
        own = [image * (1 + seed) for image in images(4)]
        expected = plain.logits(own)
        meets.wait()
        for _ in range(200):
            if not np.allclose(bound.logits(own), expected, atol=1e-5):
                wrong.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_in_one_run_never_share_a_buffer(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread waits within its run until the second one has finished."""
    bound, plain = pair(onnx_graphs.linear())
    began, may_end = threading.Event(), threading.Event()
    session = type_of_session()
    real: Callable[..., None] = session.run_with_iobinding

    def wait_in_the_first(self: Any, *arguments: Any) -> None:
        if not began.is_set():
            began.set()
            may_end.wait(30)
        real(self, *arguments)

    monkeypatch.setattr(session, "run_with_iobinding", wait_in_the_first)
    found: list[np.ndarray] = []
    slow = threading.Thread(target=lambda: found.append(bound.logits(images(2))))
    slow.start()
    assert began.wait(30)
    other = [image + 1 for image in images(2)]
    np.testing.assert_allclose(bound.logits(other), plain.logits(other), atol=1e-6)
    may_end.set()
    slow.join()
    np.testing.assert_allclose(found[0], plain.logits(images(2)), atol=1e-6)


def type_of_session() -> Any:
    return onnxruntime.InferenceSession


def test_buffers_of_a_failed_run_are_not_used_again(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, plain = pair(onnx_graphs.linear())
    placed = len(gpu.placed)
    session = type_of_session()
    real = session.run_with_iobinding

    def fail(self: Any, *arguments: Any) -> None:
        raise RuntimeError("CUDA failure 700: an illegal memory access was encountered")

    monkeypatch.setattr(session, "run_with_iobinding", fail)
    with pytest.raises(InvalidInputError, match="the model fails on an input of shape"):
        bound.logits(images(2))
    monkeypatch.setattr(session, "run_with_iobinding", real)
    np.testing.assert_allclose(bound.logits(images(2)), plain.logits(images(2)), atol=1e-6)
    assert len(gpu.placed) == placed + 1


def test_memory_of_a_full_gpu_is_named(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, _ = pair(onnx_graphs.linear())

    def fail(self: Any, *arguments: Any) -> None:
        raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : CUDA failure 2: out of memory ; GPU=0")

    monkeypatch.setattr(type_of_session(), "run_with_iobinding", fail)
    with pytest.raises(InvalidInputError, match="more memory than there is"):
        bound.logits(images(2))


def test_images_of_many_sizes_keep_few_buffers(gpu: Machine) -> None:
    bound, plain = pair(onnx_graphs.mean_of_any_size())
    for edge in range(4, 4 + 2 * _KEPT_BUFFERS):
        some = images(2, edge=edge)
        np.testing.assert_allclose(bound.logits(some), plain.logits(some), atol=1e-6)
    held = len(gpu.locked)
    assert 2 * _KEPT_BUFFERS <= held <= 2 * _KEPT_BUFFERS + 2


def test_a_graph_that_mixes_images_is_refused_on_a_gpu_too(gpu: Machine) -> None:
    with pytest.raises(InvalidInputError, match="mixes the images"):
        load_classifier(onnx_graphs.batch_statistics(), GREY, classes=3, providers=[CUDA])
