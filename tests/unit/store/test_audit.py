from datetime import UTC, datetime, timedelta

import pytest

from lifelong_core.errors import ConflictError
from lifelong_core.store import Scope, Store
from tests.unit.store.samples import CLASSES, COSTS, add_serving_model, calibration, head


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
