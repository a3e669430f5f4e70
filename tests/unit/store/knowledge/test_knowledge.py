"""Entries are kept to the letter, each change is whole, audited and known by its revision."""

from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.develop.knowledge.entry import Training
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.transfer_folder import read_knowledge_folder
from lifelong_core.store import Store
from lifelong_core.store.knowledge import knowledge
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError, UnavailableError
from tests import tools
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.knowledge_samples import make_entry


def everything(store: Store) -> tuple[Any, ...]:
    return store.knowledge.state(), store.knowledge.list(), store.jobs.list(), store.audit.list()


def actions(store: Store) -> list[tuple[str, str]]:
    return [(entry.action, entry.subject) for entry in reversed(store.audit.list())]


def test_an_entry_is_found_again_to_the_letter(store: Store):
    entry = make_entry(sources=("nevi",))
    stored = store.knowledge.put(entry, actor="ann")
    assert store.knowledge.get("moles") == stored
    assert (stored.document, stored.entry) == (entry.to_json(), entry)
    assert (stored.origin, stored.transfers, stored.fingerprints) == ("local", 1, ())
    assert stored.changed_by == "ann"
    assert store.knowledge.load() == KnowledgeBase.from_entries([entry])


def test_a_second_put_replaces_it_and_an_equal_one_changes_nothing(store: Store):
    first = store.knowledge.put(make_entry(), actor="ann")
    before = everything(store)
    assert store.knowledge.put(make_entry(), actor="bob") == first
    assert everything(store) == before
    second = store.knowledge.put(make_entry(samples=200), actor="bob")
    assert second.entry.card.samples == 200
    assert second.created_at == first.created_at
    assert second.changed_at > first.changed_at
    assert store.knowledge.revision() == 2
    assert actions(store) == [("knowledge.put", "moles")] * 2


@sqlite_only
def test_a_training_is_added_once_and_makes_the_first_entry_of_a_registered_task(store: Store):
    store.tasks.add("lesions", ("benign", "malignant"), np.array([[0.0, 1.0], [1.0, 0.0]]), actor="tests")
    training = Training(
        scenario="architecture",
        source="moles",
        hyperparameters={"model": "net@1"},
        performance={"BA": (0.8,)},
    )
    first = store.knowledge.add_training("lesions", training, samples=90, actor="ann")
    assert (first.entry.card.samples, first.entry.card.classes) == (90, 2)
    assert (first.entry.trainings, first.transfers) == ((training,), 1)
    assert store.knowledge.add_training("lesions", training, samples=90, actor="ann") == first
    newer = training.model_copy(update={"hyperparameters": {"model": "net@2"}})
    both = store.knowledge.add_training("lesions", newer, samples=90, actor="ann")
    assert both.entry.trainings == (training, newer)
    assert store.audit.list(action="knowledge.training", limit=9)[0].subject == "lesions"
    with pytest.raises(NotFoundError):
        store.knowledge.add_training("nobody", training, samples=90, actor="ann")


@sqlite_only
def test_a_training_does_not_change_the_entry_of_another_institution(store: Store):
    store.knowledge.import_base(KnowledgeBase.from_entries([make_entry()]), origin="clinic", actor="ann")
    training = Training(performance={"BA": (0.8,)})
    with pytest.raises(ConflictError, match="comes from clinic"):
        store.knowledge.add_training("moles", training, samples=90, actor="ann")
    assert training not in store.knowledge.get("moles").entry.trainings


def test_entries_are_listed_by_name_in_pages(store: Store):
    names = [f"task-{number:02}" for number in range(7)]
    store.knowledge.import_base(KnowledgeBase.from_entries(map(make_entry, reversed(names))), actor="ann")
    assert [record.task for record in store.knowledge.list()] == names
    page = store.knowledge.list(limit=3, after="task-02")
    assert [record.task for record in page] == names[3:6]


def test_a_deleted_entry_is_gone_and_what_is_not_there_is_not_found(store: Store):
    store.knowledge.put(make_entry(), actor="ann")
    store.knowledge.delete("moles", actor="ann")
    assert store.knowledge.list() == []
    assert actions(store)[-1] == ("knowledge.delete", "moles")
    before = everything(store)
    for look in (
        lambda: store.knowledge.get("moles"),
        lambda: store.knowledge.delete("moles", actor="ann"),
    ):
        with pytest.raises(NotFoundError, match="no entry of the task 'moles'"):
            look()
    assert everything(store) == before


