"""Evaluations: their rows and artifacts live and go together."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lifelong_core.store import Evaluation, Store, new_prediction_id
from lifelong_core.store.evaluations import evaluations
from lifelong_core.values.errors import NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model

HEAD = "a" * 64


def put(store: Store, name: str, reference: str = "dermatology@1", **changes: Any) -> Evaluation:
    """An evaluation whose artifacts are named by a word."""
    given: dict[str, Any] = {
        "result": f"result {name}".encode(),
        "report": f"report {name}".encode(),
        "labelled_set": f"set {name}".encode(),
        "head": HEAD,
        "recommendation_version": 1,
        "accepted": True,
        "samples": 10,
        "actor": "ann",
    }
    return store.evaluations.put(reference, **given | changes)


def artifacts(evaluation: Evaluation) -> list[str]:
    return sorted(evaluations.artifacts_of([evaluation]))


def test_an_evaluation_is_found_by_what_it_is_of(store: Store) -> None:
    add_model(store)
    first = put(store, "one", recommendation_version=None, accepted=None, report=None)
    second = put(store, "two", head="b" * 64)
    third = put(store, "three")
    assert store.evaluations.list("dermatology@1") == [third, second, first]
    assert store.evaluations.newest("dermatology@1") == third
    assert store.evaluations.newest("dermatology@1", head="b" * 64) == second
    assert store.evaluations.newest("dermatology@1", recommendation_version=2) is None
    assert (first.accepted, first.report, first.recommendation_version) == (None, None, None)
    assert store.artifacts.get(third.result) == b"result three"
    add_model(store)
    assert store.evaluations.newest("dermatology@2") is None
    with pytest.raises(NotFoundError):
        store.evaluations.newest("nobody@1")
    entry = store.audit.list(action="evaluations.add", limit=1)[0]
    assert (entry.subject, entry.actor) == ("dermatology@1", "ann")
    assert entry.details["id"] == str(third.id)


@sqlite_only
def test_a_repeated_job_replaces_its_evaluation(store: Store) -> None:
    add_model(store)
    job: UUID = new_prediction_id()
    first = put(store, "one", job_id=job)
    other = put(store, "other")
    second = put(store, "two", job_id=job, labelled_set=b"set one")
    assert store.evaluations.list("dermatology@1") == [second, other]
    assert not store.artifacts.has(first.result)
    assert store.artifacts.has(first.labelled_set)


def test_the_newest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "KEPT", 2)
    add_model(store)
    made = [put(store, name) for name in ("one", "two", "three")]
    assert store.evaluations.list("dermatology@1") == [made[2], made[1]]
    assert [store.artifacts.has(digest) for digest in artifacts(made[0])] == [False] * 3
    assert all(store.artifacts.has(digest) for one in made[1:] for digest in artifacts(one))


@sqlite_only
def test_artifacts_go_with_the_last_model_that_needs_them(store: Store) -> None:
    add_model(store)
    add_model(store)
    one, shared = put(store, "one"), put(store, "shared")
    put(store, "shared", "dermatology@2")
    store.remove_model("dermatology@1", actor="ann")
    assert [store.artifacts.has(digest) for digest in artifacts(one)] == [False] * 3
    assert all(store.artifacts.has(digest) for digest in artifacts(shared))
    store.remove_model("dermatology@2", actor="ann")
    assert not any(store.artifacts.has(digest) for digest in artifacts(shared))


@sqlite_only
def test_an_evaluation_outlives_its_job(store: Store) -> None:
    """The retention of jobs deletes no artifact that an evaluation needs."""
    add_model(store)
    job = store.jobs.submit("validate", {"model": "dermatology@1"}, labelled_set=b"set one", actor="ann")
    claimed = store.jobs.claim("here", lease_seconds=60)
    assert claimed is not None
    made = put(store, "one", job_id=job.id)
    digests = {"result": made.result, "report": made.report}
    store.jobs.succeed(claimed, digests)
    later = (datetime.now(UTC) + timedelta(days=9)).date()
    assert store.jobs.delete_expired(1, later) == 1
    assert all(store.artifacts.has(digest) for digest in artifacts(made))
