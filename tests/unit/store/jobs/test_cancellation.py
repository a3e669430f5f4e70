"""A cancelled job ends at once, or when its holder has seen the request; a claim may be limited to kinds."""

import uuid
from io import BytesIO

import pytest

from lifelong_core.store import Job, Store
from lifelong_core.store.artifacts import digest_of
from lifelong_core.values.errors import ConflictError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.job_samples import audited, claim, let_time_pass, move_clock, nothing_to_do, submit


def cancel(store: Store, job: Job, actor: str = "eve") -> Job:
    return store.jobs.cancel(job.id, actor=actor)


def check_cancelled(store: Store, job: Job) -> None:
    kept = store.jobs.get(job.id)
    assert (kept.state, kept.cancelled_by, kept.result, kept.error) == ("cancelled", "eve", None, None)
    assert kept.cancelled_at is not None
    assert kept.finished_at is not None
    assert kept.finished_at >= kept.cancelled_at
    assert nothing_to_do(store)
    assert [entry for entry in audited(store) if entry[1] != "jobs.submit"] == [
        ("eve", "jobs.cancel", str(job.id))
    ]
    assert store.jobs.list(state="cancelled") == [kept]
    with pytest.raises(ConflictError, match="has ended: cancelled"):
        cancel(store, job)


@sqlite_only
def test_a_waiting_job_is_cancelled_at_once_with_its_upload(store: Store):
    job = store.jobs.submit("retrain", {}, upload=BytesIO(b"images"), actor="ann")
    assert cancel(store, job).state == "cancelled"
    check_cancelled(store, job)
    assert not store.artifacts.has(digest_of(b"images"))


@sqlite_only
def test_a_running_job_is_cancelled_when_its_holder_has_stopped_it(store: Store):
    submit(store, "retrain")
    job = claim(store)
    store.jobs.save_checkpoint(job, b"state")
    asked = cancel(store, job)
    assert (asked.state, asked.cancelled_by, asked.finished_at) == ("running", "eve", None)
    assert cancel(store, job, "bob") == asked
    assert store.jobs.renew(job, lease_seconds=60).cancelled_at == asked.cancelled_at
    assert store.jobs.end_cancelled(job).state == "cancelled"
    check_cancelled(store, job)
    assert store.jobs.get(job.id).checkpoint is None


@sqlite_only
def test_a_running_job_that_is_given_back_after_the_request_is_cancelled(store: Store):
    submit(store)
    job = claim(store)
    cancel(store, job)
    assert store.jobs.release(job).state == "cancelled"
    check_cancelled(store, job)


@sqlite_only
@pytest.mark.parametrize("is_first_dead", [True, False])
def test_the_job_of_a_dead_holder_is_cancelled(store: Store, is_first_dead: bool):
    submit(store)
    job = claim(store)
    if is_first_dead:
        let_time_pass(store)
        assert cancel(store, job).state == "cancelled"
    else:
        cancel(store, job)
        let_time_pass(store)
        assert nothing_to_do(store)
    with pytest.raises(ConflictError):
        store.jobs.succeed(job, {})
    check_cancelled(store, job)


@sqlite_only
def test_a_job_that_ends_before_its_holder_sees_the_request_keeps_its_result(store: Store):
    submit(store)
    job = claim(store)
    cancel(store, job)
    assert store.jobs.succeed(job, {"samples": 3}).state == "succeeded"
    with pytest.raises(ConflictError, match="has ended: succeeded"):
        cancel(store, job)
    with pytest.raises(NotFoundError, match="no job"):
        store.jobs.cancel(uuid.uuid4(), actor="eve")


def test_a_job_whose_set_is_being_sent_is_cancelled_when_it_has_arrived(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    put = store.artifacts.put_file

    def cancel_meanwhile(file: object) -> str:
        cancel(store, store.jobs.list()[0])
        return put(file)  # type: ignore[arg-type]

    monkeypatch.setattr(store.artifacts, "put_file", cancel_meanwhile)
    job = store.jobs.submit("validate", {}, labelled_set=b"set", actor="ann")
    assert job.state == "cancelled"
    check_cancelled(store, job)


def test_a_claim_takes_only_the_kinds_that_are_asked_for(store: Store):
    first, training, last = submit(store, "validate"), submit(store, "retrain"), submit(store, "odd")
    kinds = ("retrain", "search_augmentation")

    def claimed(**options: tuple[str, ...]) -> uuid.UUID | None:
        job = store.jobs.claim("one", lease_seconds=60, **options)
        return None if job is None else job.id

    assert claimed(kinds=()) is None
    assert claimed(kinds=kinds) == training.id
    assert claimed(kinds=kinds) is None
    move_clock(store, seconds=-61)
    assert [claimed(except_kinds=kinds) for _ in range(3)] == [first.id, last.id, None]
    assert claimed(kinds=kinds) == training.id
