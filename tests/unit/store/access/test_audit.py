import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.store import AuditEntry, Scope, Store, promote_calibrated
from lifelong_core.store.access.audit_chain import GENESIS, Anchor, chain_entries, digest_of
from lifelong_core.store.access.audit_log import LOCAL, Refusals, audit_source
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError
from tests.databases import sqlite_only
from tests.unit.store.samples import (
    CLASSES,
    COSTS,
    add_serving_model,
    calibration,
    head,
    started_together,
    tell,
)


def test_every_admin_change_is_in_the_audit_log(store: Store):
    before = datetime.now(UTC) - timedelta(seconds=1)
    add_serving_model(store)
    store.calibration_sets.add("dermatology", calibration(7), actor="tests")
    store.heads.publish("dermatology", head(), environment="site-a", actor="tests")
    store.heads.rollback("dermatology", environment="site-a", actor="tests")
    promote_calibrated(store, "dermatology", actor="tests")
    store.tokens.create("ci", [Scope.READ], actor="tests")
    store.tokens.revoke("ci", actor="tests")
    entries = store.audit.list()
    assert [(entry.action, entry.subject) for entry in reversed(entries)] == [
        ("tasks.add", "lesions"),
        ("models.add", "dermatology@1"),
        ("calibration_sets.add", "dermatology@1"),
        ("heads.publish", "dermatology@1/(default head)"),
        ("models.promote", "dermatology@1"),
        ("calibration_sets.add", "dermatology@1"),
        ("heads.publish", "dermatology@1/site-a"),
        ("heads.rollback", "dermatology@1/site-a"),
        ("models.promote", "dermatology@1"),
        ("tokens.create", "ci"),
        ("tokens.revoke", "ci"),
    ]
    assert {entry.actor for entry in entries} == {"tests"}
    assert all(before <= entry.at <= datetime.now(UTC) for entry in entries)
    assert entries[-1].details == {"classes": list(CLASSES)}
    assert entries[3].details == {"version": 1}


def test_the_log_is_read_in_pages_newest_first(store: Store):
    for index in range(5):
        store.tasks.add(f"t{index}", CLASSES, COSTS, actor="tests")
    first = store.audit.list(limit=3)
    assert [entry.subject for entry in first] == ["t4", "t3", "t2"]
    assert [entry.subject for entry in store.audit.list(limit=3, before=first[-1].id)] == ["t1", "t0"]


@sqlite_only
def test_a_refused_change_leaves_no_entry(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    with pytest.raises(ConflictError):
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    assert len(store.audit.list()) == 1


@pytest.fixture
def entries(store: Store) -> list[AuditEntry]:
    """Seven entries, oldest first; they are as they were written."""
    for index in range(7):
        store.tasks.add(f"t{index}", CLASSES, COSTS, actor="tests")
    assert store.audit.verify().faults == ()
    return store.audit.list()[::-1]


def faults(store: Store, *anchors: Anchor) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in store.audit.verify(*anchors).faults]


def execute(store: Store, *statements: sa.Executable) -> None:
    with store.database.write() as connection:
        for statement in statements:
            connection.execute(statement)


def rewrite(entry: AuditEntry, **changes: Any) -> sa.Update:
    """What an intruder does who knows how digests are made."""
    forged = replace(entry, **changes)
    values = {**changes, "digest": digest_of(forged)}
    return sa.update(tables.audit).where(tables.audit.c.id == entry.id).values(values)


def remove(*numbers: int) -> sa.Delete:
    return sa.delete(tables.audit).where(tables.audit.c.id.in_(numbers))


def test_each_entry_holds_the_digest_of_the_one_before_it(store: Store, entries: list[AuditEntry]):
    assert entries[0].previous_digest == GENESIS
    assert [entry.previous_digest for entry in entries[1:]] == [entry.digest for entry in entries[:-1]]
    assert all(entry.digest == digest_of(entry) for entry in entries)
    found = store.audit.verify()
    assert (found.entries, found.newest) == (7, Anchor(7, entries[-1].digest))


