"""The prediction log of a worker: in the database, and during an outage in the spool on the local disk.

An answer is sent only after its predictions are committed in the database or appended to the spool. After a call
without an answer the predictions also go to the spool: the delivery inserts each prediction once, by its id.
"""

import time
from collections.abc import Callable, Sequence

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.log.recent_requests import RecentRequests
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.contents import SpoolState
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import LifelongError, UnavailableError
from lifelong_service import metrics
from lifelong_service.prediction.database_calls import DATABASE_FAILURES, DatabaseCalls
from lifelong_service.prediction.idempotency import AnsweredRequests, ClaimedEntries
from lifelong_service.prediction.new_environments import NewEnvironments
from lifelong_service.prediction.spool_delivery import DeliveryThread
from lifelong_service.process.checks import check_spool_folder

LAST_ONES_SECONDS = 0.1
"""Wait of a micro-batch after an outage for the delivery of the last records. Without it, steady load would write every
batch to the spool, which would never be empty."""
YIELDING_SECONDS = 0.02
"""Wait of a micro-batch if more records are left: the delivery must be faster than the load."""
_LOOK_SECONDS = 0.001

_ROOM = 0.98
"""Part of its maximum size above which a spool counts as full."""


class PredictionLog:
    """Stores predictions; used by the micro-batcher's thread, except for the methods that any thread may call.

    Attributes:
        answered: finds requests that were answered before.
        new_environments: creates the environments of predictions.
        spool_problem: why the spool could not be used at the latest attempt.

    Args:
        settings: time limit, spool and limits.
        store: the open store; raises UnavailableError while there is none.
        environments: returns those of the served registry.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Callable[[], Store],
        environments: Callable[[], frozenset[str]],
    ) -> None:
        self._folder = settings.resolved_spool_directory
        self._spool = Spool(
            self._folder,
            maximum_bytes=settings.maximum_spool_bytes,
            durability=settings.log_durability,
        )
        self._recent = RecentRequests(
            settings.recent_requests_file,
            database_url=settings.resolved_database_url,
            keep_seconds=settings.recent_requests_hours * 3600,
            maximum_bytes=settings.maximum_recent_requests_bytes,
        )
        self._database = DatabaseCalls(
            store, timeout_seconds=settings.log_timeout_seconds, on_failure=self._wake_delivery
        )
        self._circuit_breaker = self._database.circuit_breaker
        self._delivery = DeliveryThread(
            self._spool, store, self._circuit_breaker, has_backlog=self._has_backlog
        )
        self.answered = AnsweredRequests(
            self._database, self._spool, self._recent, has_backlog=self._has_backlog
        )
        self.new_environments = NewEnvironments(settings, self._database, environments)
        self.spool_problem: str | None = None

    def start(self) -> None:
        """Start the threads; the delivery begins with the records of earlier processes."""
        self._database.start()
        self._delivery.start()

    def hurry(self) -> None:
        """Shorten all waits: the process is about to end. Any thread may call this."""
        self._database.hurry()

    def close(self) -> None:
        """End the threads; other workers or the next start deliver the rest of the spool."""
        self._database.close()
        if self._delivery.close():
            self._spool.close()
        self._recent.close()

    @property
    def problem(self) -> str | None:
        """Reason why predictions go to the spool; None: they go to the database. Any thread may call this."""
        if self._circuit_breaker.reason is not None:
            return self._circuit_breaker.reason
        if self._has_backlog():
            return "predictions that were spooled during an outage are still being delivered to the database."
        return None

    @property
    def outage(self) -> str | None:
        """Reason why the database is not called now; None: it is called. Any thread may call this."""
        return self._circuit_breaker.reason

    @property
    def failure(self) -> str | None:
        """Reason why predictions cannot be answered now: no database and no spool. Any thread may call this."""
        return self.spool_problem if self._circuit_breaker.reason is not None else None

    @property
    def recent_problem(self) -> str | None:
        """Reason why repeated requests might not be recognised in an outage. Any thread may call this."""
        return self._recent.problem

    def state(self) -> SpoolState | None:
        """Return the state of the spool, for probes, and set its metrics. None: it cannot be read.

        Any thread may call this. A spool problem is checked again here, because a worker that is not ready gets no
        requests that would check it.
        """
        metrics.LOG_DEGRADED.set(self.problem is not None)
        try:
            state = self._spool.state()
            if self.spool_problem is not None:
                check_spool_folder(self._folder)
        except UnavailableError as error:
            self.spool_problem = str(error)
            return None
        if state.bytes < _ROOM * state.maximum_bytes:
            self.spool_problem = None
        metrics.SPOOL_BYTES.set(state.bytes)
        metrics.SPOOL_MAXIMUM_BYTES.set(state.maximum_bytes)
        metrics.SPOOL_PREDICTIONS.set(state.predictions)
        metrics.SPOOL_DAMAGED_RECORDS.set(state.damaged_records)
        metrics.SPOOL_REFUSED_RECORDS.set(state.refused_records)
        return state

    def begin(self) -> None:
        """Start the time limit for all database calls of a new micro-batch."""
        self._database.begin_batch()

    def append(self, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
        """Store the predictions of these requests; their answers may be sent afterwards.

        Returns:
            For each entry whether it was written. False: its key is taken, see `AnsweredRequests.first_answers`.

        Raises:
            UnavailableError: neither the database nor the spool accepts them; nothing is stored.
            LifelongError: the database refuses the content of an entry.
        """
        claimed = self.answered.claim(entries)
        try:
            written = self._write(claimed)
        except UnavailableError:
            raise  # the database may hold them, or get them with the next try: they stay claimed
        except LifelongError:
            self.answered.withdraw(claimed)
            raise
        self.answered.settle(claimed, written)
        steps = zip(claimed.entries, claimed.to_log, written, strict=True)
        return tuple(is_new and logged is entry for entry, logged, is_new in steps)

    def _write(self, claimed: ClaimedEntries) -> tuple[bool, ...]:
        entries = claimed.to_log
        if self._may_write_directly():
            try:
                written = self._database.call(lambda store: store.predictions.append(entries))
            except DATABASE_FAILURES as error:
                self._database.report_failure(error)
            else:
                self.new_environments.forget_promises()
                return written
        is_away = self._database.outage is not None
        taken = claimed.answered if is_away else self.answered.logged_keys(entries)
        new = [entry for entry in entries if entry.request not in taken]
        spooled = iter(self._append_to_spool(new) if new else ())
        return tuple(entry.request not in taken and next(spooled) for entry in entries)

    def _may_write_directly(self) -> bool:
        """Whether the spool is empty; waits up to `LAST_ONES_SECONDS` for its delivery."""
        began = time.monotonic()
        while self._circuit_breaker.reason is None:
            if not self._has_backlog():
                return True
            patience = LAST_ONES_SECONDS if self._delivery.is_near_end else YIELDING_SECONDS
            if time.monotonic() - began >= patience:
                return False
            time.sleep(_LOOK_SECONDS)
        return False

    def _has_backlog(self) -> bool:
        """Whether the spool holds predictions. An unreadable spool does not stop writes to the database."""
        try:
            return not self._spool.is_empty()
        except UnavailableError as error:
            self.spool_problem = str(error)
            return False

    def _append_to_spool(self, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
        try:
            written = self._spool.append(entries)
        except UnavailableError as error:
            self.spool_problem = str(error)
            raise
        self.spool_problem = None
        self._delivery.wake()
        metrics.SPOOLED_PREDICTIONS.inc(
            sum(len(entry.predictions) for entry, new in zip(entries, written, strict=True) if new)
        )
        return written

    def _wake_delivery(self) -> None:
        self._delivery.wake()
