"""Who changed what, when: written in the transaction of the change itself.

Entries are numbered without a gap, in the order of the commits: a number that is missing shows that somebody took an
entry away. So no sequence numbers them, which would leave a gap at each transaction that is rolled back; the next
number is taken under a lock that is held until the commit.
"""

from typing import Any

import sqlalchemy as sa

from lifelong_core.store import tables
from lifelong_core.store.engine import Database
from lifelong_core.store.records import AuditEntry
from lifelong_core.store.rows import audit_entry_of, now

_LOCK = 0x6C6C_0003
"""Key of the PostgreSQL advisory lock under which entries are numbered."""
NUMBERED = "audit.numbered"
"""Action of the entry that a migration wrote where older versions had left gaps; its details say up to which number."""


def write_audit(
    connection: sa.Connection, *, actor: str, action: str, subject: str, details: dict[str, Any] | None = None
) -> None:
    """Add one entry to the audit log within the transaction of the change.

    On PostgreSQL all other entries wait from here until the commit. So that no two transactions wait for each other in
    a circle, this lock is the last one to take: rows that others change too, like that of the registry's revision,
    come before it.

    Args:
        connection: the transaction of the change.
        actor: name of the token or process that did it.
        action: what was done, as `what.verb`, e.g. `heads.publish`.
        subject: to what it was done, e.g. `digits@1/site-a`.
        details: a JSON document.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    newest = sa.select(sa.func.coalesce(sa.func.max(tables.audit.c.id), 0))
    entry = {
        "id": connection.execute(newest).scalar_one() + 1,
        "at": now(),
        "actor": actor,
        "action": action,
        "subject": subject,
        "details": details or {},
    }
    connection.execute(sa.insert(tables.audit), entry)


class AuditLog:
    """Reads the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        limit: int = 100,
        before: int | None = None,
        *,
        action: str | None = None,
        subject: str | None = None,
    ) -> list[AuditEntry]:
        """The newest entries, newest first.

        Args:
            limit: most entries.
            before: id of the last entry of the page before; None: from the newest.
            action: only this one, as `heads.rollback`, or all of one kind of thing, as `heads`; None: all.
            subject: only entries whose subject contains this; None: all.
        """
        entries = tables.audit.c
        query = sa.select(tables.audit).order_by(entries.id.desc()).limit(limit)
        if before is not None:
            query = query.where(entries.id < before)
        if action is not None:
            of_kind = entries.action.startswith(f"{action}.", autoescape=True)
            query = query.where((entries.action == action) | of_kind)
        if subject is not None:
            query = query.where(entries.subject.contains(subject, autoescape=True))
        with self._database.read() as connection:
            return [audit_entry_of(row) for row in connection.execute(query)]

    def gaps(self) -> tuple[range, ...]:
        """The numbers that are missing; empty if every entry is there.

        Gaps that versions before the third schema left on PostgreSQL do not count. What is missing at the end cannot be
        seen.
        """
        ids = tables.audit.c.id
        numbered = sa.select(tables.audit.c.details).where(tables.audit.c.action == NUMBERED)
        with self._database.read() as connection:
            known = max((details["up_to"] for details in connection.execute(numbered).scalars()), default=0)
            previous = sa.func.lag(ids, 1, known).over(order_by=ids)
            pairs = sa.select(ids, previous.label("previous")).where(ids > known).subquery()
            gaps = sa.select(pairs).where(pairs.c.id - pairs.c.previous > 1).order_by(pairs.c.id)
            return tuple(range(row.previous + 1, row.id) for row in connection.execute(gaps))
