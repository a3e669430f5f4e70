"""Refused requests for the audit log: counted in memory, one entry for each address, reason and minute.

A flood cannot fill the database. At most 20 entries per minute, and 100 per hour, name an address and a token; further
refusals are summed in one entry for each reason. A kind of refusal that lasts longer than five minutes gets one entry
for the rest of the hour. Secrets are not kept, only names of known tokens.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from lifelong_core.store.access.audit_log import AuditLog, Refusals
from lifelong_core.store.engine.statements import batched
from lifelong_core.values.errors import LifelongError
from lifelong_service.clients.addresses import ANONYMOUS, network_of
from lifelong_service.clients.sharing import TokenBucket

logger = logging.getLogger(__name__)

OTHERS = "other addresses"
"""Source of the entry with the sum of refusals beyond the limits."""
NAMED_PER_MINUTE = 20
NAMED_PER_HOUR = 100
MINUTES_PER_HOUR = 5
"""Entries per minute for one kind of refusal; after them, one for the rest of the hour."""
MOST_WAITING = 1000
"""Largest number of unwritten entries during an outage; beyond it, refusals are summed per hour."""
_AT_ONCE = 20
"""Entries per transaction."""
_MOST_REQUESTS = 3
"""Distinct requests that an entry names."""
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True)
class _Kind:
    """Key of an entry: the common properties of its refusals."""

    action: str
    actor: str
    source: str
    reason: str


_Key: TypeAlias = tuple[_Kind, datetime]
"""Key of an entry: its kind, and when it is written."""


@dataclass
class _Count:
    first_at: datetime
    last_at: datetime
    message: str | None = None
    requests: Counter[str] = field(default_factory=Counter[str])

    def plus(self, later: "_Count | None") -> "_Count":
        if later is None:
            return self
        return _Count(self.first_at, later.last_at, self.message, self.requests + later.requests)


class RefusalCounter:
    """Counts refused requests until they are written; threads may share it.

    Args:
        now: returns the present time.
        monotonic: returns the seconds of a monotonic clock.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._monotonic = monotonic
        self._hourly = TokenBucket(
            rate=NAMED_PER_HOUR / _HOUR.total_seconds(), burst=NAMED_PER_HOUR, now=monotonic()
        )
        self._counts: dict[_Key, _Count] = {}
        self._hour = self._minute = datetime.min.replace(tzinfo=UTC)
        self._entries_of_hour: Counter[_Kind] = Counter()
        self._named_in_minute = 0
        self._lock = threading.Lock()

    def count(  # noqa: PLR0913, RUF100 - the parts of an entry
        self, action: str, *, actor: str, source: str, reason: str, request: str, message: str | None = None
    ) -> None:
        """Count one refused request.

        Args:
            action: attempted action.
            actor: name of its token, if known.
            source: address of the client.
            reason: code of the error.
            request: method and path of the route.
            message: message of the error; only the first one is kept.
        """
        moment = self._now()
        kind = _Kind(action, actor, network_of(source), reason)
        with self._lock:
            self._begin(moment)
            key = self._key_of(kind)
            if key not in self._counts and not self._may_name():
                key, message = self._key_of(replace(kind, actor=ANONYMOUS, source=OTHERS)), None
            if key not in self._counts:
                self._entries_of_hour[key[0]] += 1
            count = self._counts.setdefault(key, _Count(moment, moment, message))
            count.last_at = moment
            named = len(count.requests) < _MOST_REQUESTS or request in count.requests
            count.requests[request if named else "others"] += 1

    def write(self, audit: AuditLog, *, unfinished: bool = False) -> None:
        """Write the entries whose minute or hour is over; with `unfinished` all.

        Raises:
            UnavailableError: the database does not answer; the entries are kept for the next time.
        """
        moment = self._now()
        with self._lock:
            over = [key for key in self._counts if unfinished or key[1] <= moment]
            taken = {key: self._counts.pop(key) for key in over}
        # Few entries per transaction: on SQLite, predictions wait for its end.
        for keys in batched(list(taken), _AT_ONCE):
            entries = [_refusals(key[0], taken[key]) for key in keys]
            try:
                audit.note_refusals(entries)
            except LifelongError:
                self._put_back(taken)
                raise
            for key, entry in zip(keys, entries, strict=True):
                del taken[key]
                _log(entry)

    def _put_back(self, taken: Mapping[_Key, _Count]) -> None:
        with self._lock:
            for key, count in taken.items():
                self._counts[key] = count.plus(self._counts.get(key))

    def _begin(self, moment: datetime) -> None:
        """Reset the counts at the start of a minute or an hour."""
        minute = moment.replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute, self._named_in_minute = minute, 0
        if (hour := minute.replace(minute=0)) != self._hour:
            self._hour, self._entries_of_hour = hour, Counter()

    def _key_of(self, kind: _Kind) -> _Key:
        """Return the key of the present entry: of the minute, or of the hour after several."""
        is_frequent = self._entries_of_hour[kind] >= MINUTES_PER_HOUR or len(self._counts) >= MOST_WAITING
        return kind, self._hour + _HOUR if is_frequent else self._minute + _MINUTE

    def _may_name(self) -> bool:
        """Whether the limits allow another entry of this minute with an address."""
        if len(self._counts) >= MOST_WAITING or self._named_in_minute >= NAMED_PER_MINUTE:
            return False
        if self._hourly.take(1, now=self._monotonic()) > 0:
            return False
        self._named_in_minute += 1
        return True


def _refusals(kind: _Kind, count: _Count) -> Refusals:
    details: dict[str, Any] = {
        "reason": kind.reason,
        "count": count.requests.total(),
        "first_at": count.first_at.isoformat(timespec="seconds"),
        "last_at": count.last_at.isoformat(timespec="seconds"),
    }
    if count.message is not None:
        details["message"] = count.message
    return Refusals(kind.action, kind.actor, kind.source, ", ".join(sorted(count.requests)), details)


def _log(entry: Refusals) -> None:
    details = {
        "action": entry.action,
        "token": entry.actor,
        "address": entry.source,
        "requests": entry.subject,
    }
    logger.warning("requests were refused", extra={"details": details | entry.details})
