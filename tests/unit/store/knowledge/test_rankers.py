"""One fitted ranker is kept; an older fit never takes its place."""

import pytest

from lifelong_core.store import Store
from lifelong_core.store.artifacts import digest_of
from lifelong_core.values.errors import NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.knowledge_samples import make_entry


def test_a_newer_fit_takes_the_place_and_the_artifact_of_the_older_one(store: Store):
    assert store.rankers.current() is None
    first = store.rankers.put(b"first", outcomes_digest="a" * 64, revision=1, actor="monitor")
    assert store.rankers.current() == first
    assert store.named_artifacts() == {first.digest: "the fitted ranker"}
    second = store.rankers.put(b"second", outcomes_digest="b" * 64, revision=2, actor="monitor")
    assert store.rankers.current() == second
    assert store.artifacts.get(second.digest) == b"second"
    with pytest.raises(NotFoundError):
        store.artifacts.get(first.digest)
    assert [entry.action for entry in store.audit.list()] == ["rankers.put"] * 2


@sqlite_only
def test_an_older_fit_that_ends_later_is_dropped(store: Store):
    newer = store.rankers.put(b"newer", outcomes_digest="b" * 64, revision=2, actor="monitor")
    assert store.rankers.put(b"older", outcomes_digest="a" * 64, revision=1, actor="monitor") == newer
    assert store.rankers.current() == newer
    assert not store.artifacts.has(digest_of(b"older"))


@sqlite_only
def test_an_equal_fit_of_a_newer_revision_is_kept(store: Store):
    store.rankers.put(b"same", outcomes_digest="a" * 64, revision=1, actor="monitor")
    again = store.rankers.put(b"same", outcomes_digest="a" * 64, revision=2, actor="monitor")
    assert (store.rankers.current(), again.revision) == (again, 2)
    assert store.artifacts.get(again.digest) == b"same"


@sqlite_only
def test_the_ranker_goes_with_the_last_transfer(store: Store):
    store.knowledge.put(make_entry("a"), actor="ann")
    store.knowledge.put(make_entry("b", sources=("a",)), actor="ann")
    fitted = store.rankers.put(b"fitted", outcomes_digest="a" * 64, revision=2, actor="monitor")
    store.knowledge.delete("a", actor="ann")
    assert store.rankers.current() == fitted
    store.knowledge.delete("b", actor="ann")
    assert store.rankers.current() is None
    assert not store.artifacts.has(fitted.digest)
