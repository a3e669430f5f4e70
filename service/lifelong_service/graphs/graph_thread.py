"""The thread of a graph on a GPU: CUDA graphs and handles of cuDNN belong to the thread that made them."""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from lifelong_service.graphs.captures import DEVICE

Result = TypeVar("Result")
_Calls: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]"


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
