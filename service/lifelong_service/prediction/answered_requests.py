"""Requests that were answered before: in the database, in the spool, and in a file for outages."""

from collections.abc import Callable, Collection, Sequence

from lifelong_core.errors import UnavailableError
from lifelong_core.store.heads.records import HeadRecord
from lifelong_core.store.log.recent_requests import RecentRequests
from lifelong_core.store.log.records import LogEntry, RequestKey, StoredRequest
from lifelong_core.store.spool.spool import Spool
from lifelong_service.prediction.database_calls import DATABASE_FAILURES, DatabaseCalls


class AnsweredRequests:
    """Finds answered requests by their keys; used in the batcher's thread.

    Args:
        database: asked unless its circuit breaker is open.
        spool: spool of this machine.
        recent: answered requests of the last hours on this machine, for outages.
        has_backlog: whether the spool holds predictions.
    """

    def __init__(
        self,
        database: DatabaseCalls,
        spool: Spool,
        recent: RecentRequests,
        *,
        has_backlog: Callable[[], bool],
    ) -> None:
        self._database = database
        self._spool = spool
        self._recent = recent
        self._has_backlog = has_backlog

    def find(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the answered requests among these keys, as far as they are known now.

        Without the database, answers of other machines are unknown. It only saves costly work: `PredictionLog` itself
        rejects repeated requests.

        Raises:
            UnavailableError: the spool cannot be read.
        """
        return self._look_up(keys)[0]

    def first_answers(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the first answers to requests that the log has rejected; a missing one has been erased.

        Raises:
            UnavailableError: it cannot be looked up now. Treating the request as new would answer it twice.
        """
        found, problem = self._look_up(keys)
        if problem is not None:
            raise UnavailableError(
                f"the first answer to this request id cannot be looked up: {problem}",
                hint="Try again later.",
            )
        return found

    def find_keys(self, entries: Sequence[LogEntry]) -> set[RequestKey | None]:
        """Return keys of entries that were answered before, from the database or, without it, from this machine.

        The spool checks its own keys when it is written.
        """
        keys = {entry.request for entry in entries if entry.request is not None}
        if not keys:
            return set()
        return set(self.find(keys) if self._database.outage is None else self._recent.find(keys))

    def remember(self, entries: Sequence[LogEntry], written: Sequence[bool]) -> None:
        """Keep the written entries for outages."""
        self._recent.add([entry for entry, is_new in zip(entries, written, strict=True) if is_new])

    def head(self, model: str, version: int) -> HeadRecord:
        """Return a head that is no longer served, for a repeated answer.

        Raises:
            UnavailableError: the database does not answer.
        """
        if (outage := self._database.outage) is not None:
            raise UnavailableError(
                f"the head {version} of {model} is needed to repeat this answer: {outage}",
                hint="Try again later.",
            )
        return self._database.call(lambda store: store.heads.get(model, version))

    def _look_up(self, keys: Collection[RequestKey]) -> tuple[dict[RequestKey, StoredRequest], str | None]:
        """Return the answered requests, and why the database could not be asked about the others."""
        # The spool first: records that are delivered during the search are then found in the database.
        found: dict[RequestKey, StoredRequest] = {}
        if self._has_backlog():
            found = {key: stored for key in keys if (stored := self._spool.find(key)) is not None}
        rest = [key for key in keys if key not in found]
        if not rest:
            return found, None
        problem = self._database.outage
        if problem is None:
            try:
                return found | self._database.call(lambda store: store.predictions.requests(rest)), None
            except DATABASE_FAILURES as error:
                self._database.report_failure(error)
                problem = str(error)
        found |= self._recent.find(rest)
        return found, None if len(found) == len(keys) else problem
