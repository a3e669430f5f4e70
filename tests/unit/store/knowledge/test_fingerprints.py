"""Fingerprints are artifacts with small rows; nothing remains of those that were replaced, deleted or refused."""

from pathlib import Path

import pytest

from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.store import Store
from lifelong_core.values.errors import ConflictError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.knowledge_samples import make_entry, make_histogram
from tests.unit.store.samples import CLASSES, COSTS


def stored_files(artifacts_url: str) -> int:
    folder = Path(artifacts_url.removeprefix("file://"))
    return sum(path.is_file() for path in folder.rglob("*"))


def base_of(name: str, *seeds: int) -> KnowledgeBase:
    fingerprints = tuple(make_histogram(seed, bins=8 + seed) for seed in seeds)
    return KnowledgeBase({name: make_entry(name)}, {name: fingerprints})


def test_fingerprints_are_found_again_and_those_of_another_kind_stay(store: Store):
    store.knowledge.put(make_entry(), actor="ann")
    histogram, finer = make_histogram(), make_histogram(bins=16)
    words = KeywordFingerprint(("skin", "moles"))
    records = [
        store.knowledge.put_fingerprint("moles", one, actor="ann") for one in (histogram, finer, words)
    ]
    assert [(one.kind, one.extractor, one.bins, one.samples) for one in records] == [
        ("histogram", "ab" * 32, 8, 20),
        ("histogram", "ab" * 32, 16, 20),
        ("keywords", None, None, None),
    ]
    assert store.knowledge.get("moles").fingerprints == tuple(records)
    assert store.knowledge.load().fingerprints == {"moles": (histogram, finer, words)}
    assert store.audit.list()[0].action == "knowledge.fingerprint"
    assert set(store.named_artifacts()) == {one.artifact for one in records}


@sqlite_only
def test_a_newer_one_of_the_same_slot_takes_its_place(store: Store, artifacts_url: str):
    store.knowledge.put(make_entry(), actor="ann")
    old = store.knowledge.put_fingerprint("moles", make_histogram(0), actor="ann")
    new = store.knowledge.put_fingerprint("moles", make_histogram(1), actor="ann")
    assert store.knowledge.get("moles").fingerprints == (new,)
    assert not store.artifacts.has(old.artifact)
    revision = store.knowledge.revision()
    assert store.knowledge.put_fingerprint("moles", make_histogram(1), actor="bob") == new
    assert store.knowledge.revision() == revision
    store.knowledge.delete("moles", actor="ann")
    assert store.knowledge.fingerprint_records() == []
    assert stored_files(artifacts_url) == 0


@sqlite_only
def test_a_fingerprint_that_two_tasks_share_stays_with_the_last_one(store: Store, artifacts_url: str):
    for name in ("a", "b"):
        store.knowledge.put(make_entry(name), actor="ann")
        store.knowledge.put_fingerprint(name, make_histogram(), actor="ann")
    assert stored_files(artifacts_url) == 1
    store.knowledge.delete("a", actor="ann")
    assert store.knowledge.load().fingerprints == {"b": (make_histogram(),)}


@sqlite_only
def test_a_registered_task_gets_an_entry_with_its_first_fingerprint(store: Store):
    store.tasks.add("lesions", CLASSES, COSTS, actor="ann")
    store.knowledge.put_fingerprint("lesions", make_histogram(), actor="ann")
    card = store.knowledge.get("lesions").entry.card
    assert (card.name, card.classes, card.samples) == ("lesions", 3, 20)


@sqlite_only
def test_a_fingerprint_of_an_unknown_task_is_refused_and_not_kept(store: Store, artifacts_url: str):
    with pytest.raises(NotFoundError, match="no entry of the task 'moles'"):
        store.knowledge.put_fingerprint("moles", make_histogram(), actor="ann")
    assert stored_files(artifacts_url) == 0
    assert store.audit.list() == []


@sqlite_only
def test_of_a_refused_import_no_fingerprint_is_kept(store: Store, artifacts_url: str):
    store.knowledge.import_base(base_of("moles", 0), actor="ann")
    with pytest.raises(ConflictError, match="another origin"):
        store.knowledge.import_base(base_of("moles", 0, 1), origin="clinic", actor="ann")
    assert stored_files(artifacts_url) == 1
    assert store.knowledge.load() == base_of("moles", 0)


@sqlite_only
def test_an_import_adds_fingerprints_to_an_entry(store: Store):
    store.knowledge.import_base(base_of("moles", 0), actor="ann")
    assert store.knowledge.import_base(base_of("moles", 1), actor="ann").changed == ("moles",)
    assert store.knowledge.load().fingerprints == base_of("moles", 0, 1).fingerprints


@sqlite_only
def test_a_fingerprint_that_is_deleted_meanwhile_is_stored_again(store: Store, artifacts_url: str):
    """Equal contents are one artifact: the deletion of one task must not take that of another."""
    store.knowledge.import_base(base_of("a", 0), actor="ann")
    steps = (
        lambda own: own.knowledge.delete("a", actor="ann"),
        lambda own: own.knowledge.import_base(base_of("b", 0), actor="ann"),
    )
    at_once(store, artifacts_url, *steps)
    assert store.knowledge.load() == base_of("b", 0)
