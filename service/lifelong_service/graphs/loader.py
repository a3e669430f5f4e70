"""The thread that makes graphs ready for use, one after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeAlias

from lifelong_core.store.registry.records import Model, Task
from lifelong_service.graphs.classifier import Classifier

Load: TypeAlias = Callable[[Model, Task], Classifier]
_Job: TypeAlias = "tuple[Future[Classifier], Model, Task]"


class GraphLoader:
    """Loads in the background. Storage that hangs keeps nobody from anything, not even the process from ending.

    Args:
        load: makes a model's graph ready for use.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_closed = threading.Event()
        # A daemon, unlike the threads of an executor: those are waited for at the very end of the process.
        self._thread = threading.Thread(target=self._work, name="graph-loader", daemon=True)
        self._thread.start()

    def submit(self, model: Model, task: Task) -> "Future[Classifier]":
        """Load it when those before are done."""
        future: Future[Classifier] = Future()
        self._jobs.put((future, model, task))
        return future

    def close(self) -> None:
        """Begin no other; waits for the one that is being loaded."""
        self._is_closed.set()
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None and not self._is_closed.is_set():
            future, model, task = job
            try:
                future.set_result(self._load(model, task))
            except BaseException as error:  # noqa: BLE001 - it is raised to whoever asks for the result
                future.set_exception(error)
