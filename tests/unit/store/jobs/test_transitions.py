"""A client that submits the same job again and again, or too many jobs."""

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from lifelong_core.store import Store
from lifelong_core.store.artifacts import digest_of
from lifelong_core.store.jobs.transitions import MOST_QUEUED
from lifelong_core.values.errors import TooManyRequestsError
from tests.databases import sqlite_only
from tests.unit.store.job_samples import claim, submit


@sqlite_only
def test_identical_jobs_of_one_actor_are_one_while_it_is_queued(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: submit(store, "cycle", model="m@1"), range(40)))
    first = jobs[0]
    assert {job.id for job in jobs} == {first.id}
    others = [submit(store, "cycle", model="m@2"), submit(store, "replay", model="m@1")]
    others.append(store.jobs.submit("cycle", {"model": "m@1"}, actor="bob"))
    assert len({first.id, *(job.id for job in others)}) == 4
    assert claim(store).id == first.id
    assert submit(store, "cycle", model="m@1").id != first.id


@sqlite_only
def test_the_same_images_are_stored_once(store: Store) -> None:
    one, other = (store.jobs.submit("retrain", {}, upload=BytesIO(b"images"), actor="ann") for _ in range(2))
    assert one == other
    assert store.artifacts.has(digest_of(b"images"))


@sqlite_only
def test_an_actor_has_a_limited_number_of_queued_jobs_and_can_cancel_them_at_once(store: Store) -> None:
    for number in range(MOST_QUEUED):
        submit(store, "cycle" if number else "replay", number=number)
    with pytest.raises(TooManyRequestsError, match="ann has 100 queued jobs") as error:
        submit(store, "cycle", number=MOST_QUEUED)
    assert "POST /v1/admin/jobs/cancel" in str(error.value.hint)
    assert submit(store, "cycle", number=7).payload == {"number": 7}
    other = store.jobs.submit("cycle", {}, actor="bob")
    assert store.jobs.cancel_queued("ann", kind="replay", actor="ann") == 1
    assert store.jobs.cancel_queued("ann", actor="eve") == MOST_QUEUED - 1
    assert [job.id for job in store.jobs.list(state="queued")] == [other.id]
    assert len(store.audit.list(action="jobs.cancel", limit=1000)) == MOST_QUEUED
    submit(store, "cycle", number=MOST_QUEUED)