def test_the_digest_is_what_its_documentation_says(entries: list[AuditEntry]):
    entry = entries[2]
    names = json.dumps(CLASSES, separators=(",", ":"))
    text = (
        f'{{"action":"tasks.add","actor":"tests","at":"{entry.at:%Y-%m-%dT%H:%M:%S.%f}+00:00",'
        f'"details":{{"classes":{names}}},"id":3,"previous_digest":"{entries[1].digest}",'
        '"source":"local","subject":"t2"}'
    )
    assert entry.digest == hashlib.sha256(text.encode("ascii")).hexdigest()


@sqlite_only
def test_removed_entries_are_found(store: Store, entries: list[AuditEntry]):
    del entries
    execute(store, remove(1, 4, 5))
    assert faults(store) == [("missing", 1, 1), ("missing", 4, 5)]


@sqlite_only
@pytest.mark.parametrize("column", ["at", "actor", "action", "subject", "details", "source", "digest"])
def test_a_changed_entry_is_found(store: Store, entries: list[AuditEntry], column: str):
    value = {"at": datetime(2020, 1, 1, tzinfo=UTC), "details": {"classes": []}}.get(column, "x")
    execute(store, sa.update(tables.audit).where(tables.audit.c.id == 3).values({column: value}))
    assert faults(store) == [("changed", 3, 3)]
    # The last one has nobody behind it.
    execute(store, remove(4, 5, 6, 7))
    assert faults(store, Anchor(3, entries[2].digest))[0] == ("changed", 3, 3)


def test_an_entry_that_was_changed_with_its_digest_is_not_that_of_the_next_one(
    store: Store, entries: list[AuditEntry]
):
    execute(store, rewrite(entries[2], actor="somebody else"))
    assert faults(store) == [("detached", 4, 4)]
    assert "entry 4 does not continue entry 3" in store.audit.verify().faults[0].text


@sqlite_only
def test_a_log_that_was_written_anew_is_found_by_an_anchor(store: Store, entries: list[AuditEntry]):
    before = chain_entries(replace(entries[2], actor="somebody else"), entries[1].digest)
    statements = [rewrite(entries[2], actor="somebody else")]
    for entry in entries[3:]:
        statements.append(rewrite(entry, previous_digest=before.digest))
        before = chain_entries(entry, before.digest)
    execute(store, *statements)
    assert faults(store) == []
    assert faults(store, Anchor(2, entries[1].digest)) == []
    assert faults(store, Anchor(7, entries[6].digest)) == [("rewritten", 7, 7)]


@sqlite_only
def test_entries_that_were_exchanged_are_found(store: Store, entries: list[AuditEntry]):
    fifth, sixth = vars(entries[4]), vars(entries[5])
    execute(
        store,
        remove(5, 6),
        sa.insert(tables.audit).values({**sixth, "id": 5}),
        sa.insert(tables.audit).values({**fifth, "id": 6}),
    )
    assert faults(store) == [("moved", 5, 5), ("moved", 6, 6)]
    assert "entry 5 was written as entry 6" in store.audit.verify().faults[0].text


@sqlite_only
def test_a_forged_entry_is_found(store: Store, entries: list[AuditEntry]):
    forged = {**vars(entries[6]), "id": 8, "subject": "never happened"}
    execute(store, sa.insert(tables.audit).values(forged))
    assert faults(store) == [("changed", 8, 8)]


@sqlite_only
def test_a_tail_that_was_cut_off_is_found_by_an_anchor(store: Store, entries: list[AuditEntry]):
    anchor = Anchor(7, entries[6].digest)
    assert faults(store, anchor) == []
    execute(store, remove(6, 7))
    assert faults(store) == []
    assert faults(store, anchor) == [("cut", 6, 7)]
    # And also when other entries have grown in its place.
    for index in range(3):
        store.tasks.add(f"new{index}", CLASSES, COSTS, actor="tests")
    assert faults(store) == []
    assert faults(store, anchor) == [("rewritten", 7, 7)]
    execute(store, sa.delete(tables.audit))
    assert faults(store, anchor) == [("cut", 1, 7)]


