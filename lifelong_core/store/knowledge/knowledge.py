"""Reads and changes entries and fingerprints of the knowledge base.

Each change is one transaction with its audit entry, raises the revision of the knowledge base, and submits the job that
fits the ranker and builds the index of fingerprints again.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from lifelong_core.entities.develop.knowledge import (
    LOCAL,
    FingerprintRecord,
    ImportOutcome,
    KnowledgeRecord,
    KnowledgeState,
)
from lifelong_core.entities.jobs import Job
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.artifacts import Artifacts, digest_of
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.documents import document_text
from lifelong_core.store.knowledge.changes import (
    NewFingerprint,
    delete_entry,
    known_records,
    lock_knowledge,
    raise_revision,
    read_revision,
    records_of,
    remove_unneeded,
    restore_missing,
    write_entry,
    write_fingerprints,
)
from lifelong_core.store.knowledge.loading import Loader
from lifelong_core.store.knowledge.rankers import drop_outdated, request_refit
from lifelong_core.store.registry.tasks import find_task
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Training
    from lifelong_core.develop.knowledge.knowledge_base import Fingerprint, KnowledgeBase

_MOST_NAMED = 5
"""Largest number of tasks that an error names."""
_MOST_AUDITED = 100
"""Largest number of tasks that an entry of the audit log names."""
_entries, _fingerprints = tables.knowledge_entries, tables.fingerprints


class Knowledge:
    """Entries and fingerprints by task; a task of the knowledge base need not be one of `tasks`."""

    def __init__(self, database: Database, artifacts: Artifacts, index_folder: Path | None = None) -> None:
        self._database = database
        self._artifacts = artifacts
        self._loader = Loader(database, artifacts, index_folder)

    def revision(self) -> int:
        """Number of changes until now: an unchanged revision means an unchanged knowledge base."""
        with self._database.read() as connection:
            return read_revision(connection)

    def state(self) -> KnowledgeState:
        """Counts of all entries and fingerprints."""
        count, transfers = sa.func.count(), sa.func.sum(_entries.c.transfers)
        by_origin = sa.select(_entries.c.origin, count, transfers).group_by(_entries.c.origin)
        with self._database.read() as connection:
            rows = connection.execute(by_origin.order_by(_entries.c.origin)).all()
            held = connection.execute(sa.select(count).select_from(_fingerprints)).scalar_one()
            return KnowledgeState(
                revision=read_revision(connection),
                entries=sum(row[1] for row in rows),
                fingerprints=held,
                transfers=sum(int(row[2]) for row in rows),
                origins={row[0]: row[1] for row in rows},
            )

    def fingerprint_records(self) -> list[FingerprintRecord]:
        """The rows of all fingerprints, by task."""
        query = sa.select(_fingerprints).order_by(_fingerprints.c.task, _fingerprints.c.created_at)
        with self._database.read() as connection:
            return [read_record(row, FingerprintRecord) for row in connection.execute(query)]

    def list(
        self, limit: int | None = None, after: str | None = None, *, containing: str = ""
    ) -> list[KnowledgeRecord]:
        """Entries by task name.

        Args:
            limit: largest number of entries; None: all.
            after: last task of the previous page; None: from the first one.
            containing: text that the names contain.
        """
        query = sa.select(_entries).order_by(_entries.c.task).limit(limit)
        if after is not None:
            query = query.where(_entries.c.task > after)
        if containing:
            query = query.where(_entries.c.task.contains(containing, autoescape=True))
        with self._database.read() as connection:
            return records_of(connection, query)

    def get(self, task: str) -> KnowledgeRecord:
        """The entry of a task.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return _entry_of(connection, task)

    def load(self, *, build_index: bool = False) -> "KnowledgeBase":
        """The whole knowledge base; the same value until it or its index changes (one cheap query).

        After a change, only changed entries are read. A fingerprint is read when it is asked for.

        Args:
            build_index: whether to build a missing index, and to read any number of fingerprints at once. False, for
                serving processes: an index that exists is used, without one at most `MOST_AT_ONCE` are read.

        Raises:
            UnavailableError: a document is damaged, or the database does not answer; to build the index, also: a
                fingerprint is damaged, or the artifacts do not answer.
        """
        return self._loader.load_with_index() if build_index else self._loader.load()

    def put(self, entry: "KnowledgeEntry", *, actor: str) -> KnowledgeRecord:
        """Store the entry of a task, in the place of the present one; its fingerprints stay, its origin becomes local.

        Raises:
            PayloadTooLargeError: the document is too large to be stored.
        """
        values, moment = _values(entry, LOCAL), now()
        with lock_knowledge(self._database) as connection:
            known = known_records(connection, [values["task"]]).get(values["task"])
            if known is None or any(getattr(known, name) != value for name, value in values.items()):
                write_entry(connection, known, values, moment=moment, actor=actor)
                self._finish(connection, "put", values["task"], {"digest": values["digest"]}, actor=actor)
            return _entry_of(connection, values["task"])

    def add_training(self, task: str, training: "Training", *, samples: int, actor: str) -> KnowledgeRecord:
        """Add a training to the entry of a task; one that is there already changes nothing.

        A registered task without an entry gets one, with the facts that are known of it.

        Args:
            task: the target of the training.
            training: how the task was trained, and how well it did.
            samples: images of the task, for its first entry.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is neither an entry nor a registered task of that name.
            ConflictError: the entry comes from another institution.
            PayloadTooLargeError: the document is too large to be stored.
        """
        moment = now()
        with lock_knowledge(self._database) as connection:
            known = known_records(connection, [task]).get(task)
            entry = _first_entry(connection, task, samples) if known is None else known.entry
            if known is not None and known.origin != LOCAL:
                raise ConflictError(
                    f"the entry of {task} comes from {known.origin}, so the training is not added to it.",
                    field="task",
                    hint="Put an entry of this institution in its place, or train under a task name of its own.",
                )
            if training not in entry.trainings:
                extended = entry.model_copy(update={"trainings": (*entry.trainings, training)})
                values = _values(extended, LOCAL)
                write_entry(connection, known, values, moment=moment, actor=actor)
                self._finish(connection, "training", task, {"digest": values["digest"]}, actor=actor)
            return _entry_of(connection, task)

    def put_fingerprint(self, task: str, fingerprint: "Fingerprint", *, actor: str) -> FingerprintRecord:
        """Store a fingerprint of a task; it takes the place of one of the same kind, extractor and number of bins.

        A registered task without an entry gets one, with the facts that are known of it.

        Raises:
            NotFoundError: there is neither an entry nor a registered task of that name.
            UnavailableError: database or artifacts do not answer.
        """
        new, moment = NewFingerprint.of(fingerprint), now()
        with self._storing({new.artifact: new.content}) as connection:
            known = known_records(connection, [task]).get(task)
            if known is None:
                first = _first_entry(connection, task, getattr(fingerprint, "samples", 1))
                values = _values(first, LOCAL)
                write_entry(connection, None, values, moment=moment, actor=actor)
            held = () if known is None else known.fingerprints
            if new.digest not in {record.digest for record in held}:
                replaced = write_fingerprints(connection, task, held, [new], moment=moment, actor=actor)
                remove_unneeded(connection, self._artifacts, replaced)
                details = {name: new.row[name] for name in ("kind", "extractor", "digest")}
                self._finish(connection, "fingerprint", task, details, actor=actor)
            found = _entry_of(connection, task).fingerprints
        return next(record for record in found if record.digest == new.digest)

    def import_base(
        self, knowledge: "KnowledgeBase", *, origin: str = LOCAL, replace: bool = False, actor: str
    ) -> ImportOutcome:
        """Store all entries and fingerprints of a knowledge base, or nothing.

        An entry of the same origin is replaced by its new version. Fingerprints are added; one of the same kind,
        extractor and number of bins takes the place of the present one.

        Args:
            knowledge: entries and fingerprints.
            origin: name of the trusted signer that they come from.
            replace: whether to replace also entries of another origin, such as local ones.
            actor: name for the audit log.

        Raises:
            ConflictError: an entry of another origin would change; the message names it.
            PayloadTooLargeError: a document is too large to be stored.
            UnavailableError: database or artifacts do not answer.
        """
        new = {name: _values(entry, origin) for name, entry in knowledge.entries.items()}
        held = {name: _new_fingerprints(knowledge, name) for name in new}
        contents = {one.artifact: one.content for several in held.values() for one in several}
        moment = now()
        with self._storing(contents) as connection:
            known = known_records(connection, sorted(new))
            added = sorted(set(new) - set(known))
            changed = sorted(name for name in known if _differs(known[name], new[name], held[name]))
            if not replace:
                _check_origins([known[name] for name in changed], origin)
            replaced: list[str] = []
            for name in (*added, *changed):
                before = known.get(name)
                write_entry(connection, before, new[name], moment=moment, actor=actor)
                present = () if before is None else before.fingerprints
                replaced += write_fingerprints(
                    connection, name, present, held[name], moment=moment, actor=actor
                )
            if added or changed:
                remove_unneeded(connection, self._artifacts, replaced)
                details = {"added": len(added), "changed": len(changed), "replace": replace}
                details |= _named([*added, *changed])
                self._finish(connection, "import", origin, details, actor=actor)
        unchanged = sorted(set(new) - {*added, *changed})
        return ImportOutcome(added=tuple(added), changed=tuple(changed), unchanged=tuple(unchanged))

    def delete(self, task: str, *, actor: str) -> KnowledgeRecord:
        """Delete the entry of a task with its fingerprints; trainings of other tasks that name it as the source stay.

        Raises:
            NotFoundError: there is none.
            UnavailableError: database or artifacts do not answer; nothing is deleted.
        """
        with lock_knowledge(self._database) as connection:
            record = _entry_of(connection, task)
            delete_entry(connection, record)
            held = [one.artifact for one in record.fingerprints]
            remove_unneeded(connection, self._artifacts, held)
            details = {"origin": record.origin, "digest": record.digest, "fingerprints": len(held)}
            lost = bool(held)
            self._finish(connection, "delete", task, details, actor=actor, has_lost_fingerprints=lost)
        return record

    def note_export(self, tasks: Sequence[str], digest: str, *, actor: str) -> None:
        """Write to the audit log that entries were exported, as a bundle with this digest."""
        with self._database.write() as connection:
            details = {"exported": len(tasks), **_named(tasks)}
            write_audit(connection, actor, "knowledge.export", digest, details)

    def request_refit(self, *, actor: str) -> Job | None:
        """Submit the job that fits the ranker and builds the index; None: one waits, or there is nothing to do."""
        with lock_knowledge(self._database) as connection:
            return request_refit(connection, actor=actor)

    @contextmanager
    def _storing(self, contents: Mapping[str, bytes]) -> Generator[sa.Connection, None, None]:
        """A change that needs these artifacts, by digest. They are stored before, outside the lock; if the change is
        refused, those that nothing needs are deleted."""
        for content in contents.values():
            self._artifacts.put(content)
        try:
            with lock_knowledge(self._database) as connection:
                yield connection
                restore_missing(self._artifacts, contents)
        except (ConflictError, NotFoundError):
            with lock_knowledge(self._database) as connection:
                remove_unneeded(connection, self._artifacts, contents)
            raise

    def _finish(
        self,
        connection: sa.Connection,
        verb: str,
        subject: str,
        details: dict[str, Any],
        *,
        actor: str,
        has_lost_fingerprints: bool = False,
    ) -> None:
        """What ends every change: revision, refit and audit entry."""
        raise_revision(connection)
        request_refit(connection, actor=actor, has_lost_fingerprints=has_lost_fingerprints)
        drop_outdated(connection, self._artifacts)
        write_audit(connection, actor, f"knowledge.{verb}", subject, details)


