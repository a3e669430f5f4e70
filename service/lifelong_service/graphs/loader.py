"""The thread that loads graphs, one after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeAlias

from lifelong_core.store.registry.records import Model, Task
from lifelong_service.graphs.classifier import Classifier

Load: TypeAlias = Callable[[Model, Task], Classifier]
_Load: TypeAlias = "tuple[Future[Classifier], Model, Task]"


class GraphLoader:
    """Loads graphs in the background. Hung storage blocks neither requests nor shutdown.

    Args:
        load: loads the graph of a model.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._queue: SimpleQueue[_Load | None] = SimpleQueue()
        self._is_closed = threading.Event()
        # A daemon, unlike the threads of an executor: those are waited for at the very end of the process.
        self._thread = threading.Thread(target=self._work, name="graph-loader", daemon=True)
        self._thread.start()

    def submit(self, model: Model, task: Task) -> "Future[Classifier]":
        """Queue a graph; return the future of the loaded one."""
        future: Future[Classifier] = Future()
        self._queue.put((future, model, task))
        return future

    def close(self) -> None:
        """End the thread after the graph that it loads now."""
        self._is_closed.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (load := self._queue.get()) is not None and not self._is_closed.is_set():
            future, model, task = load
            try:
                future.set_result(self._load(model, task))
            except BaseException as error:  # noqa: BLE001 - raised to the caller of the future
                future.set_exception(error)
            del load, future, model, task  # frees the graph where nothing else refers to it
