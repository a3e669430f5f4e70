"""The audit log: each entry is written in the transaction of its change.

Entries are numbered without a gap, in commit order, and chained by digests (`audit_chain`). A database sequence would
leave a gap at each rollback. So the number and digest of the newest entry are read under a lock that is held until the
commit.
"""

from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from lifelong_core.entities.access import AuditEntry
from lifelong_core.store.access.audit_chain import (
    GENESIS,
    Anchor,
    ChainFault,
    chain_entries,
    compare_anchor,
    find_faults,
)
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.schema import tables

_LOCK = 0x6C6C_0003
"""Key of the PostgreSQL advisory lock under which entries are numbered."""
REFUSED_ACCESS, REFUSED_LOGIN, REFUSED_UPLOAD = "access.refuse", "console.refuse", "uploads.refuse"
REFUSED_GRAPH = "models.refuse"
REFUSALS = (REFUSED_ACCESS, REFUSED_LOGIN, REFUSED_UPLOAD, REFUSED_GRAPH)
"""Actions of entries about refused requests, which are no changes."""
LOCAL = "local"
"""Source of actions by a process of the product or on the command line."""
_PAGE = 2000
_audit = tables.audit
_source: ContextVar[str] = ContextVar("source of changes", default=LOCAL)

AuditKind: TypeAlias = Literal["changes", "refusals"]


class audit_source:  # noqa: N801 - used as a function, as contextlib's classes are
    """Set the source of the entries that this thread or task writes within the block."""

    def __init__(self, source: str) -> None:
        self._value = source

    def __enter__(self) -> None:
        self._before = _source.set(self._value)

    def __exit__(self, *_: object) -> None:
        _source.reset(self._before)


