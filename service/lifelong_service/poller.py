"""The thread that keeps a worker up to date: it asks the store for changes and publishes them as a snapshot."""

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from lifelong_core.errors import LifelongError
from lifelong_core.store.records import Model, Registry, Task
from lifelong_service import metrics
from lifelong_service.inference import Classifier
from lifelong_service.snapshot import Snapshot, needs_graph

RETRY_SECONDS = 10.0
"""After this time a graph that could not be loaded is tried again: its storage may have been away."""

logger = logging.getLogger(__name__)


class RegistryPoller:
    """Publishes a new snapshot whenever the registry changes or a graph has been loaded.

    Graphs are loaded in a thread of their own, so that heads of other models need not wait for them.

    Args:
        fetch: the registry, or None when it is still at the given revision; raises when the store is away.
        load: makes a model's graph ready for use.
        seconds: time between two questions.
        on_orphaned: called once when the parent process has died.
        parent: its id; None: whichever it is now.
    """

    def __init__(
        self,
        fetch: Callable[[int | None], Registry | None],
        load: Callable[[Model, Task], Classifier],
        *,
        seconds: float,
        on_orphaned: Callable[[], None] = lambda: None,
        parent: int | None = None,
    ) -> None:
        self._fetch = fetch
        self._load = load
        self._seconds = seconds
        self._on_orphaned = on_orphaned
        self._parent = os.getppid() if parent is None else parent
        self._registry: Registry | None = None
        self._classifiers: dict[int, Classifier] = {}
        self._failures: dict[int, str] = {}
        self._retry_at: dict[int, float] = {}
        self._loading: dict[int, Future[Classifier]] = {}
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="graph-loader")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registry-poller", daemon=True)
        self.snapshot: Snapshot | None = None
        self.problem: str | None = "the registry has not been read yet."

    def start(self) -> None:
        """Read the registry, wait for its graphs, then go on in the background. Raises nothing: see `problem`."""
        self.poll()
        for future in list(self._loading.values()):
            future.exception()  # waits; the next poll looks at the outcome
        self.poll()
        self._thread.start()

    def close(self) -> None:
        """End the threads."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._loader.shutdown(wait=True, cancel_futures=True)

    @property
    def revision(self) -> int:
        """The registry's revision that is served; -1 before the first."""
        return self.snapshot.registry.revision if self.snapshot is not None else -1

    def poll(self) -> None:
        """Ask once and publish what has changed."""
        try:
            changed = self._fetch(self._registry.revision if self._registry else None)
        except LifelongError as error:
            self._report(str(error))
            return
        self._report(None)
        if changed is not None:
            self._registry = changed
        if self._registry is None:
            return
        finished = self._collect(self._registry)
        self._load_missing(self._registry)
        if changed is not None or finished:
            self._publish(self._registry)

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self.poll()
            except Exception as error:
                logger.exception("the registry could not be taken over")
                self._report(f"{type(error).__name__}: {error}")
            if os.getppid() != self._parent:
                self._on_orphaned()
                return

    def _report(self, problem: str | None) -> None:
        if problem != self.problem and problem is not None:
            logger.warning("the registry cannot be read", extra={"details": {"reason": problem}})
        self.problem = problem

    def _load_missing(self, registry: Registry) -> None:
        now = time.monotonic()
        for model in registry.models.values():
            known = model.id in self._classifiers or model.id in self._loading
            if known or not needs_graph(registry, model) or now < self._retry_at.get(model.id, now):
                continue
            task = registry.tasks[model.task_id]
            self._loading[model.id] = self._loader.submit(self._load, model, task)

    def _collect(self, registry: Registry) -> bool:
        """Take over what the loader has finished; whether there was anything."""
        finished = [model_id for model_id, future in self._loading.items() if future.done()]
        for model_id in finished:
            error = (future := self._loading.pop(model_id)).exception()
            reference = registry.models[model_id].reference
            if error is None:
                self._classifiers[model_id] = future.result()
                self._failures.pop(model_id, None)
                logger.info("loaded a model", extra={"details": {"model": reference}})
                continue
            self._failures[model_id] = str(error)
            self._retry_at[model_id] = time.monotonic() + RETRY_SECONDS
            logger.error("cannot load a model", extra={"details": {"model": reference, "reason": str(error)}})
        return bool(finished)

    def _publish(self, registry: Registry) -> None:
        previous = self.snapshot
        # One reference assignment: a reader has the old snapshot or the new one, never a mixture.
        self.snapshot = Snapshot.following(previous, registry, self._classifiers, self._failures)
        swapped = _swapped_heads(previous, registry)
        if swapped:
            metrics.HEAD_SWAPS_SEEN.inc(len(swapped))
            logger.info(
                "took over heads", extra={"details": {"heads": swapped, "revision": registry.revision}}
            )


def _swapped_heads(previous: Snapshot | None, registry: Registry) -> list[str]:
    """Every head that replaces another, as `model@version environment: old -> new`."""
    if previous is None:
        return []
    before = previous.registry.heads
    return [
        f"{registry.models[model_id].reference} {environment or '*'}: {before[key].version} -> {record.version}"
        for key, record in registry.heads.items()
        if key in before and before[key].version != record.version
        for model_id, environment in [key]
    ]
