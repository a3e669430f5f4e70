"""Who changed what, when: written in the transaction of the change itself."""

from typing import Any

import sqlalchemy as sa

from lifelong_core.store import tables
from lifelong_core.store.engine import Database
from lifelong_core.store.records import AuditEntry
from lifelong_core.store.rows import audit_entry_of, now


def write_audit(
    connection: sa.Connection, *, actor: str, action: str, subject: str, details: dict[str, Any] | None = None
) -> None:
    """Add one entry to the audit log within the transaction of the change.

    Args:
        connection: the transaction of the change.
        actor: name of the token or process that did it.
        action: what was done, as `what.verb`, e.g. `heads.publish`.
        subject: to what it was done, e.g. `digits@1/site-a`.
        details: a JSON document.
    """
    entry = {"at": now(), "actor": actor, "action": action, "subject": subject, "details": details or {}}
    connection.execute(sa.insert(tables.audit), entry)


class AuditLog:
    """Reads the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, limit: int = 100, before: int | None = None) -> list[AuditEntry]:
        """The newest entries, newest first; `before` is the id of the last entry of the page before."""
        query = sa.select(tables.audit).order_by(tables.audit.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tables.audit.c.id < before)
        with self._database.read() as connection:
            return [audit_entry_of(row) for row in connection.execute(query)]
