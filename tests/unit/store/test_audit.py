from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.errors import ConflictError
from lifelong_core.store import Scope, Store, tables
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
    store.models.promote("dermatology", actor="tests")
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


def test_a_refused_change_leaves_no_entry(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    with pytest.raises(ConflictError):
        store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    assert len(store.audit.list()) == 1


def test_a_taken_away_entry_leaves_a_gap_that_is_found(store: Store):
    assert store.audit.gaps() == ()
    for index in range(7):
        store.tasks.add(f"t{index}", CLASSES, COSTS, actor="tests")
    assert store.audit.gaps() == ()
    with store.database.write() as connection:
        connection.execute(sa.delete(tables.audit).where(tables.audit.c.id.in_([1, 4, 5])))
    assert store.audit.gaps() == (range(1, 2), range(4, 6))


WRITER = """
import random, sys
from lifelong_core.store import Store
from lifelong_core.store.audit import write_audit
from lifelong_core.store.registry import bump_revision

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


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # on SQLite one writes at a time anyway
def test_processes_number_their_entries_without_gaps_in_the_order_of_their_commits(store: Store):
    url = store.database.url.render_as_string(hide_password=False)
    with started_together(WRITER, *[(url, name) for name in ("one", "other")]) as processes:
        for process in processes:
            tell(process, "go")
        looks = 0
        while any(process.poll() is None for process in processes):
            # Whoever sees a number sees all below it.
            assert store.audit.gaps() == ()
            looks += 1
        assert [process.wait() for process in processes] == [0, 0]
    entries = store.audit.list(limit=1000)
    assert looks > 3
    assert {entry.actor for entry in entries} == {"one", "other"}
    assert [entry.id for entry in entries] == list(range(len(entries), 0, -1))
