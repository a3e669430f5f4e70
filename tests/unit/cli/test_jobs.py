"""`lifelong jobs`: what monitors have done, do and will do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lifelong_core.errors import InvalidInputError, NotFoundError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Job, Store


def made(folder: Path) -> tuple[Job, Job, Job]:
    """A job that succeeded, one that failed, and one that waits."""
    with Store.from_settings(Settings(data_directory=folder / "lifelong-data")) as store:
        jobs = [store.jobs.submit(kind, {"number": kind}, actor="ann") for kind in ("cycle", "rank", "rank")]
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
    assert rows[1]["error"] == "too few outcomes."
    assert len(json.loads(installed("jobs", "list", "--json", "--limit", "1"))) == 1
    (row,) = json.loads(installed("jobs", "list", "--json", "--kind", "rank", "--state", "failed"))
    assert row["id"] == str(failed.id)


def test_a_job_is_shown_with_its_result_or_error(installed: Callable[..., str], tmp_path: Path) -> None:
    cycle, failed, waiting = made(tmp_path)
    shown = json.loads(installed("jobs", "show", str(cycle.id), "--json"))
    assert (shown["payload"], shown["result"]) == ({"number": "cycle"}, {"outcome": "keep"})
    assert shown["finished_at"] == (cycle.finished_at.isoformat() if cycle.finished_at else "")
    assert '{"outcome": "keep"}' in installed("jobs", "show", str(cycle.id), "--wait")
    assert "Import more." in installed("jobs", "show", str(failed.id), status=1)
    assert json.loads(installed("jobs", "show", str(waiting.id), "--json"))["result"] is None
    with pytest.raises(UnavailableError, match=r"still queued after 1 s"):
        installed("jobs", "show", str(waiting.id), "--wait", "--timeout", "1s")
    with pytest.raises(NotFoundError):
        installed("jobs", "show", "01a20676-ec35-71e3-9541-7358988905de")
