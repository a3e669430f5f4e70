"""Where answered predictions are kept: in the database, and in the spool on the local disk while that is away.

An answer leaves only when its predictions are committed in the database or appended to the spool. What the database
may have taken before it fell silent goes to the spool too: the delivery takes each prediction once, by its id.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from lifelong_core.deadline import DeadlineThread
from lifelong_core.errors import ConfigurationError, LifelongError, UnavailableError
from lifelong_core.names import check_name
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.heads.records import HeadRecord
from lifelong_core.store.log.recent_requests import RecentRequests
from lifelong_core.store.log.records import LogEntry, RequestKey, StoredRequest
from lifelong_core.store.registry.environments import too_fast, too_many
from lifelong_core.store.registry.records import unlisted_environment
from lifelong_core.store.spool.spool import Spool
from lifelong_core.store.spool.state import SpoolState
from lifelong_service import metrics
from lifelong_service.prediction.circuit_breaker import CircuitBreaker
from lifelong_service.prediction.spool_delivery import DeliveryThread
from lifelong_service.process.spool_folder import check_spool_folder

Result = TypeVar("Result")

LAST_ONES_SECONDS = 0.1
"""When the database answers again, a micro-batch waits this long for the last ones before it to be delivered. Without
that, steady load would put one batch after the other into the spool, and it would never be empty."""
YIELDING_SECONDS = 0.02
"""While more than those wait, a micro-batch waits this long: the delivery must be faster than what comes."""
CREATED_SECONDS = 1.0
"""By then the registry tells of an environment that was created, unless it was deleted since."""
_LOOK_SECONDS = 0.001

_ROOM = 0.98
"""A spool that is fuller than this part of its bound is taken for full."""
_AWAY = (UnavailableError, ConfigurationError)
"""A file that became read-only or unreadable while the service runs is an outage too: somebody can fix it."""


class PredictionLog:
    """Used by the micro-batcher's thread, unless a method says otherwise.

    Attributes:
        spool_problem: what kept the spool from being used when it was last tried.

    Args:
        settings: patience, spool and limits.
        store: the open store; raises UnavailableError while there is none.
        environments: those of the registry that is served now.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Callable[[], Store],
        environments: Callable[[], frozenset[str]],
    ) -> None:
        self._patience = settings.log_timeout_seconds
        self._maximum_environments = settings.maximum_environments
        self._hourly_environments = settings.maximum_new_environments_per_hour
        self._may_create = settings.environment_creation == "open"
        self._store = store
        self._environments = environments
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
        self._database = DeadlineThread("prediction-log")
        self._circuit_breaker = CircuitBreaker(lambda: self._database.is_stuck)
        self._delivery = DeliveryThread(
            self._spool, store, self._circuit_breaker, has_backlog=self._has_backlog
        )
        self._left = 0.0
        self.spool_problem: str | None = None
        self._created: dict[str, float] = {}
        # Environments that exist once the spool is delivered, with who promised them when.
        self._promised: dict[str, tuple[str, float]] = {}

    def start(self) -> None:
        """Begin to take predictions, and to deliver what an earlier process left."""
        self._database.start()
        self._delivery.start()

    def hurry(self) -> None:
        """The process is about to end: wait for nothing. Any thread may call this."""
        self._database.hurry()

    def close(self) -> None:
        """End the threads; what waits in the spool is delivered by other workers, or after the next start."""
        self._database.close()
        if self._delivery.close():
            self._spool.close()
        self._recent.close()

    @property
    def problem(self) -> str | None:
        """Why predictions go to the spool; None when they go to the database. Any thread may ask."""
        if self._circuit_breaker.reason is not None:
            return self._circuit_breaker.reason
        if self._has_backlog():
            return "what was spooled during an outage is still being delivered to the database."
        return None

    @property
    def outage(self) -> str | None:
        """Why the database is not asked at present. Any thread may ask."""
        return self._circuit_breaker.reason

    @property
    def failure(self) -> str | None:
        """Why predictions cannot be answered at present: no database, and no spool. Any thread may ask."""
        return self.spool_problem if self._circuit_breaker.reason is not None else None

    @property
    def recent_problem(self) -> str | None:
        """Why repeated requests might not be recognised during an outage. Any thread may ask."""
        return self._recent.problem

    def state(self) -> SpoolState | None:
        """What waits in the spool, for probes and metrics, which are set here too; None: it cannot be read.

        Any thread may ask. What was wrong with the spool is looked at anew, because who is not ready gets no requests.
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
        """A new micro-batch: all its questions to the database together may take as long as the settings say."""
        self._left = self._patience

    def find(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """What was answered to requests with these keys; one that is not found is new, as far as can be known now:
        without the database, what another machine answered is not known.

        Only worth its time before costly work: `append` finds out by itself what is not new.

        Raises:
            UnavailableError: the spool cannot be read.
        """
        return self._look_up(keys)[0]

    def first_answers(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """What was answered to requests that `append` has not taken; one that is not found was erased since.

        Raises:
            UnavailableError: it cannot be looked up now. To take such a request for new would answer it twice.
        """
        found, problem = self._look_up(keys)
        if problem is not None:
            raise UnavailableError(
                f"what was answered to this request id cannot be looked up: {problem}",
                hint="Try again later.",
            )
        return found

    def head(self, model: str, version: int) -> HeadRecord:
        """A head that is not served any longer, for an answer that is given again.

        Raises:
            UnavailableError: the database does not answer.
        """
        if self._circuit_breaker.reason is not None:
            raise UnavailableError(
                f"the head {version} of {model} is needed to give this answer again: {self._circuit_breaker.reason}",
                hint="Try again later.",
            )
        return self._ask(lambda: self._store().heads.get(model, version))

    def ensure_environment(self, name: str, *, creator: str, source: str | None = None) -> None:
        """Create the environment unless it exists; in an outage, see to it that the delivery creates it.

        Args:
            name: of the environment.
            creator: name of the token that predicts.
            source: address from which its request came.

        Raises:
            InvalidInputError: the name is not legal.
            NotFoundError: predictions do not create environments here.
            ConflictError: there are as many environments as there may be.
            TooManyRequestsError: the creator has created as many within an hour as it may.
        """
        created = self._created.get(name)
        is_new = created is not None and time.monotonic() - created < CREATED_SECONDS
        if is_new or name in self._environments():
            return
        if not self._may_create:
            raise unlisted_environment(name)
        limit, hourly = self._maximum_environments, self._hourly_environments
        if self._circuit_breaker.reason is None:
            try:
                self._ask(
                    lambda: self._store().environments.ensure(
                        name, limit=limit, creator=creator, hourly=hourly, source=source
                    )
                )
            except _AWAY as error:
                self._lose(error)
            else:
                self._created[name] = time.monotonic()
                return
        self._promise(name, creator)

    def append(self, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
        """Keep the predictions of these requests; their answers may leave when this returns.

        Returns:
            For each entry whether it was taken. False: there is a request with its key already, see `first_answers`.

        Raises:
            UnavailableError: neither the database nor the spool takes them; nothing is kept.
            LifelongError: the database refuses what an entry holds.
        """
        if self._may_write_directly():
            try:
                written = self._ask(lambda: self._store().predictions.append(entries))
            except _AWAY as error:
                self._lose(error)
            else:
                self._promised.clear()
                self._remember(entries, written)
                return written
        taken = self._taken(entries)
        new = [entry for entry in entries if entry.request not in taken]
        spooled = iter(self._append_to_spool(new) if new else ())
        written = tuple(entry.request not in taken and next(spooled) for entry in entries)
        self._remember(entries, written)
        return written

    def _taken(self, entries: Sequence[LogEntry]) -> set[RequestKey | None]:
        """The keys that were answered already, as far as the database or, without it, this machine knows. The spool
        knows its own."""
        keys = {entry.request for entry in entries if entry.request is not None}
        if not keys:
            return set()
        return set(self.find(keys) if self._circuit_breaker.reason is None else self._recent.find(keys))

    def _remember(self, entries: Sequence[LogEntry], written: Sequence[bool]) -> None:
        self._recent.add([entry for entry, is_new in zip(entries, written, strict=True) if is_new])

    def _look_up(self, keys: Collection[RequestKey]) -> tuple[dict[RequestKey, StoredRequest], str | None]:
        """What was answered, and why the database could not be asked about the rest."""
        # In this order: what is delivered in between is found in the database.
        found: dict[RequestKey, StoredRequest] = {}
        if self._has_backlog():
            found = {key: stored for key in keys if (stored := self._spool.find(key)) is not None}
        rest = [key for key in keys if key not in found]
        if not rest:
            return found, None
        problem = self._circuit_breaker.reason
        if problem is None:
            try:
                return found | self._ask(lambda: self._store().predictions.requests(rest)), None
            except _AWAY as error:
                self._lose(error)
                problem = str(error)
        found |= self._recent.find(rest)
        return found, None if len(found) == len(keys) else problem

    def _ask(self, question: Callable[[], Result]) -> Result:
        if self._left <= 0:
            raise UnavailableError(
                f"the database is slow: a micro-batch waited {self._patience:.3g} s for it."
            )
        began = time.monotonic()
        try:
            return self._database.call(question, self._left)
        finally:
            self._left -= time.monotonic() - began

    def _may_write_directly(self) -> bool:
        """Whether nothing waits before this batch; waits a moment for what does."""
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
        """Whether anything waits in the spool. One that cannot even be read keeps nothing from the database."""
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

    def _promise(self, name: str, creator: str) -> None:
        check_name(name, field="environment")
        there = self._environments() | self._created.keys() | self._promised.keys()
        if name in there:
            return
        if len(there) >= self._maximum_environments:
            raise too_many(name, len(there))
        since = time.monotonic() - 3600
        recent = [one for one, moment in self._promised.values() if one == creator and moment > since]
        if len(recent) >= self._hourly_environments:
            raise too_fast(name, self._hourly_environments)
        self._promised[name] = creator, time.monotonic()

    def _lose(self, error: LifelongError) -> None:
        """Ask the database nothing more until the delivery has heard from it."""
        self._circuit_breaker.open(error)
        self._delivery.wake()
