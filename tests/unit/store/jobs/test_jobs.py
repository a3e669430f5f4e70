"""One monitor runs a job at a time, whatever happens to it; a monitor that lost the claim cannot finish the job."""

import os
import signal
import time
import uuid
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import sqlalchemy as sa

from lifelong_core.store import Job, Store
from lifelong_core.store.artifacts import Artifacts, digest_of
from lifelong_core.store.jobs import jobs
from lifelong_core.store.jobs import transitions as submission
from lifelong_core.store.jobs.jobs import LARGEST_RESULT, MOST_ATTEMPTS, Jobs
from lifelong_core.store.jobs.transitions import LARGEST_PAYLOAD, SENDING_SECONDS
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    UnavailableError,
)
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.job_samples import audited, claim, let_time_pass, move_clock, nothing_to_do, submit
from tests.unit.store.samples import add_model, calibration, started_together

RESULT = {"accepted": None, "samples": 3}
ERROR = {"message": "the set has other classes.", "field": "labels", "hint": None}


def test_a_job_from_its_submission_to_its_result(store: Store):
    job = submit(store, task="lesions", samples=3)
    assert (job.kind, job.payload, job.state) == ("validate", {"task": "lesions", "samples": 3}, "queued")
    assert (job.attempts, job.created_by, job.started_at, job.result, job.error) == (
        0,
        "ann",
        None,
        None,
        None,
    )
    assert job.id.version == 7
    assert store.jobs.get(job.id) == job
    running = claim(store)
    assert (running.id, running.state, running.attempts, running.holder) == (job.id, "running", 1, "one")
    assert running.started_at is not None
    assert running.started_at >= job.created_at
    assert nothing_to_do(store)
    ended = store.jobs.succeed(running, RESULT)
    assert (ended.state, ended.result, ended.error) == ("succeeded", RESULT, None)
    assert ended.finished_at is not None
    assert ended.finished_at >= running.started_at
    assert store.jobs.get(job.id) == ended
    assert nothing_to_do(store)
    subject = str(job.id)
    assert audited(store) == [("ann", "jobs.submit", subject), ("one", "jobs.succeed", subject)]


@sqlite_only
@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (ERROR, ERROR),
        (InvalidInputError("no.", field="labels"), {"message": "no.", "field": "labels", "hint": None}),
        ({"message": "x" * 10_000}, {"message": "x" * 2000, "field": None, "hint": None}),
    ],
)
def test_a_job_fails_with_what_went_wrong_and_is_not_tried_again(store: Store, error: Any, kept: Any):
    submit(store)
    failed = store.jobs.fail(claim(store), error)
    assert (failed.state, failed.error, failed.result) == ("failed", kept, None)
    assert nothing_to_do(store)
    assert [action for _, action, _ in audited(store)] == ["jobs.submit", "jobs.fail"]


def test_the_oldest_is_claimed_first_and_the_newest_listed_first(store: Store):
    jobs = [submit(store, kind) for kind in ("validate", "compare", "validate")]
    first = claim(store)
    assert first.id == jobs[0].id
    newest_first = [jobs[2], jobs[1], first]
    assert store.jobs.list() == newest_first
    assert store.jobs.list(limit=1) == newest_first[:1]
    assert store.jobs.list(kind="validate") == [jobs[2], first]
    assert store.jobs.list(state="queued") == newest_first[:2]
    assert store.jobs.list(kind="validate", state="running") == [first]
    assert [claim(store).id for _ in range(2)] == [jobs[1].id, jobs[2].id]


def test_of_several_who_claim_at_once_each_gets_other_jobs(store: Store, artifacts_url: str):
    jobs = [submit(store) for _ in range(24)]

    def claim_all(own: Store) -> list[uuid.UUID]:
        claimed: list[uuid.UUID] = []
        while (job := own.jobs.claim("somebody", lease_seconds=60)) is not None:
            claimed.append(job.id)
        return claimed

    outcomes = at_once(store, artifacts_url, *[claim_all] * 4)
    assert sorted(one for claimed in outcomes for one in claimed) == [job.id for job in jobs]
    assert {job.attempts for job in store.jobs.list()} == {1}


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_claim_that_is_not_committed_yet_holds_nobody_up(store: Store):
    first, second = submit(store), submit(store)
    with store.database.write() as connection:
        connection.execute(sa.select(tables.jobs).where(tables.jobs.c.id == first.id).with_for_update())
        assert claim(store).id == second.id
        assert nothing_to_do(store)
    assert claim(store).id == first.id


