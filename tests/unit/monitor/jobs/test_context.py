"""What a job reports is kept through an outage, and never holds its work up."""

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.store import Job, Store
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.jobs.following import MOST_LINES
from lifelong_core.values.errors import ConflictError, LifelongError, UnavailableError
from lifelong_monitor.jobs.running import context as context_module
from lifelong_monitor.jobs.running.context import open_context
from tests.unit.monitor.daemons import until


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "FLUSH_SECONDS", 0.02)


@pytest.fixture
def job(store: Store) -> Job:
    store.jobs.submit("retrain", {}, actor="tests")
    claimed = store.jobs.claim("one", lease_seconds=60)
    assert claimed is not None
    return claimed


def lines(store: Store, job: Job) -> list[str]:
    return [line.text for line in store.jobs.log(job.id)]


def test_reports_reach_the_store_while_the_work_goes_on_and_the_last_at_its_end(
    store: Store, settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_JOB_DEVICE", "cuda:1")
    with open_context(store, job, settings) as context:
        assert (context.device, list(context.folder.iterdir())) == ("cuda:1", [])
        assert context.folder == settings.data_directory / "jobs" / str(job.id)
        context.report(TrainingProgress(phase="training", fraction=0.5))
        context.log("epoch 1 of postgresql://me:secret@host/x")
        until(lambda: lines(store, job) == ["epoch 1 of postgresql://me:***@host/x"])
        progress = store.jobs.get(job.id).progress or {}
        assert (progress["phase"], progress["fraction"]) == ("training", 0.5)
        context.log("the last line")
        context.report({"fraction": 1.0, "loss": float("inf")})
    assert lines(store, job)[1:] == ["the last line"]
    assert store.jobs.get(job.id).progress == {"fraction": 1.0}
    assert not context.folder.exists()


def test_an_outage_holds_nothing_up_and_loses_only_the_oldest_lines(
    store: Store, settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, is_away, asked = store.jobs.append_log, threading.Event(), threading.Event()
    is_away.set()

    def append(job: Job, texts: Iterable[str]) -> None:
        asked.set()
        if is_away.is_set():
            raise UnavailableError("gone.")
        real(job, texts)

    monkeypatch.setattr(store.jobs, "append_log", append)
    with open_context(store, job, settings) as context:
        for number in range(MOST_LINES):
            context.log(f"line {number}")
        assert asked.wait(30)
        context.log("during the outage")
        is_away.clear()
    assert lines(store, job) == [f"line {number}" for number in range(1, MOST_LINES)] + ["during the outage"]


def test_a_checkpoint_that_cannot_be_stored_leaves_the_former_one(
    store: Store, settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise UnavailableError("the artifacts are gone.")

    with open_context(store, job, settings) as context:
        assert context.checkpoint() is None
        context.save_checkpoint(b"epoch 1")
        with monkeypatch.context() as patched:
            patched.setattr(Artifacts, "put", refuse)
            context.save_checkpoint(b"epoch 2")
        assert context.checkpoint() == b"epoch 1"
    assert "this checkpoint was not stored: the artifacts are gone." in lines(store, job)[0]


def test_a_job_whose_checkpoint_is_lost_begins_anew(store: Store, settings: Settings, job: Job) -> None:
    with open_context(store, job, settings) as context:
        context.save_checkpoint(b"epoch 1")
        store.artifacts.remove(store.jobs.get(job.id).checkpoint or "")
        assert context.checkpoint() is None
    assert lines(store, job)[0].startswith("the checkpoint is lost, beginning anew: ")


def test_a_training_stops_at_a_checkpoint_when_the_disk_is_full_or_the_job_is_lost(
    store: Store, settings: Settings, job: Job
) -> None:
    full = settings.model_copy(update={"job_disk_bytes": 2**60})
    with open_context(store, job, full) as context, pytest.raises(LifelongError, match="GiB left"):
        context.save_checkpoint(b"epoch 1")
    with open_context(store, job, settings) as context:
        context.check_space(2**20)
        with pytest.raises(LifelongError, match=r"The decoded images need 1e\+06 GiB\."):
            context.check_space(10**6 * 2**30)
    store.jobs.release(job)
    with open_context(store, job, settings) as context:
        context.log("nobody reads this")
        with pytest.raises(ConflictError):
            context.save_checkpoint(b"epoch 1")
    assert lines(store, job) == []


def test_where_the_data_directory_cannot_be_made_the_folder_is_a_temporary_one(
    store: Store, settings: Settings, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    elsewhere = settings.model_copy(update={"data_directory": tmp_path / "file"})
    with open_context(store, job, elsewhere) as context:
        assert context.folder == tmp_path / "elsewhere" / "lifelong-jobs" / str(job.id)
