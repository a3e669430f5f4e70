"""The pages of jobs: progress, log and cancellation."""

from uuid import uuid4

import pytest

from lifelong_core.store import Job
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.console.route import LIVE
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console


@pytest.fixture
def running(service: Service) -> Job:
    """A training at work, with markup in its log."""
    service.store.jobs.submit("retrain", {}, actor="ann")
    job = service.store.jobs.claim("one", lease_seconds=600)
    assert job is not None
    progress = {
        "phase": "learning_rate",
        "fraction": 0.25,
        "epoch": 2,
        "epochs": 8,
        "validation_loss": 0.123456,
    }
    service.store.jobs.report(job, {**progress, "device": "cpu"})
    service.store.jobs.append_log(job, ["<b>begun</b>"])
    return job


def test_without_jobs_the_page_says_so(service: Service) -> None:
    assert "There is no job." in Console(service).get("/console/jobs").text


def test_a_job_at_work_shows_its_progress_and_reloads(service: Service, running: Job) -> None:
    console = Console(service, scope="read")
    listed = console.get("/console/jobs").text
    assert f'href="/console/jobs/{running.id}"' in listed
    assert "25 %" in listed
    answer = console.get(f"/console/jobs/{running.id}")
    assert answer.headers["content-security-policy"] == LIVE["Content-Security-Policy"]
    shown = answer.text
    for text in ("25 %, learning rate, epoch 2 of at most 8", "0.1235", "cpu", "&lt;b&gt;begun"):
        assert text in shown
    assert f'hx-get="/console/jobs/{running.id}" hx-trigger="every 2s"' in shown
    assert "Cancel this job" not in shown
    assert console.get(f"/console/jobs/{uuid4()}").status_code == 404


def test_a_failed_job_says_what_to_do_and_does_not_reload(service: Service, running: Job) -> None:
    service.store.jobs.fail(
        running, InvalidInputError("the memory was full.", hint="Choose smaller batches.")
    )
    shown = Console(service, scope="admin").get(f"/console/jobs/{running.id}").text
    assert "memory was full. Choose smaller batches." in shown
    assert "hx-get" not in shown
    assert "<script" not in shown
    assert "Cancel this job" not in shown


def test_an_administrator_cancels_a_job(service: Service, running: Job) -> None:
    path = f"/console/jobs/{running.id}"
    assert Console(service, scope="operate").post(f"{path}/cancel").status_code == 403
    console = Console(service, scope="admin")
    assert "Cancel this job" in console.get(path).text
    answer = console.post(f"{path}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert "being cancelled" in console.get(path).text
    assert service.store.jobs.get(running.id).cancelled_by == "admin-token"
    service.store.jobs.end_cancelled(running)
    again = console.post(f"{path}/cancel")
    assert again.status_code == 409
    assert "has ended: cancelled" in again.text
    assert "cancelled by admin-token" in again.text