ENDINGS = {
    "succeed": lambda store, job: store.jobs.succeed(job, RESULT),
    "fail": lambda store, job: store.jobs.fail(job, ERROR),
    "renew": lambda store, job: store.jobs.renew(job, lease_seconds=60),
    "release": lambda store, job: store.jobs.release(job),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_who_was_replaced_changes_nothing(store: Store, name: str):
    submit(store)
    lost = claim(store)
    let_time_pass(store)
    present = claim(store, "two")
    assert (present.id, present.attempts) == (lost.id, 2)
    assert present.token > lost.token
    before = store.audit.list()
    with pytest.raises(ConflictError, match=r"^job: .* was lost: its claim by one"):
        ENDINGS[name](store, lost)
    assert (store.jobs.get(lost.id), store.audit.list()) == (present, before)
    # Positive control: who replaced it may do the same.
    ENDINGS[name](store, present)


@sqlite_only
@pytest.mark.parametrize("name", ENDINGS)
def test_what_has_ended_does_not_change(store: Store, name: str):
    submit(store)
    job = claim(store)
    ended = store.jobs.succeed(job, RESULT)
    with pytest.raises(ConflictError):
        ENDINGS[name](store, job)
    assert store.jobs.get(job.id) == ended


@sqlite_only
def test_who_is_late_but_was_not_replaced_may_end_its_job(store: Store):
    submit(store)
    job = claim(store)
    let_time_pass(store)
    assert store.jobs.succeed(job, RESULT).state == "succeeded"


@sqlite_only
def test_renewing_prolongs_a_claim(store: Store):
    submit(store)
    job = claim(store, seconds=1)
    renewed = store.jobs.renew(job, lease_seconds=600)
    assert (renewed.token, renewed.attempts, renewed.started_at) == (job.token, 1, job.started_at)
    let_time_pass(store)
    assert nothing_to_do(store)
    assert store.jobs.succeed(job, RESULT).state == "succeeded"


@sqlite_only
def test_a_job_that_was_given_back_is_as_if_it_had_never_begun(store: Store):
    submitted = submit(store)
    tokens: list[int] = []
    for _ in range(MOST_ATTEMPTS + 2):
        job = claim(store)
        tokens.append(job.token)
        given_back = store.jobs.release(job)
        assert (given_back.state, given_back.attempts, given_back.started_at) == ("queued", 0, None)
    assert tokens == sorted(set(tokens))
    with pytest.raises(ConflictError):
        store.jobs.succeed(job, RESULT)
    assert claim(store).id == submitted.id


@sqlite_only
def test_a_job_whose_holders_keep_dying_fails_and_the_next_gets_its_turn(store: Store):
    deadly, harmless = submit(store), submit(store)
    for attempt in range(MOST_ATTEMPTS):
        assert (claim(store).id, store.jobs.get(deadly.id).attempts) == (deadly.id, attempt + 1)
        let_time_pass(store)
    assert claim(store, "two").id == harmless.id
    failed = store.jobs.get(deadly.id)
    assert failed.state == "failed"
    assert failed.error is not None
    assert "started 3 times and never ended" in str(failed.error["message"])
    assert failed.finished_at is not None
    assert ("two", "jobs.fail", str(deadly.id)) in audited(store)


@pytest.mark.parametrize("hours", [-1.0, 1.0], ids=["forwards", "backwards"])
def test_a_clock_that_jumps_by_an_hour_lets_others_in_at_once(store: Store, hours: float):
    submit(store)
    job = claim(store)
    move_clock(store, hours=hours)
    assert claim(store, "two").id == job.id
    assert nothing_to_do(store)


@sqlite_only
def test_a_clock_that_is_corrected_a_little_takes_no_job_away(store: Store):
    submit(store)
    claim(store)
    move_clock(store, seconds=30)
    assert nothing_to_do(store)


HOLDER = """
import sys, time
from lifelong_core.store import Store
with Store.open(sys.argv[1], "memory://artifacts") as store:
    assert store.jobs.claim("mortal", lease_seconds=1) is not None
    print("ready", flush=True)
    time.sleep(60)
"""


@sqlite_only
def test_the_job_of_a_process_that_was_killed_is_claimed_again(store: Store):
    submit(store)
    url = store.database.url.render_as_string(hide_password=False)
    with started_together(HOLDER, (url,)) as (process,):
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while (job := store.jobs.claim("heir", lease_seconds=60)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (job.holder, job.attempts) == ("heir", 2)


def filled(size: int) -> dict[str, str]:
    """A JSON object of so many bytes."""
    return {"a": "x" * (size - len('{"a":""}'))}


@sqlite_only
def test_payloads_and_results_may_take_just_so_many_bytes(store: Store):
    submit(store, **filled(LARGEST_PAYLOAD))
    with pytest.raises(PayloadTooLargeError, match=r"^payload"):
        submit(store, **filled(LARGEST_PAYLOAD + 1))
    assert len(store.jobs.list()) == 1
    job = claim(store)
    for result in (filled(LARGEST_RESULT + 1), {"value": float("nan")}):
        with pytest.raises(InvalidInputError, match=r"^result"):
            store.jobs.succeed(job, result)
    assert store.jobs.get(job.id).state == "running"
    assert store.jobs.succeed(job, filled(LARGEST_RESULT)).state == "succeeded"


@sqlite_only
def test_illegal_kinds_and_payloads_are_refused(store: Store):
    for name in ("", "Validate", "a b", "a" * 33):
        with pytest.raises(InvalidInputError, match=r"^kind"):
            submit(store, name)
    with pytest.raises(InvalidInputError, match=r"^payload"):
        submit(store, value=object())
    assert submit(store, "a" * 32, odd="\0 \ud800").payload == {"odd": "\0 \ud800"}
    with pytest.raises(NotFoundError, match="no job"):
        store.jobs.get(uuid.uuid4())


@pytest.mark.parametrize("document", ["", "{", "[]", '"text"'])
@sqlite_only
def test_a_damaged_job_holds_no_other_up(store: Store, document: str):
    damaged, sound = submit(store), submit(store, sound=True)
    rows = tables.jobs
    with store.database.write() as connection:
        connection.execute(sa.update(rows).where(rows.c.id == damaged.id).values(payload=document))
    assert [job.id for job in store.jobs.list()] == [sound.id, damaged.id]
    job = claim(store)
    with pytest.raises(UnavailableError, match=f"the job {damaged.id} is damaged"):
        _ = job.payload
    assert claim(store).payload == {"sound": True}
    store.jobs.fail(job, ERROR)
    assert store.jobs.delete_expired(1, datetime.now(UTC).date() + timedelta(days=2)) == 1


def end(store: Store, labelled_set: str, days_ago: float) -> Job:
    """A job on a set that ended so long ago, with a report."""
    submit(store, labelled_set=labelled_set)
    report = store.artifacts.put(f"report of {days_ago} days ago".encode())
    job = store.jobs.succeed(claim(store), {**RESULT, "report": report})
    moment = datetime.now(UTC) - timedelta(days=days_ago)
    rows = tables.jobs
    with store.database.write() as connection:
        connection.execute(sa.update(rows).where(rows.c.id == job.id).values(finished_at=moment))
    return job


def is_kept(store: Store, digest: str) -> bool:
    try:
        return bool(store.artifacts.get(digest))
    except NotFoundError:
        return False


@sqlite_only
def test_old_jobs_go_with_the_artifacts_that_nobody_else_needs(store: Store):
    model = add_model(store)
    of_old, shared, waited_for = (store.artifacts.put(text.encode()) for text in ("old", "shared", "wait"))
    of_model = store.calibration_sets.add(model.reference, calibration(), actor="ann").digest
    old = [end(store, digest, 40) for digest in (of_old, of_old, shared, waited_for, of_model)]
    recent = end(store, shared, 1)
    waiting = submit(store, labelled_set=waited_for)
    today = datetime.now(UTC).date()
    assert store.jobs.delete_expired(None, today) == store.jobs.delete_expired(10**6, today) == 0
    assert store.jobs.delete_expired(30, today) == len(old)
    assert store.jobs.list() == [waiting, store.jobs.get(recent.id)]
    kept = {name: is_kept(store, name) for name in (of_old, shared, waited_for, of_model)}
    assert kept == {of_old: False, shared: True, waited_for: True, of_model: True}
    reports = [str((job.result or {})["report"]) for job in (old[0], recent)]
    assert [is_kept(store, report) for report in reports] == [False, True]
    entry = store.audit.list(limit=1)[0]
    assert (entry.actor, entry.action) == ("monitor", "jobs.expire")
    before = f"{today - timedelta(days=30)}T00:00:00+00:00"
    assert entry.details == {"jobs": len(old), "ended_before": before}
    assert store.jobs.delete_expired(30, today) == 0
    assert store.audit.list(limit=1)[0] == entry


SET = b"labelled logits"


def kept_files(artifacts_url: str) -> list[Path]:
    return [path for path in Path(artifacts_url.removeprefix("file://")).rglob("*") if path.is_file()]


def submit_with_set(store: Store) -> Job:
    return store.jobs.submit("validate", {"task": "lesions"}, labelled_set=SET, actor="ann")


@sqlite_only
def test_a_job_is_claimed_only_when_its_labelled_set_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch):
    put, seen = Artifacts.put_file, list[bool]()

    def put_while_others_look(artifacts: Artifacts, file: BinaryIO) -> str:
        seen.append(nothing_to_do(store))
        return put(artifacts, file)

    monkeypatch.setattr(Artifacts, "put_file", put_while_others_look)
    job = submit_with_set(store)
    assert seen == [True]
    assert (job.state, job.attempts, job.started_at, job.created_by) == ("queued", 0, None, "ann")
    assert job.payload == {"task": "lesions", "labelled_set": digest_of(SET)}
    assert store.artifacts.get(digest_of(SET)) == SET
    running = claim(store)
    assert (running.id, running.attempts) == (job.id, 1)


def test_a_set_whose_job_cannot_be_written_is_not_kept(
    store: Store, artifacts_url: str, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise UnavailableError("the database is gone.")

    monkeypatch.setattr(submission, "write_audit", fail)
    with pytest.raises(UnavailableError, match="the database is gone"):
        submit_with_set(store)
    with pytest.raises(PayloadTooLargeError):
        store.jobs.submit("validate", filled(LARGEST_PAYLOAD), labelled_set=SET, actor="ann")
    assert (store.jobs.list(), kept_files(artifacts_url)) == ([], [])


@sqlite_only
@pytest.mark.parametrize("database_is_gone", [False, True])
def test_a_job_whose_set_cannot_be_kept_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, database_is_gone: bool
):
    def refuse(*_: object) -> str:
        raise UnavailableError("the disk is full.")

    def fail(*_: object) -> None:
        raise UnavailableError("the database is gone, too.")

    monkeypatch.setattr(Artifacts, "put_file", refuse)
    if database_is_gone:
        monkeypatch.setattr(Jobs, "fail", fail)
    with pytest.raises(UnavailableError, match="the disk is full"):
        submit_with_set(store)
    (job,) = store.jobs.list()
    assert job.state == ("running" if database_is_gone else "failed")
    assert nothing_to_do(store)
    if not database_is_gone:
        assert (job.error or {})["message"] == "the disk is full."


def test_a_set_whose_sender_died_goes_with_its_job(
    store: Store, artifacts_url: str, monkeypatch: pytest.MonkeyPatch
):
    def die(*_: object) -> None:
        raise UnavailableError("the database is gone.")

    monkeypatch.setattr(Jobs, "release", die)
    with pytest.raises(UnavailableError):
        submit_with_set(store)
    assert nothing_to_do(store)
    move_clock(store, seconds=1 - SENDING_SECONDS)
    assert nothing_to_do(store)
    move_clock(store, seconds=-2)
    store.jobs.fail(claim(store), ERROR)
    assert len(kept_files(artifacts_url)) == 1
    assert store.jobs.delete_expired(1, datetime.now(UTC).date() + timedelta(days=2)) == 1
    assert kept_files(artifacts_url) == []


def test_how_it_stands_with_all_jobs(store: Store):
    nothing = store.jobs.state()
    assert (nothing.waiting, nothing.waiting_since, nothing.running, nothing.last_failures) == (
        0,
        None,
        0,
        {},
    )
    first, second = submit(store), submit(store)
    state = store.jobs.state()
    assert (state.waiting, state.waiting_since, state.running) == (2, first.created_at, 0)
    assert state.waiting_since_by_kind == {"validate": first.created_at}
    claim(store)
    state = store.jobs.state()
    assert (state.waiting, state.waiting_since, state.running) == (1, second.created_at, 1)
    move_clock(store, hours=-1)
    state = store.jobs.state()
    assert (state.waiting, state.running) == (2, 0)
    assert state.waiting_since is not None
    assert state.waiting_since < second.created_at, "its holder left it alone an hour ago"
    ended = [store.jobs.fail(claim(store), ERROR) for _ in range(2)]
    submit(store, "retrain")
    other = store.jobs.fail(claim(store), ERROR)
    assert ended[0].finished_at is not None
    assert ended[1].finished_at is not None
    state = store.jobs.state()
    assert (state.waiting, state.waiting_since) == (0, None)
    assert state.last_failures == {
        "validate": max(ended[0].finished_at, ended[1].finished_at),
        "retrain": other.finished_at,
    }


IMAGES = b"an archive of images"


def submit_images(store: Store, actor: str = "ann") -> Job:
    return store.jobs.submit("fingerprint", {"task": "lesions"}, upload=BytesIO(IMAGES), actor=actor)


@sqlite_only
@pytest.mark.parametrize("ending", ["succeeded", "failed", "given up"])
def test_an_upload_is_deleted_when_the_last_job_that_needs_it_has_ended(store: Store, ending: str):
    first, second = submit_images(store), submit_images(store, "bob")
    digest = digest_of(IMAGES)
    assert first.payload == second.payload == {"task": "lesions", "upload": digest}
    assert store.artifacts.get(digest) == IMAGES
    store.jobs.succeed(claim(store), {"fingerprint": "a"})
    assert is_kept(store, digest)
    if ending == "succeeded":
        store.jobs.succeed(claim(store), {})
    elif ending == "failed":
        store.jobs.fail(claim(store), InvalidInputError("no images."))
    else:
        for _ in range(jobs.MOST_ATTEMPTS):
            assert store.jobs.claim("a monitor that dies", lease_seconds=0) is not None
            assert is_kept(store, digest)
        assert nothing_to_do(store)
    assert store.jobs.get(second.id).finished_at is not None
    assert not is_kept(store, digest)


@sqlite_only
def test_an_upload_that_could_not_be_deleted_goes_later(store: Store, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise UnavailableError("the artifacts are gone.")

    submit_images(store)
    with monkeypatch.context() as patched:
        patched.setattr(Artifacts, "remove", refuse)
        assert store.jobs.fail(claim(store), InvalidInputError("no images.")).state == "failed"
        with pytest.raises(UnavailableError):
            store.jobs.remove_remains()
    assert is_kept(store, digest_of(IMAGES))
    waiting = submit_images(store)
    store.jobs.remove_remains()
    assert is_kept(store, digest_of(IMAGES))
    store.jobs.succeed(claim(store), {})
    assert store.jobs.get(waiting.id).state == "succeeded"
    store.jobs.remove_remains()
    assert not is_kept(store, digest_of(IMAGES))
