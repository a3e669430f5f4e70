"""The heartbeat of a worker: its row in the database shows its heads and models."""

import os
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

from lifelong_core.store import Store
from lifelong_core.store.registry.records import ModelLoad, Registry


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
