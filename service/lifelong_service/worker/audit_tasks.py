"""Periodic writes to the audit log: refused requests, and the anchor outside the database."""

from collections.abc import Callable

from lifelong_core.store import Store
from lifelong_core.store.access.audit_anchor import AnchorFile
from lifelong_core.store.registry.records import Registry
from lifelong_core.values.errors import ConflictError
from lifelong_service.http.refused_requests import RefusalCounter


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
