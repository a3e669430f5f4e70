"""The audit log: each entry is written in the transaction of its change.

Entries are numbered without a gap, in the order of the commits, and chained by digests (`audit_chain`). So no sequence
numbers them, which would leave a gap at each transaction that is rolled back; number and digest of the newest entry are
read under a lock that is held until the commit.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from lifelong_core.store.access.audit_chain import (
    GENESIS,
    Anchor,
    ChainFault,
    chain_entries,
    compare_anchor,
    find_faults,
)
from lifelong_core.store.access.records import AuditEntry
from lifelong_core.store.access.rows import audit_entry_of
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.database import Database
from lifelong_core.store.schema import tables

_LOCK = 0x6C6C_0003
"""Key of the PostgreSQL advisory lock under which entries are numbered."""
NUMBERED = "audit.numbered"
"""Action of the entry that a migration wrote where older versions had left gaps; its details say up to which number."""
CHAINED = "audit.chained"
"""Action of the entry that a migration wrote after it had chained older entries; its details say up to which number."""
REFUSED_ACCESS, REFUSED_LOGIN, REFUSED_UPLOAD = "access.refuse", "console.refuse", "uploads.refuse"
REFUSED_GRAPH = "models.refuse"
REFUSALS = (REFUSED_ACCESS, REFUSED_LOGIN, REFUSED_UPLOAD, REFUSED_GRAPH)
"""Actions of the entries about refused requests, which changed nothing."""
LOCAL = "local"
"""Source of what a process of the product did by itself, or a person on the command line."""
_PAGE = 2000
_audit = tables.audit
_source: ContextVar[str] = ContextVar("source of changes", default=LOCAL)

AuditKind: TypeAlias = Literal["changes", "refusals"]


@contextmanager
def audit_source(source: str) -> Generator[None, None, None]:
    """Let the entries that this thread or task writes within the block name this source."""
    before = _source.set(source)
    try:
        yield
    finally:
        _source.reset(before)


def write_audit(
    connection: sa.Connection,
    *,
    actor: str,
    action: str,
    subject: str,
    details: dict[str, Any] | None = None,
    source: str | None = None,
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
        source: address from which it was asked for; None: that of `audit_source`, else `local`.
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
    """Requests that were refused, alike in all that is said here.

    Attributes:
        action: one of `REFUSALS`.
        actor: name of the token, as far as it is known.
        source: address from which they came.
        subject: what was asked for.
        details: a JSON document.
    """

    action: str
    actor: str
    source: str
    subject: str
    details: dict[str, Any]


@dataclass(frozen=True)
class AuditVerification:
    """What was found when the audit log was verified.

    Attributes:
        entries: how many were read.
        newest: the anchor of the newest one; None: there are none.
        chained_up_to: entries up to this number were chained by an upgrade: earlier changes of them cannot be seen.
        faults: all that is wrong; empty: nothing.
    """

    entries: int
    newest: Anchor | None
    chained_up_to: int
    faults: tuple[ChainFault, ...]


class AuditLog:
    """Reads the audit log and verifies it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        limit: int = 100,
        before: int | None = None,
        *,
        action: str | None = None,
        subject: str | None = None,
        kind: AuditKind | None = None,
    ) -> list[AuditEntry]:
        """The newest entries, newest first.

        Args:
            limit: most entries.
            before: id of the last entry of the page before; None: from the newest.
            action: only this one, as `heads.rollback`, or all of one kind of thing, as `heads`; None: all.
            subject: only entries whose subject contains this; None: all.
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
        if kind is not None:
            is_refusal = entries.action.in_(REFUSALS)
            query = query.where(is_refusal if kind == "refusals" else ~is_refusal)
        with self._database.read() as connection:
            return [audit_entry_of(row) for row in connection.execute(query)]

    def note_refusals(self, refusals: Sequence[Refusals]) -> None:
        """Write entries about refused requests, all or none.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            for one in refusals:
                write_audit(
                    connection,
                    actor=one.actor,
                    action=one.action,
                    subject=one.subject,
                    details=one.details,
                    source=one.source,
                )

    def newest(self) -> Anchor | None:
        """The anchor of the newest entry; None: there are none."""
        with self._database.read() as connection:
            return _newest(connection)

    def fault_of(self, anchor: Anchor) -> ChainFault | None:
        """What an anchor of an earlier state says of the log; None: the log still holds it."""
        digest = sa.select(_audit.c.digest).where(_audit.c.id == anchor.sequence)
        with self._database.read() as connection:
            newest = _newest(connection)
            found = connection.execute(digest).scalar_one_or_none()
        return compare_anchor(anchor, 0 if newest is None else newest.sequence, found)

    def verify(self, *anchors: Anchor, newest_only: int | None = None) -> AuditVerification:
        """Compare every entry with its digest, with the entry before it, and the log with anchors of earlier states.

        Args:
            anchors: of earlier states.
            newest_only: verify so many of the newest entries; None: all.
        """
        newest = self.newest()
        known = self._up_to(NUMBERED)
        before = (
            None if newest is None or newest_only is None else self._anchor_at(newest.sequence - newest_only)
        )
        count = 0

        def counted() -> Iterator[AuditEntry]:
            nonlocal count
            for entry in self._ascending(0 if before is None else before.sequence):
                count += 1
                yield entry

        faults = find_faults(counted(), before=before, gaps_up_to=known)
        faults += [fault for anchor in anchors if (fault := self.fault_of(anchor)) is not None]
        return AuditVerification(count, newest, self._up_to(CHAINED), tuple(faults))

    def _ascending(self, after: int) -> Iterator[AuditEntry]:
        """All entries in order; a page is a transaction of its own, since no entry ever changes."""
        while True:
            query = sa.select(_audit).where(_audit.c.id > after).order_by(_audit.c.id).limit(_PAGE)
            try:
                with self._database.read() as connection:
                    page = [audit_entry_of(row) for row in connection.execute(query)]
            except ValueError:  # some column holds what is no time or no JSON: the product did not write it
                page = self._one_by_one(after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _one_by_one(self, after: int) -> "list[AuditEntry]":
        """A page of entries; one that cannot be read is empty, and so fits no digest."""
        page: list[AuditEntry] = []
        with self._database.read() as connection:
            numbers = sa.select(_audit.c.id).where(_audit.c.id > after).order_by(_audit.c.id).limit(_PAGE)
            for number in connection.execute(numbers).scalars().all():
                try:
                    row = connection.execute(sa.select(_audit).where(_audit.c.id == number)).one()
                    page.append(audit_entry_of(row))
                except ValueError:
                    page.append(AuditEntry(number, now(), "", "", ""))
        return page

    def _anchor_at(self, sequence: int) -> Anchor | None:
        query = sa.select(_audit.c.id, _audit.c.digest).where(_audit.c.id == sequence)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Anchor(row.id, row.digest)

    def _up_to(self, action: str) -> int:
        """The largest number in the entries that migrations wrote under this action; 0: there are none."""
        query = sa.select(sa.cast(_audit.c.details, sa.Text)).where(_audit.c.action == action)
        with self._database.read() as connection:
            texts = connection.execute(query).scalars().all()
        found = (
            re.search(r'"up_to": ?([0-9]{1,10})', text) for text in texts
        )  # whatever was made of it since
        return max((int(one[1]) for one in found if one is not None), default=0)


def _newest(connection: sa.Connection) -> Anchor | None:
    query = sa.select(_audit.c.id, _audit.c.digest).order_by(_audit.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Anchor(row.id, row.digest)
