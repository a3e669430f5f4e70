"""An interview is stored exactly, and the second of two simultaneous answers is a conflict."""

import uuid

import pytest
import sqlalchemy as sa

from lifelong_core.store import InterviewRecord, Store
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError, PayloadTooLargeError, UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.design_samples import interview
from tests.unit.store.samples import CLASSES, COSTS


class HugeDocument:
    """What no interview may become."""

    def to_json(self) -> str:
        return "x" * (4 * 2**20 + 1)


def start(store: Store, task: str | None = None) -> InterviewRecord:
    return store.interviews.start(interview(), task=task, actor="ann")


def audited(store: Store) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.action, entry.subject) for entry in store.audit.list()]


def test_an_interview_is_kept_as_it_stands(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    begun = start(store, "lesions")
    assert (begun.task, begun.revision, begun.interview) == ("lesions", 1, interview())
    assert (begun.created_by, begun.updated_by, begun.created_at) == ("ann", "ann", begun.updated_at)
    assert begun.id.version == 7
    assert store.interviews.get(begun.id) == begun
    assert audited(store)[0] == ("ann", "interviews.start", str(begun.id))
    assert store.audit.list(limit=1)[0].details == {"task": "lesions"}


@sqlite_only
def test_every_change_is_a_new_revision(store: Store):
    begun = start(store)
    answered = interview().with_class_names(CLASSES)
    saved = store.interviews.save(begun.id, answered, expected_revision=1, actor="bob")
    assert (saved.revision, saved.interview, saved.created_by, saved.updated_by) == (
        2,
        answered,
        "ann",
        "bob",
    )
    assert saved.updated_at >= saved.created_at == begun.created_at
    assert store.interviews.get(begun.id) == saved
    assert store.interviews.save(begun.id, answered.back(), expected_revision=None, actor="ann").revision == 3


def test_who_saw_an_older_revision_changes_nothing_and_is_told_who_was_faster(store: Store):
    begun = start(store)
    saved = store.interviews.save(begun.id, interview().back(), expected_revision=1, actor="bob")
    with pytest.raises(ConflictError, match=r"revision 2, expected 1\): bob answered"):
        store.interviews.save(begun.id, interview(), expected_revision=1, actor="ann")
    assert store.interviews.get(begun.id) == saved


def test_of_several_who_answer_at_once_one_succeeds(store: Store, artifacts_url: str):
    begun = start(store)

    def answer(own: Store) -> int:
        return own.interviews.save(begun.id, interview(), expected_revision=1, actor="somebody").revision

    outcomes = at_once(store, artifacts_url, *[answer] * 4)
    assert sorted(str(one)[:8] for one in outcomes) == ["2", *["revision"] * 3]
    assert store.interviews.get(begun.id).revision == 2


def test_the_newest_are_listed_first(store: Store):
    begun = [start(store) for _ in range(3)]
    assert [one.id for one in store.interviews.list()] == [one.id for one in reversed(begun)]
    assert store.interviews.list(limit=1) == [begun[-1]]


def test_a_discarded_interview_is_gone_and_the_log_says_by_whom(store: Store):
    begun, other = start(store), start(store)
    store.interviews.discard(begun.id, "bob")
    assert store.interviews.list() == [other]
    assert audited(store)[0] == ("bob", "interviews.discard", str(begun.id))
    with pytest.raises(NotFoundError, match="no interview"):
        store.interviews.save(begun.id, interview(), expected_revision=None, actor="ann")
    with pytest.raises(NotFoundError):
        store.interviews.discard(begun.id, "bob")
    assert len(audited(store)) == 3


@sqlite_only
def test_what_is_not_there_is_not_found_and_nothing_is_kept(store: Store):
    with pytest.raises(NotFoundError, match="no task 'lesions'"):
        start(store, "lesions")
    with pytest.raises(NotFoundError, match="no interview"):
        store.interviews.get(uuid.uuid4())
    assert (store.interviews.list(), store.audit.list()) == ([], [])


@sqlite_only
def test_an_interview_that_grew_too_large_is_not_kept(store: Store):
    begun = start(store)
    with pytest.raises(PayloadTooLargeError, match=r"^interview: this takes 4194305 bytes"):
        store.interviews.save(begun.id, HugeDocument(), expected_revision=1, actor="ann")  # type: ignore[arg-type]
    assert store.interviews.get(begun.id) == begun


@sqlite_only
@pytest.mark.parametrize("document", ["", "{", '{"schema_version": 2}', '{"history": ["decision_rule"]}'])
def test_a_damaged_interview_is_named_when_it_is_read_and_can_be_discarded(store: Store, document: str):
    begun, other = start(store), start(store)
    rows = tables.interviews
    with store.database.write() as connection:
        connection.execute(sa.update(rows).where(rows.c.id == begun.id).values(document=document))
    found = store.interviews.list()
    assert found[0].interview == other.interview
    with pytest.raises(UnavailableError, match=f"the interview {begun.id} is damaged"):
        _ = found[1].interview
    store.interviews.discard(begun.id, "ann")
