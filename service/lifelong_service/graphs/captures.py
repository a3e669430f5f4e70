"""Captures of kernels as CUDA graphs, beside other threads that use the same GPU; the thread of a graph.

While ONNX Runtime captures, CUDA refuses copies and allocations to all other threads of the process, and the first
refused one ends the capture: both fail. So a capture waits for the runs of other graphs, and they wait for it. CUDA
graphs and handles of cuDNN belong to the thread that made them.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
_Calls: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]"


class CaptureError(Exception):
    """Kernels cannot be captured, or a replay does not compute what the graph computes."""


class SharedDevice:
    """A GPU that threads use together, or one of them alone.

    Attributes:
        failure: why this process cannot use it any more: it fails for every image. None: it works.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self._changed = threading.Condition()
        self._users = 0
        self._is_taken = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use the device in the block beside others; nothing is captured in the meantime."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Use the device in the block alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._is_taken = True
            self._changed.wait_for(lambda: self._users == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()


DEVICE = SharedDevice()
"""The GPU of this process."""


class GraphThread:
    """Makes one call at a time, in one thread, which ends when nothing refers to this object any more.

    Args:
        session: kept until the thread ends, so that it is freed there, while nothing is captured.
    """

    def __init__(self, session: object) -> None:
        self._calls: _Calls = SimpleQueue()
        # The thread must not refer to this object. A daemon: a run that hangs must not keep the process from ending.
        threading.Thread(target=_work, args=(self._calls, [session]), name="graph", daemon=True).start()
        weakref.finalize(self, self._calls.put, None)

    def call(self, work: Callable[[], Result]) -> Result:
        """Return the result of the work, or raise its error; any thread may call this."""
        future: Future[Result] = Future()
        self._calls.put((future, work))
        try:
            return future.result()
        finally:
            del (
                future
            )  # an error's traceback refers to this frame: a cycle that only the garbage collector would free


def _work(calls: _Calls, kept: list[object]) -> None:
    while (call := calls.get()) is not None:
        future, work = call
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - `call` raises it in the thread of the caller
            future.set_exception(error)
        del call, future, work  # frees their memory before the next call arrives
    with DEVICE.used():
        kept.clear()