def write_audit(
    connection: sa.Connection,
    actor: str,
    action: str,
    subject: str,
    details: dict[str, Any] | None = None,
    *,
    source: str | None = None,
) -> None:
    """Add one entry to the audit log within the transaction of the change.

    On PostgreSQL all other entries wait from here until the commit. To prevent deadlocks, take this lock last, after
    those of shared rows such as the registry's revision.

    Args:
        connection: the transaction of the change.
        actor: name of the token or process.
        action: as `object.verb`, e.g. `heads.publish`.
        subject: object of the action, e.g. `digits@1/site-a`.
        details: a JSON document.
        source: client address; None: that of `audit_source`, else `local`.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    newest = _newest(connection) or Anchor(0, GENESIS)
    entry = AuditEntry(
        newest.sequence + 1, now(), actor, action, subject, details or {}, source or _source.get()
    )
    connection.execute(sa.insert(_audit), vars(chain_entries(entry, newest.digest)))


@dataclass(frozen=True)
class Refusals:
    """Refused requests with equal attributes.

    Attributes:
        action: one of `REFUSALS`.
        actor: name of the token, if known.
        source: client address.
        subject: the requested object.
        details: a JSON document.
    """

    action: str
    actor: str
    source: str
    subject: str
    details: dict[str, Any]


@dataclass(frozen=True)
class AuditVerification:
    """Result of a verification of the audit log.

    Attributes:
        entries: number of entries read.
        newest: anchor of the newest entry; None: there are none.
        faults: breaks of the chain; empty: none.
    """

    entries: int
    newest: Anchor | None
    faults: tuple[ChainFault, ...]


class AuditLog(Repository):
    """Reads the audit log and verifies it."""

    def list(
        self,
        limit: int = 100,
        before: int | None = None,
        *,
        action: str | None = None,
        subject: str | None = None,
        subjects: Collection[str] | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: AuditKind | None = None,
    ) -> list[AuditEntry]:
        """Return the newest entries, newest first.

        Args:
            limit: largest number of entries.
            before: id of the last entry of the previous page; None: from the newest.
            action: only this one, as `heads.rollback`, or all of one object, as `heads`; None: all.
            subject: only entries whose subject contains this; None: all.
            subjects: only entries with one of these subjects; None: all.
            actor: only entries of this name; None: all.
            since: only entries from this time on; None: all.
            until: only entries before this time; None: all.
            kind: only changes, or only refused requests; None: both.
        """
        entries = _audit.c
        query = sa.select(_audit).order_by(entries.id.desc()).limit(limit)
        if before is not None:
            query = query.where(entries.id < before)
        if action is not None:
            of_kind = entries.action.startswith(f"{action}.", autoescape=True)
            query = query.where((entries.action == action) | of_kind)
        if subject is not None:
            query = query.where(entries.subject.contains(subject, autoescape=True))
        if subjects is not None:
            query = query.where(entries.subject.in_(subjects))
        if actor is not None:
            query = query.where(entries.actor == actor)
        if since is not None:
            query = query.where(entries.at >= since)
        if until is not None:
            query = query.where(entries.at < until)
        if kind is not None:
            is_refusal = entries.action.in_(REFUSALS)
            query = query.where(is_refusal if kind == "refusals" else ~is_refusal)
        return [read_record(row, AuditEntry) for row in self._rows(query)]

    def note_refusals(self, refusals: Sequence[Refusals]) -> None:
        """Write entries about refused requests, all or none.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            for refusal in refusals:
                write_audit(
                    connection,
                    actor=refusal.actor,
                    action=refusal.action,
                    subject=refusal.subject,
                    details=refusal.details,
                    source=refusal.source,
                )

    def newest(self) -> Anchor | None:
        """Return the anchor of the newest entry; None: there are none."""
        with self._database.read() as connection:
            return _newest(connection)

    def fault_of(self, anchor: Anchor) -> ChainFault | None:
        """Compare an anchor of an earlier state with the log; None: the log still holds it."""
        digest = sa.select(_audit.c.digest).where(_audit.c.id == anchor.sequence)
        with self._database.read() as connection:
            newest = _newest(connection)
            found = connection.execute(digest).scalar_one_or_none()
        return compare_anchor(anchor, 0 if newest is None else newest.sequence, found)

    def verify(self, *anchors: Anchor, newest_only: int | None = None) -> AuditVerification:
        """Compare every entry with its digest and the previous entry, and the log with anchors.

        Args:
            anchors: of earlier states.
            newest_only: number of the newest entries to verify; None: all.
        """
        newest = self.newest()
        before = (
            None if newest is None or newest_only is None else self._anchor_at(newest.sequence - newest_only)
        )
        count = 0

        def counted() -> Iterator[AuditEntry]:
            nonlocal count
            for entry in self._ascending(0 if before is None else before.sequence):
                count += 1
                yield entry

        faults = find_faults(counted(), before=before)
        faults += [fault for anchor in anchors if (fault := self.fault_of(anchor)) is not None]
        return AuditVerification(count, newest, tuple(faults))

    def _ascending(self, after: int) -> Iterator[AuditEntry]:
        """Yield all entries after `after` in order, each page in its own transaction, since entries never change."""
        while True:
            query = sa.select(_audit).where(_audit.c.id > after).order_by(_audit.c.id).limit(_PAGE)
            try:
                page = [read_record(row, AuditEntry) for row in self._rows(query)]
            except ValueError:  # a column holds no time or no JSON: another program wrote it
                page = self._one_by_one(after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _one_by_one(self, after: int) -> "list[AuditEntry]":
        """Return a page of entries; an unreadable entry is empty and so fails the comparison of digests."""
        page: list[AuditEntry] = []
        with self._database.read() as connection:
            numbers = sa.select(_audit.c.id).where(_audit.c.id > after).order_by(_audit.c.id).limit(_PAGE)
            for number in connection.execute(numbers).scalars().all():
                try:
                    row = connection.execute(sa.select(_audit).where(_audit.c.id == number)).one()
                    page.append(read_record(row, AuditEntry))
                except ValueError:
                    page.append(AuditEntry(number, now(), "", "", ""))
        return page

    def _anchor_at(self, sequence: int) -> Anchor | None:
        query = sa.select(_audit.c.id, _audit.c.digest).where(_audit.c.id == sequence)
        row = self._row(query)
        return None if row is None else Anchor(row.id, row.digest)


def _newest(connection: sa.Connection) -> Anchor | None:
    query = sa.select(_audit.c.id, _audit.c.digest).order_by(_audit.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Anchor(row.id, row.digest)
