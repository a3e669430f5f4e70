"""Statements on entries and fingerprints; the caller owns the transaction."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from lifelong_core.entities.develop.knowledge import FingerprintRecord, KnowledgeRecord
from lifelong_core.store.artifacts import Artifacts, digest_of
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.deletion import delete_rows
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.jobs.rows import is_needed
from lifelong_core.store.schema import tables

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.knowledge_base import Fingerprint

_entries, _fingerprints = tables.knowledge_entries, tables.fingerprints


@dataclass(frozen=True)
class NewFingerprint:
    """A fingerprint and its row. Of the same task, a later one of the same `slot` takes its place."""

    content: bytes
    row: dict[str, Any]

    @classmethod
    def of(cls, fingerprint: "Fingerprint") -> "NewFingerprint":
        """The row of a fingerprint."""
        content = fingerprint.to_bytes()
        of_some: dict[str, Any] = {
            name: getattr(fingerprint, name, None) for name in ("extractor", "bins", "samples")
        }
        row = {
            "digest": fingerprint.digest,
            "artifact": digest_of(content),
            "kind": fingerprint.kind,
            **of_some,
        }
        return cls(content, row)

    @property
    def digest(self) -> str:
        """Of its values."""
        return self.row["digest"]

    @property
    def artifact(self) -> str:
        """Digest of its file."""
        return self.row["artifact"]

    @property
    def slot(self) -> tuple[str, str | None, int | None]:
        """Two fingerprints of one task differ in this key."""
        return self.row["kind"], self.row["extractor"], self.row["bins"]


@contextmanager
def lock_knowledge(database: Database) -> Generator[sa.Connection, None, None]:
    """A writing transaction that all other changes of the knowledge base wait for."""
    with database.write() as connection:
        connection.execute(sa.select(tables.knowledge_revision.c.id).with_for_update())
        yield connection


def raise_revision(connection: sa.Connection) -> None:
    """Note a change of the knowledge base, so that processes read it again."""
    revision = tables.knowledge_revision.c.revision
    connection.execute(sa.update(tables.knowledge_revision).values(revision=revision + 1))


def read_revision(connection: sa.Connection) -> int:
    """Number of changes of the knowledge base until now."""
    return connection.execute(sa.select(tables.knowledge_revision.c.revision)).scalar_one()


def records_of(connection: sa.Connection, query: sa.Select[Any]) -> list[KnowledgeRecord]:
    """Entries of a query on their table, each with its fingerprints."""
    rows = connection.execute(query).all()
    held: dict[str, list[FingerprintRecord]] = {row.task: [] for row in rows}
    for names in batched(list(held)):
        found = sa.select(_fingerprints).where(_fingerprints.c.task.in_(names))
        for row in connection.execute(found.order_by(_fingerprints.c.task, _fingerprints.c.created_at)):
            held[row.task].append(read_record(row, FingerprintRecord))
    return [read_record(row, KnowledgeRecord, fingerprints=tuple(held[row.task])) for row in rows]


def known_records(connection: sa.Connection, tasks: Sequence[str]) -> dict[str, KnowledgeRecord]:
    """The present entries of these tasks, by task."""
    return {
        record.task: record
        for names in batched(tasks)
        for record in records_of(connection, sa.select(_entries).where(_entries.c.task.in_(names)))
    }


def write_entry(
    connection: sa.Connection,
    known: KnowledgeRecord | None,
    values: dict[str, Any],
    *,
    moment: datetime,
    actor: str,
) -> None:
    """Insert an entry, or replace the known one of its task."""
    changed = {**values, "changed_at": moment, "changed_by": actor}
    if known is None:
        connection.execute(sa.insert(_entries), {"created_at": moment, **changed})
    else:
        connection.execute(sa.update(_entries).where(_entries.c.task == known.task).values(changed))


def write_fingerprints(
    connection: sa.Connection,
    task: str,
    known: Iterable[FingerprintRecord],
    new: Sequence[NewFingerprint],
    *,
    moment: datetime,
    actor: str,
) -> list[str]:
    """Insert fingerprints of a task, and delete the known ones whose place they take; return the artifacts of these."""
    held = {record.digest for record in known}
    slots, digests = {one.slot for one in new}, {one.digest for one in new}
    replaced = [
        record
        for record in known
        if (record.kind, record.extractor, record.bins) in slots and record.digest not in digests
    ]
    delete_rows(connection, _fingerprints, [(task, record.digest) for record in replaced])
    origin = {"task": task, "created_at": moment, "created_by": actor}
    rows = [{**one.row, **origin} for one in new if one.digest not in held]
    if rows:
        connection.execute(sa.insert(_fingerprints), rows)
    return [record.artifact for record in replaced]


def delete_entry(connection: sa.Connection, record: KnowledgeRecord) -> None:
    """Delete an entry with its fingerprints."""
    connection.execute(sa.delete(_fingerprints).where(_fingerprints.c.task == record.task))
    connection.execute(sa.delete(_entries).where(_entries.c.task == record.task))


def remove_unneeded(connection: sa.Connection, artifacts: Artifacts, digests: Iterable[str]) -> None:
    """Delete the artifacts among these that nothing refers to.

    This happens within the transaction, so that a simultaneous change that needs them waits, and stores them again.
    """
    moment = now()
    for digest in sorted(set(digests)):
        if not is_needed(connection, digest, moment):
            artifacts.remove(digest)


def restore_missing(artifacts: Artifacts, contents: Mapping[str, bytes]) -> None:
    """Store contents, by digest, that were deleted since they were put; within the transaction that needs them."""
    for digest, content in contents.items():
        if not artifacts.has(digest):
            artifacts.put(content)
