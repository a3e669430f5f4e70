"""`lifelong jobs`: what monitors have done, do and will do."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from rich.console import Console

from lifelong.commands import job_following
from lifelong.commands.jobs import finish_job
from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.jobs import LogLine
from lifelong_core.store import Job, Store
from lifelong_core.store.jobs.following import FollowedJobs
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError


def made(folder: Path) -> tuple[Job, Job, Job]:
    """A job that succeeded, one that failed, and one that waits."""
    with Store.from_settings(Settings(data_directory=folder / "lifelong-data")) as store:
        kinds = ("cycle", "rank", "rank")
        jobs = [store.jobs.submit(kind, {"number": n}, actor="ann") for n, kind in enumerate(kinds)]
        for ended in (True, False):
            claimed = store.jobs.claim("monitor", lease_seconds=60)
            assert claimed is not None
            if ended:
                store.jobs.succeed(claimed, {"outcome": "keep"})
            else:
                store.jobs.fail(claimed, InvalidInputError("too few outcomes.", hint="Import more."))
        first, second, third = (store.jobs.get(job.id) for job in jobs)
        return first, second, third


def test_jobs_are_listed_newest_first(installed: Callable[..., str], tmp_path: Path) -> None:
    assert installed("jobs", "list") == "There is no such job.\n"
    cycle, failed, waiting = made(tmp_path)
    rows = json.loads(installed("jobs", "list", "--json"))
    assert [row["id"] for row in rows] == [str(job.id) for job in (waiting, failed, cycle)]
    assert [row["state"] for row in rows] == ["queued", "failed", "succeeded"]
    assert (rows[1]["error"], rows[1]["hint"]) == ("too few outcomes.", "Import more.")
    assert "too few outcomes. Import more." in installed("jobs", "list")
    assert len(json.loads(installed("jobs", "list", "--json", "--limit", "1"))) == 1
    (row,) = json.loads(installed("jobs", "list", "--json", "--kind", "rank", "--state", "failed"))
    assert row["id"] == str(failed.id)


def test_a_job_is_shown_with_its_result_or_error(installed: Callable[..., str], tmp_path: Path) -> None:
    cycle, failed, waiting = made(tmp_path)
    shown = json.loads(installed("jobs", "show", str(cycle.id), "--json"))
    assert (shown["payload"], shown["result"]) == ({"number": 0}, {"outcome": "keep"})
    assert shown["finished_at"] == (cycle.finished_at.isoformat() if cycle.finished_at else "")
    assert '{"outcome": "keep"}' in installed("jobs", "show", str(cycle.id), "--wait")
    assert "Import more." in installed("jobs", "show", str(failed.id), status=1)
    assert f"finished at   {failed.finished_at:%Y}" in installed("jobs", "show", str(failed.id), status=1)
    assert json.loads(installed("jobs", "show", str(waiting.id), "--json"))["result"] is None
    with pytest.raises(UnavailableError, match=r"still queued after 1 s"):
        installed("jobs", "show", str(waiting.id), "--wait", "--timeout", "1s")
    with pytest.raises(NotFoundError):
        installed("jobs", "show", "01a20676-ec35-71e3-9541-7358988905de")


def at_work(folder: Path) -> tuple[Store, Job]:
    """A training that has reported, and its store."""
    store = Store.from_settings(Settings(data_directory=folder / "lifelong-data"))
    store.jobs.submit("retrain", {}, actor="ann")
    job = store.jobs.claim("monitor", lease_seconds=60)
    assert job is not None
    progress = {"phase": "training", "fraction": 0.25, "epoch": 2, "epochs": 8, "seconds_left": 600.0}
    store.jobs.report(job, {**progress, "validation_loss": 0.5})
    store.jobs.append_log(job, ["begun [x]"])
    return store, job


def test_a_job_is_followed_to_its_end(
    installed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, job = at_work(tmp_path)
    assert json.loads(installed("jobs", "list", "--json"))[0]["progress"] == "25%"
    real, looks = FollowedJobs.log, list[int]()

    def log(
        jobs: FollowedJobs, job_id: UUID, *, after: int | None = None, limit: int = 1000
    ) -> list[LogLine]:
        looks.append(after or 0)
        if len(looks) == 2:
            store.jobs.append_log(job, ["epoch 3"])
            raise UnavailableError("gone for a moment.")
        if len(looks) == 3:
            store.jobs.fail(job, InvalidInputError("an image is damaged.", hint="Leave it out."))
        return real(jobs, job_id, after=after, limit=limit)

    monkeypatch.setattr(FollowedJobs, "log", log)
    monkeypatch.setattr(job_following, "POLL_SECONDS", 0)
    monkeypatch.setattr(job_following, "_AGAIN_SECONDS", 0)
    lines = installed("jobs", "follow", str(job.id), status=1).splitlines()
    assert lines == [
        "begun [x]",
        "training, epoch 2 of at most 8, validation loss 0.500, at most 10 min left (25%)",
        "waiting: gone for a moment.",
        "epoch 3",
        "failed (25%)",
        "an image is damaged.",
        "Leave it out.",
    ]
    assert looks[:3] == [0, 1, 1]
    store.close()


def test_a_terminal_shows_a_bar(tmp_path: Path, installed: Callable[..., str]) -> None:
    store, job = at_work(tmp_path)
    store.jobs.succeed(job, {})
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    assert job_following.follow_job(store, job, console).state == "succeeded"
    assert "25%" in out.getvalue()
    assert "begun [x]" in out.getvalue()
    store.close()


def test_jobs_are_cancelled(installed: Callable[..., str], tmp_path: Path) -> None:
    store, job = at_work(tmp_path)
    waiting = store.jobs.submit("rank", {}, actor="ann")
    assert "is cancelled" in installed("jobs", "cancel", str(waiting.id))
    assert "is ended by its monitor" in installed("jobs", "cancel", str(job.id))
    assert store.jobs.get(job.id).cancelled_at is not None
    (row,) = json.loads(installed("jobs", "list", "--json", "--state", "cancelled"))
    assert row["id"] == str(waiting.id)
    installed("jobs", "show", str(waiting.id), status=1)
    with pytest.raises(ConflictError, match="has ended: cancelled"):
        installed("jobs", "cancel", str(waiting.id))
    store.close()


def test_all_queued_jobs_of_a_token_are_cancelled(installed: Callable[..., str], tmp_path: Path) -> None:
    with Store.from_settings(Settings(data_directory=tmp_path / "lifelong-data")) as store:
        for kind, actor in (("cycle", "flood"), ("replay", "flood"), ("cycle", "ann")):
            store.jobs.submit(kind, {}, actor=actor)
    assert installed("jobs", "cancel", "--created-by", "flood", "--kind", "replay").startswith("1 queued")
    assert installed("jobs", "cancel", "--created-by", "flood").startswith("1 queued jobs of flood")
    (row,) = json.loads(installed("jobs", "list", "--json", "--state", "queued"))
    assert row["created_by"] == "ann"


def test_waiting_for_a_job_ends_with_an_error_if_it_is_cancelled(
    installed: Callable[..., str], tmp_path: Path
) -> None:
    store, _ = at_work(tmp_path)
    waiting = store.jobs.submit("validate", {}, actor="ann")
    cancelled = store.jobs.cancel(waiting.id, actor="ann")
    with pytest.raises(ConflictError, match="the job was cancelled"):
        finish_job(store, cancelled, timedelta(seconds=1))
    store.close()
