"""The thread that polls the registry and publishes each change as a snapshot."""

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from lifelong_core.entities.registry import Registry
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.store.heads.rows import keep_last_good
from lifelong_core.store.registry.changes import Changes
from lifelong_core.values.errors import LifelongError
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.prediction.snapshot import RETRY_SECONDS, Snapshot, needs_graph
from lifelong_service.worker.model_loader import GraphLoader, Load
from lifelong_service.worker.serving_state import ServingState
from lifelong_service.worker.snapshot_changes import report_changes

POLL_TIMEOUT_SECONDS = 2.0
"""Time limit of a poll; after it the worker serves the last known registry."""
FIRST_POLL_TIMEOUT_SECONDS = 30.0
"""Time limit of the first poll when no registry is cached."""

logger = logging.getLogger(__name__)


class RegistryPoller:
    """Publishes a new snapshot whenever the registry changes or a graph has been loaded.

    Graphs are loaded in a separate thread, so that heads of other models do not wait for them. While the store does not
    answer, the last known registry is served; before the first read, the cached one.

    Args:
        fetch: returns the registry, or None while it has the given revision; raises if the store cannot be reached. It
            may hang: another thread calls it, with a time limit.
        load: loads the graph of a model.
        serving: updated by this poller only.
        seconds: longest time between two polls.
        recall: returns the registry from the cache on the disk, or None; called once.
        changes: waits between two polls.
        published: called with each registry that is served from now on.
        stop: called once with the reason why this process has to end: its parent has died, or `fault` gives one.
        fault: reason why this process cannot answer any more; None: there is none.
        quarantined: why models must not be served, by reference; `load` refuses them.
        parent: process id of the parent; None: the present parent.
    """

    def __init__(
        self,
        fetch: Callable[[int | None], Registry | None],
        load: Load,
        *,
        serving: ServingState,
        seconds: float,
        recall: Callable[[], Registry | None] = lambda: None,
        changes: Callable[[], Changes] | None = None,
        published: Callable[[Registry], None] = lambda _: None,
        stop: Callable[[str], None] = lambda _: None,
        fault: Callable[[], str | None] = lambda: None,
        quarantined: Callable[[], Mapping[str, str]] = dict,
        parent: int | None = None,
    ) -> None:
        self._fetch = fetch
        self.serving = serving
        self._seconds = seconds
        self._recall = recall
        plain = Changes()
        self._changes = changes or (lambda: plain)
        self._published = published
        self._stop = stop
        self._fault = fault
        self._quarantined = quarantined
        self._parent = os.getppid() if parent is None else parent
        self._reader = DeadlineThread("registry-reader")
        self._known_revision: int | None = None
        self._ask_for_all_at = math.inf
        self._recalled: Registry | None = None
        self._has_recalled = False
        self._registry: Registry | None = None
        self._classifiers: dict[int, Classifier] = {}
        self._failures: dict[int, str] = {}
        self._retry_at: dict[int, float] = {}
        self._loading: dict[int, Future[Classifier]] = {}
        self._loader = GraphLoader(load)
        self._thread = BackgroundThread("registry-poller", self._run)

    def start(self) -> None:
        """Read the registry, load its graphs, then poll in the background. Errors go to `ServingState.problem`."""
        self._reader.start()
        # Without a cached registry there is nothing to serve: wait longer for the store.
        self.poll(
            timeout_seconds=FIRST_POLL_TIMEOUT_SECONDS if self._last_known() is None else POLL_TIMEOUT_SECONDS
        )
        for future in list(self._loading.values()):
            future.exception()  # waits; the next poll looks at the outcome
        self.poll()
        self._thread.start()

    def close(self) -> None:
        """End the threads."""
        self._thread.stopping.set()
        self._reader.hurry()
        self._changes().close()
        self._thread.join()
        self._reader.close()
        self._loader.close()

    def poll(self, *, timeout_seconds: float = POLL_TIMEOUT_SECONDS) -> None:
        """Read the registry once and publish its changes."""
        was_away = self.serving.problem is not None
        changed = self._ask(timeout_seconds)
        if changed is None and self._registry is None:
            changed = self._last_known()
        if changed is not None and _is_same(changed, self._registry):
            changed = None
        if changed is not None:
            self._registry = changed
        if self._registry is None:
            return
        finished = self._collect(self._registry) or self._drop_quarantined(self._registry)
        if changed is not None or finished:
            self._drop_unneeded(self._registry)
        self._load_missing(self._registry)
        if changed is not None or finished:
            self._publish(self._registry)
        elif was_away and self.serving.problem is None:
            self._published(self._registry)  # unchanged, but listeners need a database that answers

    def _ask(self, timeout_seconds: float) -> Registry | None:
        """Return the registry of the store, if it differs from the known one and the store answers."""
        # With damaged heads, the whole registry is read periodically: they may have been repaired in the database.
        known = self._known_revision if time.monotonic() < self._ask_for_all_at else None
        try:
            changed = self._reader.call(lambda: self._fetch(known), timeout_seconds)
        except Exception as error:  # noqa: BLE001 - an unreadable row must not stop the known registry
            self._report(str(error) if isinstance(error, LifelongError) else _unexpected(error), error)
            # A database restored from a backup may have the same revision with another content.
            self._known_revision = None
            return None
        self._report(None)
        if changed is not None:
            self._known_revision = changed.revision
            self._ask_for_all_at = time.monotonic() + RETRY_SECONDS if changed.damaged else math.inf
            changed = self._with_last_good(changed)
        return changed

    def _with_last_good(self, registry: Registry) -> Registry:
        if not registry.damaged:
            return registry
        previous = self._last_known() if self.serving.snapshot is None else self.serving.snapshot.registry
        return registry if previous is None else keep_last_good(registry, previous)

    def _last_known(self) -> Registry | None:
        """Return the cached registry, as read at the first call."""
        if not self._has_recalled:
            self._has_recalled = True
            try:
                self._recalled = self._recall()
            except LifelongError as error:
                self.serving.recall_problem = str(error)
                logger.warning(
                    "the cached registry cannot be used", extra={"details": {"reason": str(error)}}
                )
        return self._recalled

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            self._changes().wait(self._seconds)
            if self._thread.stopping.is_set():
                return
            try:
                self.poll()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; it is logged once
                self._report(_unexpected(error), error)
            reason = self._fault() if os.getppid() == self._parent else "its parent process has died"
            if reason is not None:
                self._stop(reason)
                return

    def _report(self, problem: str | None, error: Exception | None = None) -> None:
        if problem != self.serving.problem and problem is not None:
            unexpected = None if isinstance(error, LifelongError) else error
            details = {"details": {"reason": problem}}
            logger.warning("the registry cannot be read", extra=details, exc_info=unexpected)
        self.serving.problem = problem

    def _load_missing(self, registry: Registry) -> None:
        now = time.monotonic()
        for model in registry.models.values():
            known = model.id in self._classifiers or model.id in self._loading
            if known or not needs_graph(registry, model) or now < self._retry_at.get(model.id, now):
                continue
            task = registry.tasks[model.task_id]
            self._loading[model.id] = self._loader.submit(model, task)

    def _collect(self, registry: Registry) -> bool:
        """Add finished graphs of the loader; return whether there were any."""
        finished = [model_id for model_id, future in self._loading.items() if future.done()]
        for model_id in finished:
            error = (future := self._loading.pop(model_id)).exception()
            if model_id not in registry.models:  # removed since: the database was restored
                continue
            reference = registry.models[model_id].reference
            if error is None:
                self._classifiers[model_id] = future.result()
                self._failures.pop(model_id, None)
                details = {"model": reference, "provider": self._classifiers[model_id].provider}
                logger.info("loaded a model", extra={"details": details})
                if (reason := self._classifiers[model_id].unused_gpu) is not None:
                    details |= {"reason": reason}
                    logger.warning("CUDA is installed and cannot be started", extra={"details": details})
                continue
            self._retry_at[model_id] = time.monotonic() + RETRY_SECONDS
            reason = str(error) or type(error).__name__
            if self._failures.get(model_id) != reason:
                details = {"model": reference, "reason": reason}
                logger.error("cannot load a model", extra={"details": details})
            self._failures[model_id] = reason
        return bool(finished)

    def _drop_quarantined(self, registry: Registry) -> bool:
        """Drop the graphs of quarantined models; return whether there were any."""
        reasons = self._quarantined()
        loaded = {key: registry.models[key].reference for key in self._classifiers if key in registry.models}
        dropped = {key: reasons[reference] for key, reference in loaded.items() if reference in reasons}
        for key, reason in dropped.items():
            del self._classifiers[key]
            logger.error(
                "a model is not served any more", extra={"details": {"model": loaded[key], "reason": reason}}
            )
        self._failures.update(dropped)
        return bool(dropped)

    def _drop_unneeded(self, registry: Registry) -> None:
        """Drop the graphs of models that were removed or released, or lost their head in a restored database."""
        waiting = self._served_meanwhile(registry)
        for known in (self._classifiers, self._failures, self._retry_at):
            for model_id in list(known):
                is_present = model_id in registry.models
                needed = is_present and needs_graph(registry, registry.models[model_id])
                if not needed and not (is_present and model_id in waiting):
                    del known[model_id]

    def _served_meanwhile(self, registry: Registry) -> set[int]:
        """Models that answer until the promoted models of their tasks are loaded; they may be released already."""
        snapshot = self.serving.snapshot
        if snapshot is None:
            return set()
        return {
            shown.promoted_model_id
            for shown in snapshot.registry.tasks.values()
            if shown.promoted_model_id is not None
            and (task := registry.tasks.get(shown.id)) is not None
            and task.promoted_model_id not in self._classifiers
        }

    def _publish(self, registry: Registry) -> None:
        previous = self.serving.snapshot
        # One reference assignment: a reader has the old snapshot or the new one, never a mixture.
        self.serving.snapshot = Snapshot.next_snapshot(previous, registry, self._classifiers, self._failures)
        self._published(registry)
        report_changes(previous, self.serving.snapshot)


def _unexpected(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_same(registry: Registry, known: Registry | None) -> bool:
    # Comparing the revisions first avoids the long comparison for nearly all changes.
    return known is not None and registry.revision == known.revision and registry == known
