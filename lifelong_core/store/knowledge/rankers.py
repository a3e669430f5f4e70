"""The fitted ranker, and the request to fit it again.

A serving process fits nothing: it reads the ranker that a job of kind RANK stored.
"""

from typing import TYPE_CHECKING

import sqlalchemy as sa

from lifelong_core.entities.develop.knowledge import RankerRecord
from lifelong_core.entities.jobs import Job
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.database import Database
from lifelong_core.store.jobs.transitions import insert_job
from lifelong_core.store.knowledge.changes import lock_knowledge, remove_unneeded, restore_missing
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.develop.ranking.ranker import FittedRanker

RANK = "rank"
"""Kind of the job that fits the ranker on the outcomes of the knowledge base, and builds the index of its
fingerprints."""
_jobs, _rankers = tables.jobs, tables.rankers


class Rankers:
    """Stores and reads the fitted ranker; there is at most one."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts
        self._held: tuple[str, FittedRanker | None] | None = None
        """digest and value of the ranker that was read last"""

    def current(self) -> RankerRecord | None:
        """The stored ranker; None: none was fitted yet."""
        with self._database.read() as connection:
            return current_ranker(connection)

    def read(self) -> "FittedRanker | None":
        """The fitted ranker; None: none was fitted yet, or only by another version of the product.

        Raises:
            DamagedArtifactError: its bytes were changed.
            UnavailableError: database or artifacts do not answer.
        """
        record = self.current()
        if record is None:
            return None
        held = self._held
        if held is None or held[0] != record.digest:
            try:
                held = self._held = record.digest, _ranker_of(self._artifacts.get(record.digest))
            except NotFoundError:
                newer = self.current()
                if newer is None or newer.digest != record.digest:
                    return self.read()  # it was replaced since its row was read
                raise
        return held[1]

    def put(self, content: bytes, *, outcomes_digest: str, revision: int, actor: str) -> RankerRecord:
        """Store a fitted ranker in the place of the present one, unless that was fitted on a newer knowledge base.

        Args:
            content: its bytes.
            outcomes_digest: of the outcomes that it was fitted on.
            revision: of the knowledge base that these were read from.
            actor: name for the audit log.

        Returns:
            The ranker in use.
        """
        digest = self._artifacts.put(content)
        moment = now()
        values = {
            "digest": digest,
            "outcomes_digest": outcomes_digest,
            "revision": revision,
            "fitted_at": moment,
        }
        with lock_knowledge(self._database) as connection:
            known = current_ranker(connection)
            if known is not None and known.revision > revision:
                remove_unneeded(connection, self._artifacts, [digest])
                return known
            connection.execute(sa.delete(_rankers))
            row = connection.execute(sa.insert(_rankers).values(values).returning(_rankers)).one()
            restore_missing(self._artifacts, {digest: content})
            if known is not None:
                remove_unneeded(connection, self._artifacts, [known.digest])
            details = {"outcomes_digest": outcomes_digest, "revision": revision}
            write_audit(connection, actor, "rankers.put", digest, details)
            return read_record(row, RankerRecord)


def _ranker_of(content: bytes) -> "FittedRanker | None":
    from lifelong_core.develop.ranking.ranker import FittedRanker

    try:
        return FittedRanker.from_bytes(content)
    except InvalidInputError:
        return None


def current_ranker(connection: sa.Connection) -> RankerRecord | None:
    """The stored ranker; None: none was fitted yet."""
    row = connection.execute(sa.select(_rankers)).one_or_none()
    return None if row is None else read_record(row, RankerRecord)


def request_refit(
    connection: sa.Connection, *, actor: str, has_lost_fingerprints: bool = False
) -> Job | None:
    """Submit the job that fits the ranker and builds the index of fingerprints again.

    The caller has locked the knowledge base in this transaction.

    Args:
        connection: of the transaction.
        actor: name for the job.
        has_lost_fingerprints: whether fingerprints were deleted; they are in the index until it is built again.

    Returns:
        The job; None: one waits already, or there are neither transfers nor fingerprints.
    """
    if not (has_lost_fingerprints or _is_fittable(connection) or _has_fingerprints(connection)):
        return None
    waiting = sa.select(_jobs.c.id).where(_jobs.c.kind == RANK, _jobs.c.state == "queued").limit(1)
    if connection.execute(waiting).first() is not None:
        return None
    return insert_job(connection, RANK, {}, actor=actor)


def drop_outdated(connection: sa.Connection, artifacts: Artifacts) -> None:
    """Delete the ranker if the knowledge base no longer holds any transfer to fit one on."""
    known = current_ranker(connection)
    if known is not None and not _is_fittable(connection):
        connection.execute(sa.delete(_rankers))
        remove_unneeded(connection, artifacts, [known.digest])


def _has_fingerprints(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(tables.fingerprints.c.task).limit(1)).first() is not None


def _is_fittable(connection: sa.Connection) -> bool:
    entries = tables.knowledge_entries
    measured = sa.select(entries.c.task).where(entries.c.transfers > 0).limit(1)
    return connection.execute(measured).first() is not None
