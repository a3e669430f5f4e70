"""One serving process: the open store, the registry that it serves, the micro-batcher, and how they start and stop."""

import gc
import logging
import os
import signal
import threading
from collections.abc import Mapping

from lifelong_core.errors import LifelongError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.access.audit_anchor import AnchorFile
from lifelong_core.store.access.records import Token
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.store.registry.changes import Changes
from lifelong_core.store.registry.records import Model, ModelLoad, Registry, Task
from lifelong_service import metrics
from lifelong_service.decoding.decoder import ImageDecoder
from lifelong_service.decoding.turns import Turns, usual_number
from lifelong_service.graphs.classifier import Classifier, load_classifier
from lifelong_service.graphs.run_limit import RunLimit
from lifelong_service.http.authentication import Authenticator
from lifelong_service.http.console_sessions import ConsoleSessions
from lifelong_service.http.refused_requests import RefusalCounter
from lifelong_service.limits.body_budget import BodyBudget
from lifelong_service.limits.login_limits import LoginLimiter
from lifelong_service.limits.token_limits import TokenLimiter
from lifelong_service.prediction.batch_pipeline import BatchPipeline, Job
from lifelong_service.prediction.group_keyring import GroupKeyring
from lifelong_service.prediction.micro_batcher import MicroBatcher
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.process.launch import parent_process
from lifelong_service.worker.audit_tasks import AuditTask
from lifelong_service.worker.heartbeat import Heartbeat
from lifelong_service.worker.periodic_tasks import CacheKeeper, PeriodicTask
from lifelong_service.worker.registry_poller import RegistryPoller, describe_damage
from lifelong_service.worker.snapshot import Snapshot

UPKEEP_SECONDS = 10.0
"""Time between two signs of life of a worker, and between two looks at its copy of the registry."""
FAREWELL_SECONDS = 0.2
"""A worker that stops waits no longer for the database to take its name from the list."""

logger = logging.getLogger(__name__)


