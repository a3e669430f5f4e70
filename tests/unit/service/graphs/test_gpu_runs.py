"""On a GPU, bound buffers give the logits of a plain run, in any batch and in any number of threads."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.errors import ConfigurationError, InvalidInputError, LifelongError, UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs import page_locked, sessions
from lifelong_service.graphs.captures import DEVICE, SharedDevice
from lifelong_service.graphs.classifier import Classifier, GraphTimeoutError
from lifelong_service.graphs.limits import RunLimit
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.page_locked import PageLockedMemory
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
def test_bound_buffers_give_the_logits_of_a_plain_run(gpu: Machine, graph: bytes, classes: int) -> None:
    bound, plain = pair(graph, classes=classes)
    assert bound.provider == CUDA
    for count in (1, 2, 3, 8, 9, 21):
        before = gpu.bound_runs
        for _ in range(2):  # the first run of a size tells the shape of the output
            np.testing.assert_allclose(bound.logits(images(count)), plain.logits(images(count)), atol=1e-6)
        assert gpu.bound_runs > before, count


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


def test_a_thread_waits_for_the_run_of_another_one(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread waits within its run: the second one must not write to the same buffer."""
    bound, plain = pair(onnx_graphs.linear())
    began, may_end = threading.Event(), threading.Event()
    session = onnxruntime.InferenceSession
    real: Callable[..., None] = session.run_with_iobinding

    def wait_in_the_first(self: Any, *arguments: Any) -> None:
        if not began.is_set():
            began.set()
            may_end.wait(30)
        real(self, *arguments)

    monkeypatch.setattr(session, "run_with_iobinding", wait_in_the_first)
    own, other = images(2), [image + 1 for image in images(2)]
    found: dict[str, np.ndarray] = {}
    first = threading.Thread(target=lambda: found.update(own=bound.logits(own)))
    second = threading.Thread(target=lambda: found.update(other=bound.logits(other)))
    first.start()
    assert began.wait(30)
    second.start()
    second.join(0.2)
    assert found == {}
    may_end.set()
    first.join()
    second.join()
    np.testing.assert_allclose(found["own"], plain.logits(own), atol=1e-6)
    np.testing.assert_allclose(found["other"], plain.logits(other), atol=1e-6)


def test_each_batch_size_replays_its_own_kernels_from_the_first_request_on(gpu: Machine) -> None:
    bound, _ = pair(onnx_graphs.linear(), maximum=8)
    assert bound.is_captured
    gpu.replayed.clear()
    for count in (1, 2, 3, 8, 1, 3):
        bound.logits(images(count))
    one, two, four, eight, again, four_again = gpu.replayed
    assert (again, four_again) == (one, four)
    assert len({one, two, four, eight, "-1"}) == 5


@pytest.mark.parametrize("fault", ["refuses_captures", "replays_nothing"])
def test_a_graph_that_cannot_be_captured_runs_batches_of_one_size(
    gpu: Machine, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    setattr(gpu, fault, True)
    bound, plain = pair(onnx_graphs.linear(), maximum=64)
    [warned] = [one for one in caplog.records if one.message == "kernels are not captured"]
    assert warned.__dict__["details"]["reason"]
    assert (bound.is_captured, bound.batch_sizes) == (False, (16,))
    gpu.replayed.clear()
    np.testing.assert_allclose(bound.logits(images(21)), plain.logits(images(21)), atol=1e-6)
    assert gpu.replayed == ["-1", "-1"]


def test_images_of_any_size_are_not_captured(gpu: Machine, caplog: pytest.LogCaptureFixture) -> None:
    bound, _ = pair(onnx_graphs.mean_of_any_size())
    assert caplog.messages == ["kernels are not captured"]
    assert caplog.records[0].__dict__["details"]["reason"] == "its images have no fixed size."
    assert (bound.is_captured, bound.batch_sizes) == (False, (1,))
    assert set(gpu.replayed) == {"-1"}
    assert {shape[0] for _, _, shape in gpu.placed} == {1}


def test_a_graph_with_control_flow_is_not_captured_and_the_reason_is_told(
    gpu: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    gpu.lacks_captures = True
    bound, plain = pair(onnx_graphs.linear(), maximum=64)
    assert (bound.is_captured, bound.batch_sizes) == (False, (16,))
    assert [one.__dict__["details"]["reason"] for one in caplog.records] == [bound.uncaptured]
    assert "ONNX Runtime cannot load the graph" in str(bound.uncaptured)
    np.testing.assert_allclose(bound.logits(images(3)), plain.logits(images(3)), atol=1e-6)


def test_a_graph_with_most_nodes_on_the_cpu_still_uses_buffers_and_the_thread_of_the_gpu(
    gpu: Machine,
) -> None:
    gpu.runs_most_on = CPU
    bound = load_classifier(onnx_graphs.linear(), GREY, classes=3)
    plain = load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CPU])
    assert (bound.provider, bound.is_captured) == (CPU, True)
    before = gpu.bound_runs
    np.testing.assert_allclose(bound.logits(images(3)), plain.logits(images(3)), atol=1e-6)
    assert gpu.bound_runs == before + 1


