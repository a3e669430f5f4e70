"""Trainings run on the devices of their monitor beside other jobs, are cancelled, limited, and resumed."""

import os
import signal
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.running.attempt import Attempt
from lifelong_monitor.jobs.running.limits import memory_of_session
from lifelong_monitor.jobs.running.outcome import Outcome
from lifelong_monitor.jobs.running.process import JobProcess
from tests import tools
from tests.unit.monitor.daemons import until
from tests.unit.monitor.jobs.test_runner import (
    HANGS,
    REAL,
    count,
    ended,
    is_alive,
    light,
    pids,
    running,
    telling,
)

DEVICE = """
import json, os
result = {"device": os.environ.get("LIFELONG_JOB_DEVICE")}
print(json.dumps({"result": result, "error": None, "is_passing": False}))
"""
MEBIBYTE = 2**20
GROWS = f"""
import os, time
if os.fork() == 0:
    kept = b"x" * {512 * MEBIBYTE}
    time.sleep(600)
{HANGS}
"""

FILLS = f"""
import os, sys, time
os.makedirs(folder := os.path.join(*sys.argv[1:]))
with open(os.path.join(folder, "pixels.npy"), "wb") as file:
    file.write(bytes({12 * MEBIBYTE}))
time.sleep(600)
"""


def submit(store: Store, kind: str = "retrain", **payload: object) -> Job:
    return store.jobs.submit(kind, payload, actor="tests")


def message(job: Job) -> str:
    return str((job.error or {})["message"])


def folders(settings: Settings) -> list[Path]:
    return list((settings.data_directory / "jobs").glob("*"))


def test_one_training_at_a_time_on_each_device_beside_other_jobs(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path
) -> None:
    trainings = [submit(store), submit(store, "search_augmentation"), submit(store, number=2)]
    other = submit(store, "validate")
    with running(
        store, settings, exporter, light(HANGS, tmp_path / "pids"), training_devices=("cpu", "cuda:1")
    ):
        until(lambda: len(pids(tmp_path / "pids")) == 3)
        states = [store.jobs.get(job.id).state for job in (*trainings, other)]
        assert states == ["running", "running", "queued", "running"]
    left = [store.jobs.get(job.id) for job in (*trainings, other)]
    assert [(job.state, job.attempts) for job in left] == [("queued", 0)] * 4


