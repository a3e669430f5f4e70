"""Progress, log lines and checkpoints of a job belong to its holder, and go with the job."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from lifelong_core.store import Job, Store
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.jobs.following import LARGEST_PROGRESS, LONGEST_LINE, MOST_LINES
from lifelong_core.store.jobs.transitions import MOST_ATTEMPTS
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.job_samples import claim, let_time_pass, nothing_to_do, submit

PROGRESS = {"phase": "training", "fraction": 0.25, "epoch": 3}


def texts(store: Store, job: Job, after: int | None = 0, limit: int = 10_000) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in store.jobs.log(job.id, after=after, limit=limit)]


def stored_files(artifacts_url: str) -> int:
    return sum(path.is_file() for path in Path(artifacts_url.removeprefix("file://")).rglob("*"))


@sqlite_only
def test_progress_is_that_of_the_latest_report(store: Store):
    submit(store, "retrain")
    job = claim(store)
    assert job.progress is None
    store.jobs.report(job, {"fraction": 0.0})
    store.jobs.report(job, PROGRESS)
    assert store.jobs.get(job.id).progress == PROGRESS
    for illegal in ({"loss": float("nan")}, {"text": "x" * LARGEST_PROGRESS}):
        with pytest.raises(InvalidInputError, match=r"^progress"):
            store.jobs.report(job, illegal)
    ended = store.jobs.succeed(job, {})
    assert ended.progress == PROGRESS


def test_lines_are_numbered_across_attempts_and_the_oldest_go(store: Store):
    submit(store, "retrain")
    other = submit(store, "retrain")
    job = claim(store)
    store.jobs.append_log(job, ["begun", "two\nlines", "x" * (LONGEST_LINE + 1)])
    store.jobs.append_log(job, [])
    kept = [(1, "begun"), (2, "two"), (3, "lines"), (4, "x" * LONGEST_LINE)]
    assert texts(store, job) == kept
    assert texts(store, job, after=1, limit=2) == kept[1:3]
    assert texts(store, job, after=None, limit=2) == kept[2:]
    assert texts(store, other) == []
    store.jobs.release(job)
    job = claim(store)
    store.jobs.append_log(job, [f"line {number}" for number in range(MOST_LINES)])
    store.jobs.append_log(job, ["odd \0 \ud800"])
    after = texts(store, job)
    assert [number for number, _ in after] == list(range(6, MOST_LINES + 6))
    assert after[-2:] == [(MOST_LINES + 4, f"line {MOST_LINES - 1}"), (MOST_LINES + 5, "odd \ufffd ?")]


@sqlite_only
def test_texts_of_jobs_hold_no_commands_to_a_terminal(store: Store) -> None:
    job = store.jobs.submit("retrain", {}, actor="test")
    job = claim(store)
    store.jobs.append_log(job, ["cannot read \x1b[2Jx.png\nnext\tline"])
    assert [text for _, text in texts(store, job)] == [r"cannot read \x1b[2Jx.png", "next\tline"]
    failed = store.jobs.fail(job, InvalidInputError("bad \x9b2J.png", field="images", hint="1\n2"))
    assert failed.error == {"message": r"bad \u009b2J.png", "field": "images", "hint": "1\n2"}


@sqlite_only
def test_a_checkpoint_replaces_the_former_one_and_goes_with_the_job(store: Store, artifacts_url: str):
    submit(store, "retrain")
    job = claim(store)
    assert store.jobs.checkpoint(job) is None
    store.jobs.save_checkpoint(job, b"epoch 1")
    store.jobs.save_checkpoint(job, b"epoch 2")
    assert store.jobs.checkpoint(job) == b"epoch 2"
    store.jobs.release(job)
    job = claim(store)
    assert store.jobs.checkpoint(job) == b"epoch 2"
    store.jobs.save_checkpoint(job, b"")
    assert (store.jobs.checkpoint(job), stored_files(artifacts_url)) == (b"", 1)
    ended = store.jobs.succeed(job, {})
    assert (store.jobs.get(ended.id).checkpoint, stored_files(artifacts_url)) == (None, 0)


def test_a_checkpoint_that_is_replaced_while_it_is_read_gives_the_newer_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    submit(store, "retrain")
    job = claim(store)
    store.jobs.save_checkpoint(job, b"epoch 1")
    read = Artifacts.get

    def replaced(artifacts: Artifacts, digest: str) -> bytes:
        store.jobs.save_checkpoint(job, b"epoch 2")
        return read(artifacts, digest)

    monkeypatch.setattr(Artifacts, "get", replaced)
    assert store.jobs.checkpoint(job) == b"epoch 2"
    store.artifacts.remove(store.jobs.get(job.id).checkpoint or "")
    with pytest.raises(NotFoundError):
        store.jobs.checkpoint(job)


@sqlite_only
def test_equal_checkpoints_of_two_jobs_are_two_artifacts(store: Store, artifacts_url: str):
    submit(store, "retrain")
    submit(store, "retrain")
    one, other = claim(store), claim(store)
    for job in (one, other):
        store.jobs.save_checkpoint(job, b"the same")
    store.jobs.succeed(one, {})
    assert store.jobs.checkpoint(other) == b"the same"
    assert stored_files(artifacts_url) == 1


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_checkpoint_of_a_process_that_dies_is_not_left_behind(
    store: Store, artifacts_url: str, monkeypatch: pytest.MonkeyPatch, dies: str
):
    submit(store, "retrain")
    job = claim(store)
    store.jobs.save_checkpoint(job, b"epoch 1")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    put = Artifacts.put

    def put_and_die(artifacts: Artifacts, content: bytes) -> str:
        put(artifacts, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Artifacts, *(("put", put_and_die) if dies == "before" else ("remove", die)))
        with pytest.raises(KeyboardInterrupt):
            store.jobs.save_checkpoint(job, b"epoch 2")
    assert stored_files(artifacts_url) == 2
    let_time_pass(store)
    job = claim(store)
    assert store.jobs.checkpoint(job) == (b"epoch 1" if dies == "before" else b"epoch 2")
    store.jobs.save_checkpoint(job, b"epoch 3")
    assert stored_files(artifacts_url) == 1


@sqlite_only
def test_attempts_count_from_the_last_checkpoint(store: Store):
    submit(store, "retrain")
    for number in range(2 * MOST_ATTEMPTS):
        job = claim(store)
        assert job.attempts == min(number + 1, 2)
        assert store.jobs.save_checkpoint(job, f"epoch {number}".encode()).attempts == 1
        let_time_pass(store)
    for attempt in range(2, MOST_ATTEMPTS + 1):
        job = claim(store)
        assert job.attempts == attempt
        # The same state again is no progress.
        store.jobs.save_checkpoint(job, f"epoch {number}".encode())
        let_time_pass(store)
    assert nothing_to_do(store)
    failed = store.jobs.get(job.id)
    assert failed.state == "failed"
    assert "started 3 times from its last checkpoint" in str((failed.error or {})["message"])
    assert "smaller batches" in str((failed.error or {})["hint"])


REPORTS = {
    "report": lambda store, job: store.jobs.report(job, PROGRESS),
    "log": lambda store, job: store.jobs.append_log(job, ["a line"]),
    "checkpoint": lambda store, job: store.jobs.save_checkpoint(job, b"state"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_replaced_holder_reports_nothing(store: Store, artifacts_url: str, name: str):
    submit(store, "retrain")
    lost = claim(store)
    let_time_pass(store)
    present = claim(store, "two")
    with pytest.raises(ConflictError, match=r"^job: .* was lost: its claim by one"):
        REPORTS[name](store, lost)
    assert store.jobs.get(lost.id) == present
    assert (texts(store, present), stored_files(artifacts_url)) == ([], 0)
    # Positive control.
    REPORTS[name](store, present)
    assert store.jobs.get(lost.id) != present or texts(store, present)


@sqlite_only
def test_a_holder_replaced_while_it_stores_a_checkpoint_leaves_none(
    store: Store, artifacts_url: str, monkeypatch: pytest.MonkeyPatch
):
    submit(store, "retrain")
    lost, put = claim(store), Artifacts.put

    def put_slowly(artifacts: Artifacts, content: bytes) -> str:
        let_time_pass(store)
        monkeypatch.setattr(Artifacts, "put", put)
        store.jobs.save_checkpoint(claim(store, "two"), b"of the other")
        return put(artifacts, content)

    monkeypatch.setattr(Artifacts, "put", put_slowly)
    with pytest.raises(ConflictError):
        store.jobs.save_checkpoint(lost, b"late")
    assert (store.jobs.checkpoint(lost), stored_files(artifacts_url)) == (b"of the other", 1)


def test_expired_jobs_go_with_their_lines_and_checkpoints(
    store: Store, artifacts_url: str, monkeypatch: pytest.MonkeyPatch
):
    submit(store, "retrain")
    job = claim(store)
    store.jobs.append_log(job, ["a line"])
    store.jobs.save_checkpoint(job, b"state")

    def refuse(*_: object) -> None:
        raise UnavailableError("the artifacts are gone.")

    with monkeypatch.context() as patched:
        patched.setattr(Artifacts, "remove", refuse)
        assert store.jobs.fail(job, InvalidInputError("no.")).state == "failed"
        with pytest.raises(UnavailableError):
            store.jobs.remove_remains()
    assert stored_files(artifacts_url) == 1
    assert store.jobs.delete_expired(1, datetime.now(UTC).date() + timedelta(days=2)) == 1
    assert stored_files(artifacts_url) == 0
    with store.database.read() as connection:
        assert connection.execute(sa.select(tables.job_log)).all() == []