def _values(entry: "KnowledgeEntry", origin: str) -> dict[str, Any]:
    """Columns of an entry."""
    document = document_text(entry.to_json, field=f"entries.{entry.card.name}")
    return {
        "task": entry.card.name,
        "document": document,
        "digest": digest_of(document.encode()),
        "transfers": sum(training.source is not None for training in entry.trainings),
        "origin": origin,
    }


def _new_fingerprints(knowledge: "KnowledgeBase", task: str) -> Sequence[NewFingerprint]:
    return [NewFingerprint.of(one) for one in knowledge.fingerprints.get(task, ())]


def _first_entry(connection: sa.Connection, task: str, samples: int) -> "KnowledgeEntry":
    """The first entry of a registered task.

    Raises:
        NotFoundError: there is no such task.
    """
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard

    registered = find_task(connection, task)
    if registered is None:
        raise _no_entry(task)
    return KnowledgeEntry(card=TaskCard(name=task, classes=len(registered.class_names), samples=samples))


def _entry_of(connection: sa.Connection, task: str) -> KnowledgeRecord:
    found = known_records(connection, [task]).get(task)
    if found is None:
        raise _no_entry(task)
    return found


def _differs(known: KnowledgeRecord, new: dict[str, Any], held: Iterable[NewFingerprint]) -> bool:
    """Whether an import would change an entry; the same entry from elsewhere keeps its origin."""
    present = {one.digest for one in known.fingerprints}
    return known.digest != new["digest"] or any(one.digest not in present for one in held)


def _named(tasks: Sequence[str]) -> dict[str, Any]:
    """Tasks for the audit log, up to a number that its entries stay readable with."""
    return {"tasks": list(tasks[:_MOST_AUDITED])}


def _check_origins(changed: Iterable[KnowledgeRecord], origin: str) -> None:
    others = [record for record in changed if record.origin != origin]
    if others:
        named = ", ".join(f"{record.task} ({record.origin})" for record in others[:_MOST_NAMED])
        more = "" if len(others) <= _MOST_NAMED else f" and {len(others) - _MOST_NAMED} more"
        raise ConflictError(
            f"these entries have another origin than {origin} and would change: {named}{more}.",
            field="replace",
            hint="Nothing was imported. Delete them first, or replace them (`--replace`, `?replace=true`).",
        )


def _no_entry(task: str) -> NotFoundError:
    return NotFoundError(
        f"the knowledge base has no entry of the task {task[:80]!r}.",
        field="task",
        hint="List the entries: `lifelong knowledge list`.",
    )