class Worker:
    """What the routes of one process share.

    A worker starts without its database, too, and serves the registry that was kept on the disk; where there is none,
    it is not ready, says why, and tries again at every poll.

    Args:
        settings: of this process.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store: Store | None = None
        self._problem = "the database has not been opened yet."
        self.group_keyring = GroupKeyring(settings.resolved_group_key_file, self._known_group_keys)
        self._opening = threading.Lock()
        self._changes = Changes()
        self._artifacts: Artifacts | None = None
        self._cache = RegistryCache(settings.registry_cache_file, database_url=settings.resolved_database_url)
        self._trying = threading.Lock()
        self._tried: tuple[int, Classifier] | None = None
        self.is_draining = False
        # Nobody waits any longer for what takes longer.
        self._run_limit = RunLimit(settings.request_timeout_seconds)
        self.poller = RegistryPoller(
            self._fetch,
            self.load,
            seconds=settings.registry_poll_seconds,
            recall=self._recall,
            changes=lambda: self._changes,
            published=self._publish,
            on_orphaned=_stop_orphan,
            parent=parent_process(),
        )
        self.log = PredictionLog(
            settings, store=lambda: self.store, environments=lambda: self.snapshot.registry.environments
        )
        self.batcher: MicroBatcher[Job, bytes] = MicroBatcher(
            BatchPipeline(
                settings,
                log=self.log,
                snapshot=lambda: self.snapshot,
                group_key=self.group_keyring.current,
            ),
            capacity=settings.queue_capacity,
            maximum_samples=settings.maximum_batch_size,
            maximum_wait_seconds=settings.maximum_wait_seconds,
            watch=metrics.QUEUE_LENGTH.set,
        )
        self.token_limiter = TokenLimiter(settings.limits_for)
        self.body_budget = BodyBudget(maximum_bytes=settings.maximum_held_body_bytes)
        self.refusals = RefusalCounter()
        self.authenticator = Authenticator(self._known_tokens, self._find)
        self.login_limiter = LoginLimiter(settings.failed_logins_per_minute)
        self.console_sessions = ConsoleSessions(lambda: self.store, lambda: self.poller.problem, settings)
        self.decoder = ImageDecoder(
            maximum_pixels=settings.maximum_image_pixels,
            # On a local disk that the workers of this machine share.
            turns=Turns(settings.resolved_spool_directory, number=usual_number()),
        )
        self._acknowledgement = Heartbeat(
            lambda: self.store,
            self._is_current,
            self._loads,
            self.authenticator.take_uses,
            self.console_sessions.note_uses,
        )
        self._cache_upkeep = PeriodicTask(
            "the registry cannot be kept on the disk",
            CacheKeeper(self._cache, self._is_current),
            seconds=UPKEEP_SECONDS,
        )
        self._audit = AuditTask(
            lambda: self.store, self._is_current, self.refusals, AnchorFile(settings.audit_anchor_file)
        )
        self._audit_upkeep = PeriodicTask(
            "the audit log cannot be kept", self._audit, seconds=UPKEEP_SECONDS, finish=self._audit.finish
        )
        self._sign_of_life = PeriodicTask(
            "what this worker serves cannot be told",
            self._acknowledgement,
            seconds=UPKEEP_SECONDS,
            finish=self._acknowledgement.withdraw,
        )

    def start(self) -> None:
        """Open the store, load what is served, begin to work."""
        self._cache_upkeep.start()
        self._sign_of_life.start()
        self._audit_upkeep.start()
        self.authenticator.start()
        self.console_sessions.start()
        self._run_limit.start()
        self.poller.start()
        self.log.start()
        self.batcher.start()
        # What lives now lives for ever: the collector need not look at it again (its pauses were the longest). A last
        # collection would find next to nothing, and delay the first answer by a seventh of a second.
        gc.freeze()
        gc.enable()
        logger.info("the worker has started", extra={"details": {"not_ready": self.not_ready()}})

    def drain(self) -> None:
        """Say that this worker is not ready any longer, and go on answering; called in a signal handler."""
        self.is_draining = True
        self.log.hurry()

    def close(self) -> None:
        """Answer what waits, then let go of everything."""
        self.drain()
        self.decoder.close()
        self.batcher.close()
        self.log.close()
        self._run_limit.close()
        self.poller.close()
        self.authenticator.close()
        self.console_sessions.close()
        self._sign_of_life.close(FAREWELL_SECONDS)
        self._cache_upkeep.close(FAREWELL_SECONDS)
        self._audit_upkeep.close(FAREWELL_SECONDS)
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
            raise UnavailableError(f"the database cannot be used: {self._problem}", hint="Try again later.")
        return self._store

    @property
    def snapshot(self) -> Snapshot:
        """What is served now.

        Raises:
            UnavailableError: nothing has been read yet.
        """
        if self.poller.snapshot is None:
            raise UnavailableError("the worker is starting.", hint="Try again in a second.")
        return self.poller.snapshot

    @property
    def artifacts(self) -> Artifacts:
        """The graphs and calibration sets; they need no database.

        Raises:
            ConfigurationError: the URL of the artifacts is not usable.
        """
        if self._artifacts is None:
            self._artifacts = Artifacts(self.settings.resolved_artifacts_url)
        return self._artifacts

    def not_ready(self) -> list[str]:
        """Why this worker cannot answer; empty when it can."""
        reasons: list[str] = []
        if self.is_draining:
            reasons.append("the worker is stopping.")
        if self.poller.snapshot is None:
            problems = (self.poller.problem, self.poller.recall_problem)
            reasons += [problem for problem in problems if problem is not None]
            reasons.append("the registry has not been read.")
        else:
            reasons += self.poller.snapshot.unserved()
        if not self.batcher.alive:
            reasons.append("the micro-batcher does not run.")
        elif (seconds := self.batcher.busy_seconds) > self.settings.request_timeout_seconds:
            reasons.append(f"the micro-batcher has not finished a batch for {seconds:.0f} s.")
        if (failure := self.log.failure) is not None:
            reasons.append(failure)
        return reasons

    def degraded(self) -> list[str]:
        """What does not work although predictions are answered."""
        problems = (
            self.log.problem,
            self.log.spool_problem,
            self.log.recent_problem,
            self.poller.problem if self.poller.snapshot is not None else None,
            self.group_keyring.problem(),
            self._audit.problem,
            *(
                f"the model {name} cannot be loaded: {reason}"
                for name, reason in self.failed_models().items()
            ),
            *self._promoted_without_head(),
        )
        return list(dict.fromkeys(problem for problem in problems if problem is not None))

    @property
    def audit_problem(self) -> str | None:
        """Why the audit log is not what it was; None: no such reason is known."""
        return self._audit.problem

    def damaged_heads(self) -> list[str]:
        """Every place whose active head cannot be served, why, and what happens to requests there."""
        snapshot = self.poller.snapshot
        return [] if snapshot is None else describe_damage(snapshot.registry)

    def _promoted_without_head(self) -> list[str]:
        snapshot = self.poller.snapshot
        models = () if snapshot is None else snapshot.registry.without_head()
        return [
            f"the promoted model {model.reference} has no default head that can be served" for model in models
        ]

    def failed_models(self) -> dict[str, str]:
        """Why this worker could not load models, by their references."""
        snapshot = self.poller.snapshot
        return {} if snapshot is None else snapshot.failed()

    def providers(self) -> dict[str, str]:
        """The ONNX Runtime execution provider that runs each loaded model, by its reference."""
        snapshot = self.poller.snapshot
        return {} if snapshot is None else snapshot.providers()

    def load(self, model: Model, task: Task) -> Classifier:
        """Load the graph of a model from the artifacts and try it.

        Raises:
            LifelongError: it cannot be found, loaded or used.
        """
        if model.artifact is None or model.preprocessing is None:
            raise LifelongError(f"the model {model.reference} has no graph.")
        return load_classifier(
            self.artifacts.path(model.artifact),
            model.preprocessing,
            classes=len(task.class_names),
            providers=self.settings.execution_providers,
            threads=self.settings.intra_op_threads,
            limit=self._run_limit,
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
        store = self._opened()
        registry = store.registry(known_revision)
        if registry is not None and self.group_keyring.confirm(store, registry.group_keys):
            registry = store.registry()
        return registry

    def _recall(self) -> Registry | None:
        return self._cache.load()

    def _publish(self, registry: Registry) -> None:
        if self._is_current():
            self._cache_upkeep.offer(registry)
        self._sign_of_life.offer(registry)
        self._audit_upkeep.offer(registry)

    def _is_current(self) -> bool:
        return self.poller.problem is None

    def _loads(self) -> Mapping[int, ModelLoad]:
        snapshot = self.poller.snapshot
        return {} if snapshot is None else snapshot.loads()

    def _known_group_keys(self) -> tuple[str, ...] | None:
        snapshot = self.poller.snapshot
        return None if snapshot is None else snapshot.registry.group_keys

    def _known_tokens(self) -> Mapping[bytes, Token]:
        snapshot = self.poller.snapshot
        return {} if snapshot is None else snapshot.registry.tokens

    def _find(self, secret: str) -> Token | None:
        if self.poller.problem is not None:
            raise UnavailableError(
                f"the token is not known here, and the database cannot be asked: {self.poller.problem}",
                field="Authorization",
                hint="Try again later.",
            )
        return self.store.tokens.find(secret)

    def _opened(self) -> Store:
        with self._opening:
            if self._store is None:
                settings = self.settings
                try:
                    self._store = Store.from_settings(settings)
                except LifelongError as error:
                    self._problem = str(error)
                    raise
                waiting, self._changes = self._changes, self._store.changes()
                waiting.close()
            return self._store


def _stop_orphan() -> None:
    """End this process as SIGTERM would: without its parent nobody would restart or stop it, and it holds the port."""
    logger.error("the parent process has died, this worker stops")
    os.kill(os.getpid(), signal.SIGTERM)