@sqlite_only  # PostgreSQL takes no such values
def test_an_entry_that_cannot_be_read_is_found(store: Store, entries: list[AuditEntry]):
    del entries
    execute(store, sa.text("UPDATE audit SET details = 'no JSON', at = 'never' WHERE id = 3"))
    assert faults(store) == [("changed", 3, 3)]


@sqlite_only
def test_the_newest_entries_are_verified_by_themselves(store: Store, entries: list[AuditEntry]):
    execute(store, rewrite(entries[1], actor="somebody else"))
    found = store.audit.verify(newest_only=4)
    assert (found.entries, found.faults) == (4, ())
    assert [fault.first for fault in store.audit.verify(newest_only=6).faults] == [3]
    assert store.audit.verify(newest_only=7).entries == 7


@sqlite_only
def test_a_long_log_is_verified_in_pages(store: Store):
    refusal = Refusals("access.refuse", "anonymous", "192.0.2.1", "GET /v1/admin/tasks", {"count": 2})
    store.audit.note_refusals([refusal] * 4500)
    execute(store, remove(2000), remove(2001), remove(4000))
    found = store.audit.verify()
    assert (found.entries, [(fault.first, fault.last) for fault in found.faults]) == (
        4497,
        [(2000, 2001), (4000, 4000)],
    )


@sqlite_only
def test_entries_name_the_source_of_a_change(store: Store):
    with audit_source("192.0.2.7"):
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    store.tasks.add("other", CLASSES, COSTS, actor="tests")
    assert [entry.source for entry in store.audit.list()] == [LOCAL, "192.0.2.7"]


def test_refusals_are_told_from_changes(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    store.audit.note_refusals(
        [Refusals("access.refuse", "anonymous", "192.0.2.1", "GET /v1/admin/tasks", {"count": 2})]
    )
    (refusal,) = store.audit.list(kind="refusals")
    assert (refusal.source, refusal.details) == ("192.0.2.1", {"count": 2})
    assert [entry.action for entry in store.audit.list(kind="changes")] == ["tasks.add"]
    assert len(store.audit.list()) == 2


@pytest.mark.parametrize(
    "text", ["", "7", "0:" + "a" * 64, "7:" + "A" * 64, "7:" + "a" * 63, "7: " + "a" * 64]
)
def test_an_anchor_is_refused_that_is_none(text: str):
    with pytest.raises(InvalidInputError, match="SEQUENCE:DIGEST"):
        Anchor.parse(text)
    assert Anchor.parse(f" 7:{'a' * 64}\n") == Anchor(7, "a" * 64)


WRITER = """
import random, sys
from lifelong_core.store import Store
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.registry.registry import bump_revision

url, name = sys.argv[1:]
with Store.open(url, "memory://artifacts") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for index in range(40):
        try:
            with store.database.write() as connection:
                if index % 3:
                    bump_revision(connection)
                for part in range(1 + index % 2):
                    write_audit(connection, actor=name, action="tests.write", subject=f"{index}.{part}")
                if random.random() < 0.3:
                    raise KeyError
        except KeyError:
            pass
"""


def test_processes_number_their_entries_without_gaps_in_the_order_of_their_commits(store: Store):
    url = store.database.url.render_as_string(hide_password=False)
    with started_together(WRITER, *[(url, name) for name in ("one", "other")]) as processes:
        for process in processes:
            tell(process, "go")
        looks = 0
        while any(process.poll() is None for process in processes):
            # Whoever sees a number sees all below it.
            assert store.audit.verify().faults == ()
            looks += 1
        assert [process.wait() for process in processes] == [0, 0]
    entries = store.audit.list(limit=1000)
    assert looks > 3
    assert {entry.actor for entry in entries} == {"one", "other"}
    assert store.audit.verify().entries == len(entries)
    assert [entry.id for entry in entries] == list(range(len(entries), 0, -1))
