"""One serving process: the open store, the registry that it serves, the micro-batcher, and how they start and stop."""

import gc
import logging
import os
import signal
import threading

from lifelong_core.errors import LifelongError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.privacy import load_group_key
from lifelong_core.store.records import Model, Registry, Task, Token
from lifelong_service import metrics
from lifelong_service.authentication import Authenticator
from lifelong_service.batching import MicroBatcher
from lifelong_service.decisions import Decider, Job
from lifelong_service.inference import Classifier, load_classifier
from lifelong_service.launch import parent_process
from lifelong_service.poller import RegistryPoller
from lifelong_service.snapshot import Snapshot

logger = logging.getLogger(__name__)


class Worker:
    """What the routes of one process share.

    A worker starts without its database, too: it is not ready then, says why, and tries again at every poll.

    Args:
        settings: of this process.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store: Store | None = None
        self._problem = "the database has not been opened yet."
        self._group_key: bytes | None = None
        self._opening = threading.Lock()
        self._trying = threading.Lock()
        self._tried: tuple[int, Classifier] | None = None
        self._stopping = False
        self.poller = RegistryPoller(
            self._fetch,
            self.load,
            seconds=settings.registry_poll_seconds,
            on_orphaned=_stop_orphan,
            parent=parent_process(),
        )
        self.batcher: MicroBatcher[Job, bytes] = MicroBatcher(
            Decider(
                settings,
                store=lambda: self.store,
                snapshot=lambda: self.snapshot,
                group_key=lambda: self.group_key,
            ),
            capacity=settings.queue_capacity,
            maximum_samples=settings.maximum_batch_size,
            watch=metrics.QUEUE_LENGTH.set,
        )
        self.authenticator = Authenticator(self._verify, lambda: self.poller.revision)

    def start(self) -> None:
        """Open the store, load what is served, begin to work."""
        self.poller.start()
        self.batcher.start()
        # What lives now lives for ever: the collector need not look at it again (its pauses were the longest).
        gc.collect()
        gc.freeze()
        gc.enable()
        logger.info("the worker has started", extra={"details": {"not_ready": self.not_ready()}})

    def close(self) -> None:
        """Answer what waits, then let go of everything."""
        self._stopping = True
        self.batcher.close()
        self.poller.close()
        if self._store is not None:
            self._store.close()
        gc.unfreeze()
        logger.info("the worker has stopped")

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            UnavailableError: it could not be opened yet.
        """
        if self._store is None:
            raise UnavailableError(f"the database cannot be used: {self._problem}", mend="Try again later.")
        return self._store

    @property
    def snapshot(self) -> Snapshot:
        """What is served now.

        Raises:
            UnavailableError: nothing has been read yet.
        """
        if self.poller.snapshot is None:
            raise UnavailableError("the worker is starting.", mend="Try again in a second.")
        return self.poller.snapshot

    @property
    def group_key(self) -> bytes:
        """The secret key of the group hash, made by the first process that needs one."""
        if self._group_key is None:
            self._group_key = load_group_key(self.settings.resolved_group_key_file, create=True)
        return self._group_key

    def not_ready(self) -> list[str]:
        """Why this worker cannot answer; empty when it can."""
        reasons: list[str] = []
        if self._stopping:
            reasons.append("the worker is stopping.")
        if self.poller.problem is not None:
            reasons.append(self.poller.problem)
        if self.poller.snapshot is None:
            reasons.append("the registry has not been read.")
        if not self.batcher.alive:
            reasons.append("the micro-batcher does not run.")
        return reasons

    def load(self, model: Model, task: Task) -> Classifier:
        """Load the graph of a model from the artifacts and try it.

        Raises:
            LifelongError: it cannot be found, loaded or used.
        """
        if model.artifact is None or model.preprocessing is None:
            raise LifelongError(f"the model {model.reference} has no graph.")
        return load_classifier(
            self.store.artifacts.path(model.artifact),
            model.preprocessing,
            classes=len(task.class_names),
            providers=self.settings.execution_providers,
            threads=self.settings.intra_op_threads,
        )

    def classifier(self, model: Model) -> Classifier:
        """The graph of a model that need not be served yet; the last such one is kept.

        Raises:
            LifelongError: as `load`, or the model is external.
        """
        snapshot = self.snapshot
        if model.id in snapshot.classifiers or model.kind == "external":
            return snapshot.classifier(model)
        with self._trying:
            if self._tried is None or self._tried[0] != model.id:
                # Not from the snapshot: both may be younger than that.
                task = next(task for task in self.store.tasks.list() if task.id == model.task_id)
                self._tried = (model.id, self.load(model, task))
            return self._tried[1]

    def _fetch(self, known_revision: int | None) -> Registry | None:
        return self._opened().registry(known_revision)

    def _verify(self, secret: str) -> Token | None:
        return self.store.tokens.verify(secret)

    def _opened(self) -> Store:
        with self._opening:
            if self._store is None:
                settings = self.settings
                try:
                    self._store = Store.open(settings.resolved_database_url, settings.resolved_artifacts_url)
                except LifelongError as error:
                    self._problem = str(error)
                    raise
            return self._store


def _stop_orphan() -> None:
    """End this process as SIGTERM would: without its parent nobody would restart or stop it, and it holds the port."""
    logger.error("the parent process has died, this worker stops")
    os.kill(os.getpid(), signal.SIGTERM)