@sqlite_only
def test_an_import_counts_what_is_new_changed_and_the_same(store: Store):
    store.knowledge.put(make_entry("a"), actor="ann")
    store.knowledge.put(make_entry("b"), actor="ann")
    base = KnowledgeBase.from_entries([make_entry("a"), make_entry("b", samples=7), make_entry("c")])
    outcome = store.knowledge.import_base(base, actor="ann")
    assert (outcome.added, outcome.changed, outcome.unchanged) == (("c",), ("b",), ("a",))
    assert store.knowledge.load() == base
    entry = store.audit.list(limit=1)[0]
    assert (entry.action, entry.subject) == ("knowledge.import", "local")
    assert entry.details == {"added": 1, "changed": 1, "replace": False, "tasks": ["c", "b"]}
    before = everything(store)
    assert store.knowledge.import_base(base, actor="ann").unchanged == ("a", "b", "c")
    assert everything(store) == before


@sqlite_only
def test_entries_of_another_origin_are_replaced_on_request_only(store: Store):
    store.knowledge.put(make_entry("a"), actor="ann")
    base = KnowledgeBase.from_entries([make_entry("a", samples=7), make_entry("b")])
    before = everything(store)
    with pytest.raises(ConflictError, match=r"^replace: .* another origin than clinic .*: a \(local\)\."):
        store.knowledge.import_base(base, origin="clinic", actor="ann")
    assert everything(store) == before
    store.knowledge.import_base(base, origin="clinic", replace=True, actor="ann")
    assert {record.task: record.origin for record in store.knowledge.list()} == {
        "a": "clinic",
        "b": "clinic",
    }
    # A newer bundle of the same signer needs no permission.
    newer = KnowledgeBase.from_entries([make_entry("b", samples=9)])
    assert store.knowledge.import_base(newer, origin="clinic", actor="ann").changed == ("b",)
    assert store.knowledge.state().origins == {"clinic": 2}


def test_an_import_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    store.knowledge.put(make_entry("a"), actor="ann")
    before = everything(store)

    def fail(*_: object, **__: object) -> None:
        raise ConflictError("another change was faster.")

    monkeypatch.setattr(knowledge, "write_audit", fail)
    base = KnowledgeBase.from_entries([make_entry(name, sources=("a",)) for name in "abc"])
    with pytest.raises(ConflictError, match="faster"):
        store.knowledge.import_base(base, actor="ann")
    assert everything(store) == before


@sqlite_only
def test_the_published_outcomes_come_back_as_they_were(store: Store):
    base = read_knowledge_folder(tools.transfer_folder())
    outcome = store.knowledge.import_base(base, actor="ann")
    assert sorted(base.tasks) == list(outcome.added)
    loaded = store.knowledge.load()
    assert dict(loaded.entries) == dict(base.entries)
    assert [job.kind for job in store.jobs.list()] == ["rank"]


@sqlite_only
def test_a_change_of_outcomes_requests_one_fit_of_the_ranker(store: Store):
    store.knowledge.put(make_entry("a"), actor="ann")
    assert store.jobs.list() == []
    assert store.knowledge.request_refit(actor="ann") is None
    for name in ("b", "c"):
        store.knowledge.put(make_entry(name, sources=("a",)), actor="ann")
    assert [(job.kind, job.state) for job in store.jobs.list()] == [("rank", "queued")]
    # While it runs, a further change needs another fit.
    assert store.jobs.claim("monitor", lease_seconds=60) is not None
    store.knowledge.delete("a", actor="ann")
    assert sorted(job.state for job in store.jobs.list()) == ["queued", "running"]
    assert store.knowledge.request_refit(actor="ann") is None


def test_simultaneous_changes_submit_one_fit(store: Store, artifacts_url: str):
    entries = [make_entry(name, sources=("z",)) for name in "abcd"]
    steps = [lambda own, entry=entry: own.knowledge.put(entry, actor="ann") for entry in entries]
    at_once(store, artifacts_url, *steps)
    assert store.knowledge.revision() == 4
    assert len(store.knowledge.list()) == 4
    assert len(store.jobs.list()) == 1


def test_a_damaged_entry_is_named_when_it_is_read_and_no_other_suffers(store: Store):
    store.knowledge.import_base(KnowledgeBase.from_entries(map(make_entry, "ab")), actor="ann")
    rows = tables.knowledge_entries
    with store.database.write() as connection:
        changed = rows.c.document.op("||")(" ")
        connection.execute(sa.update(rows).where(rows.c.task == "a").values(document=changed))
    damaged, whole = store.knowledge.list()
    assert whole.entry == make_entry("b")
    with pytest.raises(UnavailableError, match="entry a of the knowledge base is damaged"):
        _ = damaged.entry
