"""The thread that keeps a worker up to date: it asks the store for changes and publishes them as a snapshot."""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from lifelong_core.deadline import DeadlineThread
from lifelong_core.errors import ConflictError, LifelongError, UnavailableError
from lifelong_core.store.heads.damaged_heads import keep_last_good
from lifelong_core.store.registry.changes import Changes
from lifelong_core.store.registry.records import Registry
from lifelong_service import metrics
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.loader import GraphLoader, Load
from lifelong_service.worker.snapshot import RETRY_SECONDS, Snapshot, needs_graph

PATIENCE_SECONDS = 2.0
"""A store that has not answered by then is away; serving goes on with what is known."""
FIRST_PATIENCE_SECONDS = 30.0
"""The same where nothing is known."""

logger = logging.getLogger(__name__)


class RegistryPoller:
    """Publishes a new snapshot whenever the registry changes or a graph has been loaded.

    Graphs are loaded in a thread of their own, so that heads of other models need not wait for them. While the store
    does not answer, what was known is served on; a worker that has read nothing yet serves what it can recall.

    Args:
        fetch: the registry, or None when it is still at the given revision; raises when the store is away. It may
            hang: it is called in a thread that the poller does not wait for.
        load: makes a model's graph ready for use.
        seconds: longest time between two questions.
        recall: the registry as it was kept on the disk, None if it never was; called once.
        changes: where to wait between two questions.
        published: told of each registry that is served from now on.
        on_orphaned: called once when the parent process has died.
        parent: its id; None: whichever it is now.
    """

    def __init__(
        self,
        fetch: Callable[[int | None], Registry | None],
        load: Load,
        *,
        seconds: float,
        recall: Callable[[], Registry | None] = lambda: None,
        changes: Callable[[], Changes] | None = None,
        published: Callable[[Registry], None] = lambda _: None,
        on_orphaned: Callable[[], None] = lambda: None,
        parent: int | None = None,
    ) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._recall = recall
        plain = Changes()
        self._changes = changes or (lambda: plain)
        self._published = published
        self._on_orphaned = on_orphaned
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
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registry-poller", daemon=True)
        self.snapshot: Snapshot | None = None
        self.problem: str | None = "the registry has not been read yet."
        self.recall_problem: str | None = None

    def start(self) -> None:
        """Read the registry, wait for its graphs, then go on in the background. Raises nothing: see `problem`."""
        self._reader.start()
        # Without anything to recall there is nothing to do but wait for the store.
        self.poll(patience_seconds=FIRST_PATIENCE_SECONDS if self._last_known() is None else PATIENCE_SECONDS)
        for future in list(self._loading.values()):
            future.exception()  # waits; the next poll looks at the outcome
        self.poll()
        self._thread.start()

    def close(self) -> None:
        """End the threads."""
        self._stop.set()
        self._reader.hurry()
        self._changes().close()
        if self._thread.ident is not None:
            self._thread.join()
        self._reader.close()
        self._loader.close()

    @property
    def revision(self) -> int:
        """The registry's revision that is served; -1 before the first."""
        return self.snapshot.registry.revision if self.snapshot is not None else -1

    def poll(self, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Ask once and publish what has changed."""
        was_away = self.problem is not None
        changed = self._ask(patience_seconds)
        if changed is None and self._registry is None:
            changed = self._last_known()
        if changed is not None and _is_same(changed, self._registry):
            changed = None
        if changed is not None:
            self._registry = changed
        if self._registry is None:
            return
        finished = self._collect(self._registry)
        if changed is not None or finished:
            self._drop_unneeded(self._registry)
        self._load_missing(self._registry)
        if changed is not None or finished:
            self._publish(self._registry)
        elif was_away and self.problem is None:
            self._published(self._registry)  # the same as before, and now it can be told

    def _ask(self, patience_seconds: float) -> Registry | None:
        """The registry, if the store answers and has another one than this worker knows."""
        # From time to time everything: a head that was damaged may have been repaired by hand.
        known = self._known_revision if time.monotonic() < self._ask_for_all_at else None
        try:
            changed = self._reader.call(lambda: self._fetch(known), patience_seconds)
        except Exception as error:  # noqa: BLE001 - a row that nobody can read keeps no worker from what was known
            self._report(str(error) if isinstance(error, LifelongError) else _unexpected(error), error)
            # It may come back as another one, restored from a backup, with the same revision.
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
        previous = self._last_known() if self.snapshot is None else self.snapshot.registry
        return registry if previous is None else keep_last_good(registry, previous)

    def _last_known(self) -> Registry | None:
        """What was kept on the disk when this worker looked there first."""
        if not self._has_recalled:
            self._has_recalled = True
            try:
                self._recalled = self._recall()
            except LifelongError as error:
                self.recall_problem = str(error)
                logger.warning("the kept registry cannot be used", extra={"details": {"reason": str(error)}})
        return self._recalled

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changes().wait(self._seconds)
            if self._stop.is_set():
                return
            try:
                self.poll()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; it is logged once
                self._report(_unexpected(error), error)
            if os.getppid() != self._parent:
                self._on_orphaned()
                return

    def _report(self, problem: str | None, error: Exception | None = None) -> None:
        if problem != self.problem and problem is not None:
            unexpected = None if isinstance(error, LifelongError) else error
            details = {"details": {"reason": problem}}
            logger.warning("the registry cannot be read", extra=details, exc_info=unexpected)
        self.problem = problem

    def _load_missing(self, registry: Registry) -> None:
        now = time.monotonic()
        for model in registry.models.values():
            known = model.id in self._classifiers or model.id in self._loading
            if known or not needs_graph(registry, model) or now < self._retry_at.get(model.id, now):
                continue
            task = registry.tasks[model.task_id]
            self._loading[model.id] = self._loader.submit(model, task)

    def _collect(self, registry: Registry) -> bool:
        """Take over what the loader has finished; whether there was anything."""
        finished = [model_id for model_id, future in self._loading.items() if future.done()]
        for model_id in finished:
            error = (future := self._loading.pop(model_id)).exception()
            if model_id not in registry.models:  # gone meanwhile: the database was restored
                continue
            reference = registry.models[model_id].reference
            if error is None:
                self._classifiers[model_id] = future.result()
                self._failures.pop(model_id, None)
                details = {"model": reference, "provider": self._classifiers[model_id].provider}
                logger.info("loaded a model", extra={"details": details})
                continue
            self._retry_at[model_id] = time.monotonic() + RETRY_SECONDS
            if self._failures.get(model_id) != str(error):
                details = {"model": reference, "reason": str(error)}
                logger.error("cannot load a model", extra={"details": details})
            self._failures[model_id] = str(error)
        return bool(finished)

    def _drop_unneeded(self, registry: Registry) -> None:
        """Let go of the graphs of models that were removed, or lost their head in a restored database."""
        for known in (self._classifiers, self._failures, self._retry_at):
            for model_id in list(known):
                if model_id not in registry.models or not needs_graph(registry, registry.models[model_id]):
                    del known[model_id]

    def _publish(self, registry: Registry) -> None:
        previous = self.snapshot
        # One reference assignment: a reader has the old snapshot or the new one, never a mixture.
        self.snapshot = Snapshot.next_snapshot(previous, registry, self._classifiers, self._failures)
        self._published(registry)
        swapped = _swapped_heads(previous, registry)
        if swapped:
            metrics.HEAD_SWAPS_SEEN.inc(len(swapped))
            logger.info(
                "took over heads", extra={"details": {"heads": swapped, "revision": registry.revision}}
            )
        metrics.DAMAGED_HEADS.set(len(registry.damaged))
        metrics.MODELS_WITHOUT_HEAD.set(len(registry.without_head()))
        metrics.FAILED_MODELS.set(len(self._failures))
        _count_providers(previous, self.snapshot)
        known = set(describe_damage(previous.registry)) if previous is not None else set[str]()
        for damage in describe_damage(registry):
            if damage not in known:
                logger.error("a head cannot be served", extra={"details": {"reason": damage}})


def _unexpected(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_same(registry: Registry, known: Registry | None) -> bool:
    # To compare the numbers first saves the long comparison for nearly all changes.
    return known is not None and registry.revision == known.revision and registry == known


def describe_damage(registry: Registry) -> list[str]:
    """Every place whose head cannot be served, why, and what happens there."""
    return [
        f"{registry.models[model_id].reference} {environment or '*'}: {reason}; "
        + (
            f"the last good head {registry.heads[model_id, environment].version} goes on"
            if (model_id, environment) in registry.heads
            else "there is no good one, requests get 503"
        )
        for (model_id, environment), reason in registry.damaged.items()
    ]


def _count_providers(previous: Snapshot | None, snapshot: Snapshot) -> None:
    """Which execution provider runs each graph; of those that are not loaded any longer the count is 0."""
    before = {} if previous is None else previous.providers()
    for model, provider in before.items() - snapshot.providers().items():
        metrics.EXECUTION_PROVIDER.labels(model, provider).set(0)
    for model, provider in snapshot.providers().items():
        metrics.EXECUTION_PROVIDER.labels(model, provider).set(1)


def _swapped_heads(previous: Snapshot | None, registry: Registry) -> list[str]:
    """Every place that another head answers than before, as `model@version environment: old -> new`.

    Places are the model's default head (`*`) and each environment with a head of its own, now or before: its first own
    head and its return to the default head are changes, too. A model's first head replaces none.
    """
    if previous is None:
        return []
    places = sorted(
        previous.registry.heads.keys() | registry.heads.keys(), key=lambda place: (place[0], place[1] or "")
    )
    swapped: list[str] = []
    for model_id, environment in places:
        before = _answering(previous.registry, model_id, environment)
        now = _answering(registry, model_id, environment)
        if before is not None and now is not None and before != now:
            reference = registry.models[model_id].reference
            swapped.append(f"{reference} {environment or '*'}: {before} -> {now}")
    return swapped


def _answering(registry: Registry, model_id: int, environment: str | None) -> int | None:
    """Version of the head that answers a place; None: none does, as before the first calibration."""
    model = registry.models.get(model_id)
    if model is None:
        return None
    try:
        return registry.head_for(model, environment).version
    except (ConflictError, UnavailableError):
        return None
