"""One serving process: start, readiness, draining and end of its parts."""

import gc
import logging

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.registry import Model
from lifelong_core.store import Store
from lifelong_service import metrics
from lifelong_service.clients.limits import OpenStreams
from lifelong_service.graphs.captures import DEVICE
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.prediction.requests import ProbabilityWatch
from lifelong_service.prediction.snapshot import Snapshot
from lifelong_service.worker.wiring import build_parts

logger = logging.getLogger(__name__)


class Worker:
    """Holds the parts that the routes of one process share; `wiring` builds them.

    A worker also starts without its database and serves the registry that is cached on the disk. Without a cached
    registry it is not ready, reports the reason, and tries again at every poll.

    Args:
        settings: settings of this process.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_draining = False
        self.streams = OpenStreams()
        self.probability_watch = ProbabilityWatch()
        parts = self._parts = build_parts(settings)
        self.serving = parts.serving
        self.poller = parts.poller
        self.models = parts.models
        self.group_keyring = parts.group_keyring
        self.decoder = parts.decoder
        self.batcher = parts.batcher
        self.log = parts.log
        self.token_limiter = parts.token_limiter
        self.login_limiter = parts.login_limiter
        self.body_budget = parts.body_budget
        self.refusals = parts.refusals
        self.authenticator = parts.authenticator
        self.console_sessions = parts.console_sessions

    def start(self) -> None:
        """Open the store, load the served models, and start all threads."""
        parts = self._parts
        parts.periodic.start()
        parts.authenticator.start()
        parts.console_sessions.start()
        parts.run_limit.start()
        parts.poller.start()
        parts.log.start()
        parts.shadow.start()
        parts.batcher.start()
        # All present objects stay alive, so the collector need not visit them: its pauses were the longest. A
        # collection first would free almost nothing and delay the first answer by 0.14 s.
        gc.freeze()
        gc.enable()
        metrics.WORKERS.set(1)
        logger.info("the worker has started", extra={"details": {"not_ready": self.not_ready()}})

    def drain(self) -> None:
        """Report that this worker is not ready, and continue to answer. Called in a signal handler."""
        self.is_draining = True
        self.log.hurry()

    def close(self) -> None:
        """Answer the waiting requests, then end all threads and close the store."""
        self.drain()
        parts = self._parts
        parts.decoder.close()
        parts.batcher.close()
        parts.shadow.close()
        parts.log.close()
        parts.run_limit.close()
        parts.poller.close()
        parts.authenticator.close()
        parts.console_sessions.close()
        parts.periodic.close()
        parts.connection.close()
        gc.unfreeze()
        metrics.WORKERS.set(0)
        logger.info("the worker has stopped")

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            UnavailableError: it could not be opened yet.
        """
        return self._parts.connection.get()

    @property
    def snapshot(self) -> Snapshot:
        """The served registry and graphs.

        Raises:
            UnavailableError: nothing has been read yet.
        """
        return self.serving.current()

    @property
    def audit_problem(self) -> str | None:
        """Why the audit log cannot be trusted; None: no reason is known."""
        return self._parts.audit.problem

    def classifier(self, model: Model) -> Classifier:
        """Return the graph of a model, even if it is not served; see `ModelLoader.classifier`."""
        return self.models.classifier(model)

    def not_ready(self) -> list[str]:
        """Reasons why this worker cannot answer; empty when it can."""
        reasons: list[str] = []
        if self.is_draining:
            reasons.append("the worker is stopping.")
        serving = self.serving
        if serving.snapshot is None:
            reasons += [
                problem for problem in (serving.problem, serving.recall_problem) if problem is not None
            ]
            reasons.append("the registry has not been read.")
        else:
            reasons += serving.snapshot.unserved()
        if not self.batcher.alive:
            reasons.append("the micro-batcher does not run.")
        elif (seconds := self.batcher.busy_seconds) > self.settings.request_timeout_seconds:
            reasons.append(f"the micro-batcher has not finished a batch for {seconds:.0f} s.")
        if (failure := self.log.failure) is not None:
            reasons.append(failure)
        for broken in (DEVICE.failure, self._parts.run_limit.failure):
            if broken is not None:
                reasons.append(f"{broken}; this worker is replaced.")
        return reasons

    def degraded(self) -> list[str]:
        """Faults of this worker that do not stop predictions."""
        serving = self.serving
        problems = (
            self.log.problem,
            self.log.spool_problem,
            self.log.recent_problem,
            serving.problem if serving.snapshot is not None else None,
            self.group_keyring.problem(),
            self.audit_problem,
            *(
                f"the model {name} cannot be loaded: {reason}"
                for name, reason in serving.failed_models().items()
            ),
            *serving.promoted_without_head(),
            *serving.unused_gpu(),
            *serving.calibrated_otherwise(),
        )
        return list(dict.fromkeys(problem for problem in problems if problem is not None))
