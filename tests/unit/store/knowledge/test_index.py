"""Serving processes read few fingerprints: distances come from the index that a job built on this host."""

from pathlib import Path
from typing import Any

import pytest

from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.runtime.files import is_accessible_to_others
from lifelong_core.store import Store
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.knowledge import loading
from lifelong_core.store.knowledge.neighbours import rank_neighbours
from lifelong_core.values.errors import UnavailableError
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
BINS, TASKS = 100, [f"task-{number}" for number in range(7)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "knowledge-index"


@pytest.fixture
def store(store: Store, folder: Path) -> Store:
    """With fingerprints of all tasks, and without an index."""
    held = {task: (make_fingerprint(seed, bins=BINS),) for seed, task in enumerate(TASKS)}
    own = open_again(store, folder)
    own.knowledge.import_base(KnowledgeBase({task: make_entry(task) for task in TASKS}, held), actor="ann")
    return own


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Artifacts that were read."""
    found: list[str] = []
    get = Artifacts.get
    monkeypatch.setattr(
        Artifacts, "get", lambda self, digest, *rest: found.append(digest) or get(self, digest, *rest)
    )
    return found


def open_again(store: Store, folder: Path | None) -> Store:
    """As another process would."""
    return Store(store.database, store.artifacts, knowledge_index=folder)


def rank(store: Store, task: str = TASKS[0], **options: Any) -> Any:
    return rank_neighbours(store, task, scenario="pretraining", **options).neighbours


def assert_same(found: Any, wanted: Any) -> None:
    assert [one.source for one in found] == [one.source for one in wanted]
    assert [one.distance for one in found] == pytest.approx([one.distance for one in wanted], rel=1e-5)


def test_the_knowledge_base_reads_a_fingerprint_when_it_is_asked_for_and_once(
    store: Store, reads: list[str]
) -> None:
    base = store.knowledge.load()
    assert (len(base), len(base.fingerprints), "none" in base.fingerprints) == (7, 7, False)
    assert reads == []
    assert base.fingerprints[TASKS[3]] == (make_fingerprint(3, bins=BINS),)
    store.knowledge.put(make_entry("new"), actor="ann")
    assert store.knowledge.load().fingerprints[TASKS[3]] == (make_fingerprint(3, bins=BINS),)
    (record,) = store.knowledge.get(TASKS[3]).fingerprints
    assert reads == [record.artifact]


def test_few_fingerprints_are_kept(store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    size = make_fingerprint(0, bins=BINS).counts.nbytes
    monkeypatch.setattr("lifelong_core.store.knowledge.loading.MOST_BYTES", 3 * size)
    base = store.knowledge.load()
    for task in (*TASKS, TASKS[-1], TASKS[0]):
        assert base.fingerprints[task]
    assert len(reads) == len(TASKS) + 1


def test_an_index_of_another_process_is_mapped_and_only_the_target_is_read(
    store: Store, folder: Path, reads: list[str]
) -> None:
    wanted = rank(open_again(store, None))
    before = rank(store)
    store.knowledge.load(build_index=True)
    assert not is_accessible_to_others(folder)
    (file,) = folder.iterdir()
    assert not is_accessible_to_others(file)
    reads.clear()
    assert_same(rank(open_again(store, folder)), wanted)
    (record,) = store.knowledge.get(TASKS[0]).fingerprints
    assert reads == [record.artifact]
    # A process that found none before finds it now.
    assert_same(before, wanted)
    assert store.knowledge.load().index is store.knowledge.load().index is not None
    assert_same(rank(store), wanted)


@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "other"])
def test_without_a_usable_index_the_answer_is_the_same(store: Store, folder: Path, damage: str) -> None:
    wanted = rank(store, build_index=True)
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[2000] ^= 255
    if damage == "other":
        store.knowledge.put_fingerprint(TASKS[0], make_fingerprint(50, bins=BINS), actor="ann")
        wanted = rank(open_again(store, None))
    elif damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content if damage == "changed" else content[:-100])
    left = sorted(folder.iterdir())
    own = open_again(store, folder)
    assert_same(rank(own), wanted)
    assert sorted(folder.iterdir()) == left
    assert_same(rank(own, build_index=True), wanted)
    assert len(list(folder.iterdir())) == 1
    assert_same(rank(own), wanted)


def test_a_serving_process_reads_a_limited_number_of_fingerprints(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MOST_AT_ONCE", len(TASKS) - 1)
    wanted = rank(open_again(store, None))
    monkeypatch.setattr(loading, "MOST_AT_ONCE", len(TASKS) - 2)
    own = open_again(store, folder)
    with pytest.raises(UnavailableError, match="6 fingerprints would be read") as caught:
        rank(own)
    assert "job `rank`" in (caught.value.hint or "")
    assert_same(rank(own, build_index=True), wanted)
    assert_same(rank(own), wanted)


def test_a_folder_that_cannot_be_written_costs_only_time(store: Store, folder: Path) -> None:
    wanted = rank(store)
    folder.write_text("a file")
    assert_same(rank(store, build_index=True), wanted)


def test_a_missing_file_of_a_fingerprint_is_named(store: Store) -> None:
    (record,) = store.knowledge.get(TASKS[2]).fingerprints
    store.artifacts.remove(record.artifact)
    with pytest.raises(UnavailableError, match=record.artifact):
        rank(store)


def test_fingerprints_alone_submit_one_job_and_so_does_the_deletion_of_the_last_one(store: Store) -> None:
    (job,) = store.jobs.list()
    assert (job.kind, job.state) == ("rank", "queued")
    store.knowledge.put_fingerprint(TASKS[0], make_fingerprint(50, bins=BINS), actor="ann")
    assert store.jobs.list() == [job]
    for task in TASKS[1:]:
        store.knowledge.delete(task, actor="ann")
    assert store.jobs.claim("tests", lease_seconds=600) is not None
    store.knowledge.delete(TASKS[0], actor="ann")
    assert sorted(one.state for one in store.jobs.list()) == ["queued", "running"]
