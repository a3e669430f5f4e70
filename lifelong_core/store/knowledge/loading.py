"""Reads the entries of the knowledge base, and after a change only new ones; fingerprints are read on first use."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.database import Database
from lifelong_core.store.files import make_folder
from lifelong_core.store.knowledge.changes import known_records, read_revision
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry
    from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
    from lifelong_core.develop.knowledge.stored_fingerprints import FingerprintReference


MOST_AT_ONCE = 128
"""Fingerprints that a serving process reads for one answer; each takes about 9 ms (100 bins of 512 features)."""

_entries, _fingerprints = tables.knowledge_entries, tables.fingerprints
MOST_BYTES = 32 * 2**20


@dataclass(frozen=True)
class _Loaded:
    """The knowledge base as of one revision."""

    revision: int
    base: "KnowledgeBase"
    entries: "Mapping[str, KnowledgeEntry]"
    """by digest of the document"""
    fingerprints: "Mapping[str, tuple[FingerprintReference, ...]]"
    """by task"""


class Loader:
    """Holds the knowledge base that was read last; threads may share a loader."""

    def __init__(self, database: Database, artifacts: Artifacts, index_folder: Path | None) -> None:
        self._database = database
        self._cache = FingerprintCache(artifacts)
        self._index_folder = index_folder
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def load(self) -> "KnowledgeBase":
        """The present knowledge base, for a process that serves: with the index files that exist.

        Raises:
            UnavailableError: a document is damaged, or the database does not answer.
        """
        with self._lock:
            loaded = self._loaded = self._with_index(self._read())
            return loaded.base

    def load_with_index(self) -> "KnowledgeBase":
        """The present knowledge base, with an index that is built where it is missing.

        Without a folder that can be written, it is without an index.

        Raises:
            DamagedArtifactError: a fingerprint is damaged.
            UnavailableError: as `load`, or the artifacts do not answer.
        """
        from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
        from lifelong_core.develop.knowledge.stored_fingerprints import StoredFingerprints

        with self._lock:
            loaded = self._loaded = self._read()
        base = KnowledgeBase(loaded.base.entries, StoredFingerprints(loaded.fingerprints, self._cache.read))
        with suppress(OSError):
            if self._index_folder is not None:
                make_folder(self._index_folder)
                return base.with_index(self._index_folder)
        return base

    def _read(self) -> _Loaded:
        from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
        from lifelong_core.develop.knowledge.stored_fingerprints import StoredFingerprints

        rows = self._changed_rows()
        if rows is None:
            if self._loaded is None:
                raise TypeError("without a known revision the rows are read")
            return self._loaded
        base = KnowledgeBase(
            {task: rows.entries[digest] for task, digest in rows.digests.items()},
            StoredFingerprints(rows.fingerprints, self._cache.read, most_at_once=MOST_AT_ONCE),
        )
        return _Loaded(rows.revision, base, MappingProxyType(rows.entries), rows.fingerprints)

    def _with_index(self, loaded: _Loaded) -> _Loaded:
        """With the index files that a job has built since the last call."""
        from lifelong_core.develop.knowledge.knowledge_index import KnowledgeIndex

        base, known = loaded.base, loaded.base.index
        if self._index_folder is None or (known is not None and known.is_complete):
            return loaded
        found = KnowledgeIndex.find(self._index_folder, base.fingerprints)
        if known is not None and len(found) == len(known):
            return loaded
        return replace(loaded, base=replace(base, index=found))

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
            fingerprints = _references(connection)
        entries = {digest: held[digest] for digest in digests.values() if digest in held}
        entries |= {record.digest: record.entry for record in records.values()}
        return _Rows(revision, digests, entries, fingerprints)


def _references(connection: sa.Connection) -> "dict[str, tuple[FingerprintReference, ...]]":
    """What is known of the fingerprints of each task, in the order in which they were stored."""
    from lifelong_core.develop.knowledge.stored_fingerprints import FingerprintReference

    columns = [_fingerprints.c[name] for name in ("artifact", "digest", "kind", "extractor", "bins")]
    order = _fingerprints.c.task, _fingerprints.c.created_at, _fingerprints.c.digest
    found: dict[str, list[FingerprintReference]] = {}
    for task, *values in connection.execute(sa.select(_fingerprints.c.task, *columns).order_by(*order)):
        found.setdefault(task, []).append(FingerprintReference(*values))
    return {task: tuple(references) for task, references in found.items()}


@dataclass(frozen=True)
class _Rows:
    """The knowledge base without its fingerprints."""

    revision: int
    digests: "dict[str, str]"
    """of the documents, by task"""
    entries: "dict[str, KnowledgeEntry]"
    """by digest"""
    fingerprints: "dict[str, tuple[FingerprintReference, ...]]"
    """by task"""


class FingerprintCache:
    """Reads fingerprints, and keeps at most `MOST_BYTES` of their arrays; threads may share a cache."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Fingerprint] = OrderedDict()
        """by artifact; the one that was used last is the last one"""
        self._bytes = 0

    def read(self, reference: "FingerprintReference") -> "Fingerprint":
        """The fingerprint of a reference.

        Raises:
            DamagedArtifactError: its bytes were changed.
            UnavailableError: it was deleted, or the artifacts do not answer.
        """
        with self._lock:
            held = self._held.get(reference.artifact)
            if held is not None:
                self._held.move_to_end(reference.artifact)
                return held
        fingerprint = self._read(reference)
        with self._lock:
            if reference.artifact not in self._held:
                self._held[reference.artifact] = fingerprint
                self._bytes += _size_of(fingerprint)
                while self._bytes > MOST_BYTES:
                    self._bytes -= _size_of(self._held.popitem(last=False)[1])
        return fingerprint

    def _read(self, reference: "FingerprintReference") -> "Fingerprint":
        from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes

        try:
            content = self._artifacts.get(reference.artifact)
        except NotFoundError as error:
            raise UnavailableError(
                f"the file {reference.artifact} of a fingerprint of the knowledge base is missing.",
                hint="It may have been deleted a moment ago: repeat the request. If not, restore a backup.",
            ) from error
        return fingerprint_from_bytes(content)


def _size_of(fingerprint: "Fingerprint") -> int:
    """Bytes of its arrays."""
    return sum(value.nbytes for value in vars(fingerprint).values() if isinstance(value, np.ndarray))
