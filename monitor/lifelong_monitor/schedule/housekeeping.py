"""Tasks of a tick beside its cycles: partitions, retention, the audit log's anchor, warnings about settings."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import date

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.health import CLOCK_HINT
from lifelong_core.store.registry.heartbeats import MonitorProcess, describe_disagreements
from lifelong_core.values.errors import LifelongError, UnavailableError

log = logging.getLogger(__name__)

RETENTION_SECONDS = 20.0
"""Longest time that one tick spends on deleting expired rows."""
RETENTION_AGAIN_SECONDS = 5.0
"""Pause before the rest is deleted."""


class Housekeeping:
    """Does the tasks, and remembers which are done and which problems are logged already.

    Args:
        store: open.
        settings: of this monitor.
        stopping: asked while rows are deleted; True ends it early.
    """

    def __init__(self, store: Store, settings: Settings, *, stopping: Callable[[], bool]) -> None:
        self._store = store
        self._settings = settings
        self._stopping = stopping
        self._anchor = AnchorFile(settings.audit_anchor_file)
        self._anchor_problem: str | None = None
        self._partitioned_on: date | None = None
        self._may_be_expired = True
        self._warnings: frozenset[str] = frozenset()
        self._are_clocks_wrong = False

    def ensure_partitions(self, today: date) -> None:
        """Create the log's partitions of the next days, once a day (PostgreSQL)."""
        if self._partitioned_on == today:
            return
        try:
            self._store.predictions.ensure_partitions(today)
        except UnavailableError as error:
            # Partitions exist a week ahead, so there is time; and no prediction is lost without them.
            log.warning("the log's partitions could not be created, trying again at the next tick: %s", error)
        else:
            self._partitioned_on = today

    def warn_of_settings(self, environments: Collection[str], monitors: Sequence[MonitorProcess]) -> None:
        """Warn once of settings that name an unknown environment, and of monitors with different settings.

        Args:
            environments: all that exist.
            monitors: all that run.
        """
        unknown = self._settings.unknown_environments(environments)
        disagreements = [
            f"{sentence} The strictest mode of them holds. Give all monitors the same settings."
            for sentence in describe_disagreements(monitors)
        ]
        warnings = [*unknown, *disagreements]
        for warning in warnings:
            if warning not in self._warnings:
                log.warning("%s", warning)
        self._warnings = frozenset(warnings)

    def warn_of_clocks(self) -> None:
        """Warn, when it begins and when it changes, of a clock that differs from those of other processes."""
        faults = self._store.health.clock_faults()
        if bool(faults) != self._are_clocks_wrong:
            log.warning("%s", " ".join([*faults, CLOCK_HINT]) if faults else "All clocks agree again.")
        self._are_clocks_wrong = bool(faults)

    def delete_expired(self, today: date, *, is_round: bool) -> float | None:
        """Delete what is older than the settings allow: in a round, and in the ticks after it until nothing is left.

        Returns:
            Seconds after which to go on; None: nothing is left, or it failed and the next tick tries again.
        """
        self._may_be_expired = self._may_be_expired or is_round
        if not self._may_be_expired:
            return None
        try:
            outcome = self._store.retention.delete_expired(
                self._settings.retention_for, today, pause=self._pause, seconds=RETENTION_SECONDS
            )
            self._store.jobs.remove_remains()
            jobs = self._store.jobs.delete_expired(self._settings.retention_days, today)
            self._store.console_sessions.delete_expired()
            self._store.notifications.delete_expired()
        except Exception as error:  # a failure must not stop the cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("expired rows could not be deleted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return None
        if outcome.predictions or outcome.labels or outcome.requests:
            log.info(
                "deleted as too old: %d predictions (%d days as a whole), %d labels, %d request ids",
                outcome.predictions,
                len(outcome.partitions),
                outcome.labels,
                outcome.requests,
            )
        if jobs:
            log.info("deleted as too old: %d jobs", jobs)
        self._may_be_expired = not outcome.is_done
        return RETENTION_AGAIN_SECONDS if self._may_be_expired else None

    def advance_anchor(self) -> None:
        """Copy the newest entry of the audit log to the anchor file; log once if the audit log was changed."""
        problem: str | None = None
        try:
            self._anchor.advance(self._store.audit)
        except LifelongError as error:
            problem = str(error)
            if problem != self._anchor_problem:
                log.error("the audit log cannot be anchored: %s", problem)  # noqa: TRY400 - the message says it all
        self._anchor_problem = problem

    def _pause(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self._stopping()