def test_a_capture_waits_for_the_runs_of_other_graphs_and_they_wait_for_it() -> None:
    device = SharedDevice()
    order: list[str] = []
    uses, may_end, captures = threading.Event(), threading.Event(), threading.Event()

    def use(name: str) -> None:
        with device.used():
            uses.set()
            may_end.wait(30)
            order.append(name)

    def capture() -> None:
        captures.set()
        with device.taken():
            order.append("capture")

    threads = [threading.Thread(target=use, args=("before",)), threading.Thread(target=capture)]
    threads[0].start()
    assert uses.wait(30)
    threads[1].start()
    assert captures.wait(30)
    time.sleep(0.05)
    threads.append(threading.Thread(target=use, args=("after",)))
    threads[2].start()
    time.sleep(0.05)
    assert order == []
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert order == ["before", "capture", "after"]


def test_the_thread_of_a_graph_frees_its_session_and_ends_when_the_graph_is_dropped(gpu: Machine) -> None:
    before = set(threading.enumerate())
    bound = load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CUDA])
    [thread] = set(threading.enumerate()) - before
    assert len(sessions._open) == 1
    with DEVICE.taken():
        del bound
        thread.join(0.1)
        assert len(sessions._open) == 1, "freed during a capture"
    thread.join(30)
    assert (thread.is_alive(), len(sessions._open)) == (False, 0)


