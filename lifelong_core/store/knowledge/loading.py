"""Reads the whole knowledge base, and after a change only what is new."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import sqlalchemy as sa

from lifelong_core.errors import NotFoundError
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.database import Database
from lifelong_core.store.knowledge.changes import known_records, read_revision
from lifelong_core.store.schema import tables

if TYPE_CHECKING:
    from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry
    from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase

_entries, _fingerprints = tables.knowledge_entries, tables.fingerprints


@dataclass(frozen=True)
class _Loaded:
    """The knowledge base as of one revision."""

    revision: int
    base: "KnowledgeBase"
    entries: "Mapping[str, KnowledgeEntry]"
    """by digest of the document"""
    fingerprints: "Mapping[str, Fingerprint]"
    """by artifact"""


class Loader:
    """Holds the knowledge base that was read last; threads may share a loader."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def load(self) -> "KnowledgeBase":
        """The present knowledge base.

        Raises:
            UnavailableError: a document or a fingerprint is damaged, or database or artifacts do not answer.
        """
        with self._lock:
            while True:
                rows = self._changed_rows()
                if rows is None:
                    break
                try:
                    self._loaded = self._read(rows)
                except NotFoundError:
                    with self._database.read() as connection:
                        if read_revision(connection) == rows.revision:
                            raise
                    # A fingerprint was deleted since its row was read.
            if self._loaded is None:
                raise TypeError("without a known revision the rows are read")
            return self._loaded.base

    def _changed_rows(self) -> "_Rows | None":
        """The rows, with the entries that are not held yet; None: nothing has changed."""
        held: Mapping[str, KnowledgeEntry] = {} if self._loaded is None else self._loaded.entries
        with self._database.read() as connection:
            revision = read_revision(connection)
            if self._loaded is not None and self._loaded.revision == revision:
                return None
            # In the order of the changes, as entries were added.
            query = sa.select(_entries.c.task, _entries.c.digest).order_by(
                _entries.c.created_at, _entries.c.task
            )
            digests = {row.task: row.digest for row in connection.execute(query)}
            unknown = [task for task, digest in digests.items() if digest not in held]
            records = known_records(connection, unknown)
            found = sa.select(_fingerprints.c.task, _fingerprints.c.artifact)
            order = _fingerprints.c.task, _fingerprints.c.created_at, _fingerprints.c.digest
            artifacts = [(row.task, row.artifact) for row in connection.execute(found.order_by(*order))]
        entries = {digest: held[digest] for digest in digests.values() if digest in held}
        entries |= {record.digest: record.entry for record in records.values()}
        return _Rows(revision, digests, entries, artifacts)

    def _read(self, rows: "_Rows") -> _Loaded:
        from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
        from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase

        known: Mapping[str, Fingerprint] = {} if self._loaded is None else self._loaded.fingerprints
        fingerprints = {
            artifact: known.get(artifact) or fingerprint_from_bytes(self._artifacts.get(artifact))
            for _, artifact in rows.artifacts
        }
        by_task: dict[str, tuple[Fingerprint, ...]] = {}
        for task, artifact in rows.artifacts:
            by_task[task] = (*by_task.get(task, ()), fingerprints[artifact])
        base = KnowledgeBase({task: rows.entries[digest] for task, digest in rows.digests.items()}, by_task)
        return _Loaded(rows.revision, base, MappingProxyType(rows.entries), MappingProxyType(fingerprints))


@dataclass(frozen=True)
class _Rows:
    """The knowledge base without its fingerprints."""

    revision: int
    digests: "dict[str, str]"
    """of the documents, by task"""
    entries: "dict[str, KnowledgeEntry]"
    """by digest"""
    artifacts: list[tuple[str, str]]
    """task and artifact of each fingerprint"""
