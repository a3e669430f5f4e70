"""Reports to the database which heads and models this worker runs, and that it lives."""

import os
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

from lifelong_core.store import Store
from lifelong_core.store.registry.records import ModelLoad, Registry


class Heartbeat:
    """Writes what this process serves to the list of workers; every call is a sign of life.

    Args:
        store: the open store; raises UnavailableError while there is none.
        is_reachable: whether the database has answered when it was asked last.
        loads: the graphs that this process has loaded or failed to load, by model id.
        token_uses: when tokens were used last, by token id, since it was called before.
        note_session_uses: prolongs the sessions of the console that were used since it was called before.
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
        """Say that this process lives and serves this registry; says nothing while the database is away.

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
        """Take this process from the list: it stops.

        Raises:
            UnavailableError: the database does not answer; the process is taken for lost then.
        """
        if self._is_listed and self._is_reachable():
            self._store().workers.forget(self._worker_id)