def test_a_training_knows_the_device_of_its_lane_and_other_jobs_have_none(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    training, other = submit(store), submit(store, "validate")
    with running(store, settings, exporter, light(DEVICE), training_devices=("cuda:1",)):
        assert ended(store, training).result == {"device": "cuda:1"}
        assert ended(store, other).result == {"device": None}


def test_without_devices_trainings_wait_for_another_monitor(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    training, other = submit(store), submit(store, "validate")
    with running(store, settings, exporter, telling(result={}), training_devices=()):
        ended(store, other)
    assert store.jobs.get(training.id).state == "queued"


@pytest.mark.parametrize("kind", ["retrain", "validate"])
def test_a_cancelled_job_is_ended_with_its_processes(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path, kind: str
) -> None:
    job = submit(store, kind)
    with running(store, settings, exporter, light(HANGS, tmp_path / "pids"), training_devices=("cpu",)):
        (pid,) = until(lambda: pids(tmp_path / "pids"))
        folder = settings.data_directory / "jobs" / str(job.id)
        folder.mkdir(parents=True)
        store.jobs.cancel(job.id, actor="eve")
        assert ended(store, job).state == "cancelled"
        assert not is_alive(pid)
        until(lambda: count(exporter, "cancelled", kind))
    assert folders(settings) == []


def test_trainings_have_a_time_limit_of_their_own(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job = submit(store)
    limits = {
        "job_time_limit_seconds": 3600,
        "training_time_limit_seconds": 1.5,
        "training_devices": ("cpu",),
    }
    with running(store, settings, exporter, light(HANGS, os.devnull), **limits):
        failed = ended(store, job)
    assert message(failed) == "it was ended because it took longer than 1.5 s."
    assert (failed.error or {})["field"] == "LIFELONG_TRAINING_TIME_LIMIT_SECONDS"


@pytest.mark.parametrize("is_set", [True, False])
def test_a_job_whose_processes_together_use_too_much_memory_is_ended(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_set: bool,
) -> None:
    job = submit(store, "validate")
    limits = {"job_memory_bytes": 400 * MEBIBYTE} if is_set else {}
    if not is_set:  # a machine with 800 MiB
        monkeypatch.setattr("lifelong_core.configuration.settings.usable_memory", lambda: 800 * MEBIBYTE)
    with running(store, settings, exporter, light(GROWS, tmp_path / "pids"), **limits):
        failed = ended(store, job)
    assert message(failed) == "it was ended because its processes used more than 0.39 GiB of memory."
    assert (failed.error or {})["field"] == "LIFELONG_JOB_MEMORY_BYTES"
    assert "smaller batch_size" in str((failed.error or {})["hint"])
    assert not any(is_alive(pid) for pid in pids(tmp_path / "pids"))


def test_the_memory_of_a_session_counts_all_of_its_processes_and_no_others() -> None:
    with JobProcess(light(GROWS, os.devnull), dict(os.environ)) as process:
        until(lambda: memory_of_session(process.pid) > 500 * MEBIBYTE)
        assert memory_of_session(process.pid) < 700 * MEBIBYTE
    assert memory_of_session(process.pid) == 0


def test_a_training_does_not_start_on_a_full_disk(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job, other = submit(store), submit(store, "validate")
    lacking = {"job_disk_bytes": 2**60, "training_devices": ("cpu",)}
    with running(store, settings, exporter, telling(result={}), **lacking):
        failed = ended(store, job)
        assert ended(store, other).state == "succeeded"
    assert (failed.error or {})["field"] == "LIFELONG_JOB_DISK_BYTES"
    assert "Delete what is not needed" in str((failed.error or {})["hint"])


def test_a_full_disk_costs_a_begun_training_an_attempt_but_not_its_checkpoint(
    store: Store, settings: Settings
) -> None:
    submit(store)
    job = store.jobs.claim("one", lease_seconds=60)
    assert job is not None
    job = store.jobs.save_checkpoint(job, b"epoch 3")
    full = settings.model_copy(update={"job_disk_bytes": 2**60})
    attempt = Attempt(store, full, job, telling(result={}), "cpu", threading.Event())
    watched, outcome = attempt.run(0)
    assert (watched, outcome is not None and outcome.is_passing) == ("ended", True)
    assert store.jobs.checkpoint(job) == b"epoch 3"


def test_a_training_that_fills_the_disk_is_ended_and_its_images_go_before_its_end_is_recorded(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.need(tools.SMALL_DISKS)
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    small = settings.model_copy(update={"data_directory": disk, "job_disk_bytes": 8 * MEBIBYTE})
    left: list[list[Path]] = []
    fail = store.jobs.fail

    def record(*arguments: Any) -> None:
        left.append(folders(small))
        fail(*arguments)

    monkeypatch.setattr(store.jobs, "fail", record)
    try:
        job = submit(store)
        with running(store, small, exporter, light(FILLS, disk / "jobs"), training_devices=("cpu",)):
            failed = ended(store, job)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
    assert message(failed) == f"it was ended because the disk of {disk} had less than 0.0078 GiB left."
    assert (failed.error or {})["field"] == "LIFELONG_JOB_DISK_BYTES"
    assert left == [[]]


@pytest.mark.parametrize(("kind", "attempts"), [("validate", 1), ("retrain", 3)])
def test_only_a_job_with_checkpoints_is_repeated_after_a_kill(
    store: Store, settings: Settings, exporter: Exporter, kind: str, attempts: int
) -> None:
    job = submit(store, kind)
    killed = light("import os; os.kill(os.getpid(), 9)")
    with running(store, settings, exporter, killed, training_devices=("cpu",), lease_seconds=0.3):
        failed = ended(store, job)
    assert failed.attempts == attempts
    assert "perhaps because the memory was full" in message(failed)
    assert "smaller batch_size" in str((failed.error or {})["hint"])


def test_a_training_goes_on_from_its_checkpoint_after_three_kills_and_a_restart(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(settings.data_directory))
    file = tmp_path / "pids"
    job = submit(store, steps=5, hang_at=[1, 2, 3, 4], pids=str(file))
    options = {"training_devices": ("cpu",), "lease_seconds": 2.0}

    def is_followed() -> bool:
        return store.jobs.get(job.id).progress is not None and bool(store.jobs.log(job.id))

    def has_reached(step: int) -> bool:
        return store.jobs.checkpoint(job) == str(step).encode()

    with running(store, settings, exporter, REAL, **options):
        until(lambda: has_reached(1) and is_followed())
        assert [path.name for path in folders(settings)] == [str(job.id)]
        for number in (1, 2, 3):
            os.kill(pids(file)[-1], signal.SIGKILL)
            until(partial(has_reached, number + 1))
            assert store.jobs.get(job.id).attempts == 1
    assert store.jobs.get(job.id).state == "queued"
    with running(store, settings, exporter, REAL, **options):
        done = ended(store, job)
        until(lambda: store.jobs.get(job.id).checkpoint is None)  # removed after the end
    assert done.result == {"begun_at": 4, "steps": 5, "is_cached": True}
    until(lambda: folders(settings) == [])
    assert done.progress == {"phase": "training", "fraction": 1.0}
    lines = [line.text for line in store.jobs.log(job.id)]
    assert (lines[0], lines[-1]) == ("begins at step 0 on cpu", "begins at step 4 on cpu")
    assert len(pids(file)) == 5


def test_folders_that_a_killed_monitor_left_are_removed_at_the_next_start(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    waiting, ended_elsewhere = submit(store), submit(store, number=2)
    store.jobs.cancel(ended_elsewhere.id, actor="eve")
    for name in (str(waiting.id), str(ended_elsewhere.id), "no-id"):
        (settings.data_directory / "jobs" / name).mkdir(parents=True)
    with running(store, settings, exporter, telling(result={}), training_devices=()):
        assert [path.name for path in folders(settings)] == [str(waiting.id)]


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (MemoryError(), "the memory was full: MemoryError", "smaller batch_size"),
        (
            type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory.\nTried"),
            "CUDA out of memory.",
            "batch",
        ),
        (OSError(28, "No space left on device"), "a disk of the machine was full: [Errno 28]", "Delete"),
    ],
)
def test_want_of_memory_or_space_says_what_to_do(error: Exception, said: str, hint: str) -> None:
    outcome = Outcome.of_exhaustion(error)
    assert said in outcome.error.message
    assert hint in str(outcome.error.hint)
    assert Outcome.of_exhaustion(OSError(2, "No such file")) is None
    assert Outcome.of_exhaustion(ValueError("memory")) is None
