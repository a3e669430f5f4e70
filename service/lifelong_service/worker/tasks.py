"""The periodic tasks of a worker: registry cache, heartbeat, audit log."""

import os
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

from lifelong_core.entities.registry import ModelLoad, Registry
from lifelong_core.store import Store
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import ConflictError, UnavailableError
from lifelong_service.clients.refused_requests import RefusalCounter


class CacheKeeper:
    """Writes the registry to its cache, again if another process has replaced it with an older one.

    Args:
        cache: shared with the other workers of this machine.
        is_current: whether this worker has the present registry of the database.
    """

    def __init__(self, cache: RegistryCache, is_current: Callable[[], bool]) -> None:
        self._cache = cache
        self._is_current = is_current
        self._saved: Registry | None = None
        self._seen: tuple[int, int] | None = None

    def __call__(self, registry: Registry) -> None:
        """Write the registry to the cache unless the cache holds it.

        Raises:
            UnavailableError: it cannot be written.
        """
        if registry is self._saved and (self._stamp() == self._seen or not self._is_current()):
            return
        if registry is not self._saved or not self._holds(registry):
            self._cache.save(registry)
        self._saved, self._seen = registry, self._stamp()

    def _holds(self, registry: Registry) -> bool:
        try:
            return self._cache.revision() == registry.revision
        except UnavailableError:
            return False

    def _stamp(self) -> tuple[int, int] | None:
        try:
            status = self._cache.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns


class Heartbeat:
    """Writes the heads and models of this process to the list of workers.

    Args:
        store: the open store; raises UnavailableError while there is none.
        is_reachable: whether the database answered the latest poll.
        loads: loaded and failed graphs, by model id.
        token_uses: times of the latest uses by token id, since its previous call.
        note_session_uses: extends the console sessions that were used since its previous call.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        is_reachable: Callable[[], bool],
        loads: Callable[[], Mapping[int, ModelLoad]],
        token_uses: Callable[[], Mapping[int, datetime]],
        note_session_uses: Callable[[], None],
    ) -> None:
        self._store = store
        self._is_reachable = is_reachable
        self._loads = loads
        self._token_uses = token_uses
        self._note_session_uses = note_session_uses
        self._worker_id = str(uuid4())
        self._host = socket.gethostname()
        self._started_at = datetime.now(UTC)
        self._is_listed = False

    def __call__(self, registry: Registry) -> None:
        """Write a heartbeat with this registry; do nothing during an outage of the database.

        Raises:
            UnavailableError: the database does not answer.
        """
        if not self._is_reachable():
            return
        self._is_listed = True
        self._store().workers.record_heartbeat(
            self._worker_id,
            host=self._host,
            process=os.getpid(),
            started_at=self._started_at,
            revision=registry.revision,
            heads={place: record.version for place, record in registry.heads.items()},
            models=self._loads(),
        )
        if uses := self._token_uses():
            self._store().tokens.note_use(uses)
        self._note_session_uses()

    def withdraw(self) -> None:
        """Remove this process from the list at its end.

        Raises:
            UnavailableError: the database does not answer; the process then counts as lost.
        """
        if self._is_listed and self._is_reachable():
            self._store().workers.forget(self._worker_id)


class AuditTask:
    """Writes the refused requests of past minutes, and moves the anchor to the newest entry.

    Args:
        store: the open store; raises UnavailableError while there is none.
        is_reachable: whether the database answered the latest poll.
        refusals: refused requests of this process.
        anchor: anchor file of this host.

    Attributes:
        problem: reason why the audit log cannot be trusted; None: none is known.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        is_reachable: Callable[[], bool],
        refusals: RefusalCounter,
        anchor: AnchorFile,
    ) -> None:
        self._store = store
        self._is_reachable = is_reachable
        self._refusals = refusals
        self._anchor = anchor
        self.problem: str | None = None

    def __call__(self, registry: Registry) -> None:
        """Write refusals and anchor; do nothing during an outage of the database.

        Raises:
            LifelongError: as `AnchorFile.advance`, or the database does not answer.
        """
        del registry
        if self._is_reachable():
            self._refusals.write(self._store().audit)
            self._advance()

    def finish(self) -> None:
        """Write all counted refusals at the end of the worker.

        Raises:
            LifelongError: as when it is called.
        """
        if self._is_reachable():
            self._refusals.write(self._store().audit, unfinished=True)
            self._advance()

    def _advance(self) -> None:
        try:
            self._anchor.advance(self._store().audit)
        except ConflictError as error:
            self.problem = str(error)
            raise
        self.problem = None