def test_buffers_of_a_failed_run_are_not_used_again(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, plain = pair(onnx_graphs.mean_of_any_size())
    bound.logits(images(2))
    placed = len(gpu.placed)
    fail_runs(monkeypatch, "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code", times=1)
    with pytest.raises(InvalidInputError, match="the model fails on an input of shape"):
        bound.logits(images(2))
    np.testing.assert_allclose(bound.logits(images(2)), plain.logits(images(2)), atol=1e-6)
    assert len(gpu.placed) == placed + 1


def fail_runs(monkeypatch: pytest.MonkeyPatch, message: str, *, times: float = math.inf) -> None:
    """Let the next runs on the GPU fail."""
    session = onnxruntime.InferenceSession
    real: Callable[..., None] = session.run_with_iobinding
    runs = itertools.count(1)

    def run(self: Any, *arguments: Any) -> None:
        if next(runs) <= times:
            raise RuntimeError(message)
        real(self, *arguments)

    monkeypatch.setattr(session, "run_with_iobinding", run)


ILLEGAL = "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h"


def test_a_gpu_that_fails_for_every_image_is_a_fault_of_the_worker(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound, _ = pair(onnx_graphs.linear())
    fail_runs(monkeypatch, ILLEGAL)
    with pytest.raises(UnavailableError, match="CUDA failure 700") as raised:
        bound.logits(images(2))
    assert "hostname" not in str(raised.value)
    assert DEVICE.failure is not None


def test_a_gpu_that_fails_for_one_image_only_is_a_fault_of_the_image(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound, plain = pair(onnx_graphs.mean_of_any_size())
    fail_runs(monkeypatch, "CUDNN failure 9: CUDNN_STATUS_NOT_SUPPORTED ; GPU=0", times=1)
    with pytest.raises(InvalidInputError, match="the model fails on an input of shape"):
        bound.logits(images(1, edge=9))
    assert DEVICE.failure is None
    np.testing.assert_allclose(bound.logits(images(1)), plain.logits(images(1)), atol=1e-6)


def test_buffers_of_other_shapes_make_room_when_memory_is_full(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound, plain = pair(onnx_graphs.mean_of_any_size())
    for edge in range(4, 9):
        bound.logits(images(1, edge=edge))
    fail_runs(monkeypatch, "[ONNXRuntimeError] : 1 : FAIL : CUDNN_STATUS_ALLOC_FAILED", times=1)
    held = len(gpu.locked)
    np.testing.assert_allclose(bound.logits(images(1, edge=9)), plain.logits(images(1, edge=9)), atol=1e-6)
    bound.logits(images(1, edge=10))  # frees what is unused
    assert len(gpu.locked) < held


def test_a_late_call_of_captured_kernels_is_ended(gpu: Machine) -> None:
    """A frozen batch of one: each image is a replay, which does not look at the time."""
    limit = RunLimit(0.2)
    bound = load_classifier(onnx_graphs.linear(batch=1), GREY, classes=3, providers=[CUDA], limit=limit)
    assert bound.is_captured
    outcome: list[type[Exception] | None] = []
    limit.start()
    try:
        with DEVICE.taken():
            late = threading.Thread(target=lambda: outcome.append(error_of(bound, images(8))))
            late.start()
            time.sleep(1)
        before = gpu.bound_runs
        late.join(30)
        assert outcome == [GraphTimeoutError]
        assert gpu.bound_runs == before
    finally:
        limit.close()


def error_of(bound: Classifier, some: Sequence[np.ndarray]) -> type[Exception] | None:
    try:
        bound.logits(some)
    except LifelongError as error:
        return type(error)
    return None


def test_host_memory_that_cannot_be_locked_is_named(gpu: Machine) -> None:
    gpu.refuses_locks = True
    with pytest.raises(ConfigurationError, match="CUDA cannot lock host memory"):
        load_classifier(onnx_graphs.linear(), GREY, classes=3, providers=[CUDA])
    gpu.refuses_locks = False
    bound, _ = pair(onnx_graphs.mean_of_any_size())
    gpu.refuses_locks = True
    with pytest.raises(ConfigurationError, match="CUDA cannot lock host memory"):
        bound.logits(images(1, edge=9))


class Emptied(SimpleQueue[Any]):
    """Another thread takes the last one between the question and the call."""

    def empty(self) -> bool:
        return False


def test_a_thread_does_not_wait_for_memory_that_another_one_has_freed(
    gpu: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_locked, "_unused", Emptied())
    memory = PageLockedMemory(0, gpu.runtime())
    thread = threading.Thread(target=memory.empty, args=((4,), np.float32), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_memory_of_a_full_gpu_is_named(gpu: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, _ = pair(onnx_graphs.linear())

    fail_runs(monkeypatch, "[ONNXRuntimeError] : 1 : FAIL : CUDA failure 2: out of memory ; GPU=0")
    with pytest.raises(InvalidInputError, match="more memory than there is"):
        bound.logits(images(2))


def test_images_of_many_sizes_keep_few_buffers(gpu: Machine) -> None:
    bound, plain = pair(onnx_graphs.mean_of_any_size())
    for edge in range(4, 4 + 2 * _KEPT_BUFFERS):
        some = images(2, edge=edge)
        np.testing.assert_allclose(bound.logits(some), plain.logits(some), atol=1e-6)
    held = len(gpu.locked)
    assert _KEPT_BUFFERS <= held <= _KEPT_BUFFERS + 2


def test_a_graph_that_mixes_images_is_refused_on_a_gpu_too(gpu: Machine) -> None:
    with pytest.raises(InvalidInputError, match="mixes the images"):
        load_classifier(onnx_graphs.batch_statistics(), GREY, classes=3, providers=[CUDA])
