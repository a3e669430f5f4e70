"""The runner with real subprocesses: jobs that succeed, fail, or never end."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import InvalidInputError, LifelongError, UnavailableError
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.running.outcome import JobError, Outcome
from lifelong_monitor.jobs.running.process import ABANDONED, HOLD
from lifelong_monitor.jobs.running.redaction import last_lines
from lifelong_monitor.jobs.running.runner import JobRunner
from lifelong_monitor.jobs.running.work import KINDS, outcome_of, work_of
from tests.unit.monitor.daemons import until

REAL = (sys.executable, str(Path(__file__).with_name("job_kinds.py")))
"""With the store and all that a job's subprocess loads; the others start in no time."""
HANGS = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(600)"


def light(code: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code, *map(str, arguments))


def telling(**outcome: Any) -> tuple[str, ...]:
    document = {"result": None, "error": None, "is_passing": False} | outcome
    return light(f"print({json.dumps(document)!r})")


@contextmanager
def running(
    store: Store, settings: Settings, exporter: Exporter, command: Sequence[str], **changes: Any
) -> Iterator[None]:
    stopping = threading.Event()
    settings = settings.model_copy(update={"job_poll_seconds": 0.05, "training_devices": ()} | changes)
    runner = JobRunner(store, settings, exporter.jobs, stopping=stopping, command=command)
    runner.start()
    try:
        yield
    finally:
        stopping.set()
        assert runner.join(30)


def ended(store: Store, job: Job, *, seconds: float = 60) -> Job:
    def finished() -> Job | None:
        found = store.jobs.get(job.id)
        return found if found.finished_at is not None else None

    return until(finished, seconds=seconds)


def count(exporter: Exporter, outcome: str, kind: str = "other") -> float | None:
    return exporter.registry.get_sample_value("lifelong_jobs_total", {"kind": kind, "outcome": outcome})


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def test_a_job_is_done_modestly_and_what_it_prints_is_no_result(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job = store.jobs.submit("echo", {"say": "one"}, actor="tests")
    own = os.nice(0)
    with running(store, settings, exporter, REAL):
        result = ended(store, job).result
    assert store.artifacts.get(result["said"]) == b"one"
    assert result["nice"] == min(own + 5, 19)
    assert result["oom"] == 1000
    assert (count(exporter, "succeeded"), count(exporter, "failed")) == (1, 0)
    assert exporter.registry.get_sample_value("lifelong_jobs_running", {"kind": "other"}) == 0
    seconds = exporter.registry.get_sample_value("lifelong_job_last_duration_seconds", {"kind": "other"})
    assert seconds is not None
    assert seconds > 0


def test_an_error_of_ours_is_told_in_its_own_words(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(settings.data_directory))
    job = store.jobs.submit("validate", {}, actor="tests")

    def told(error: LifelongError) -> Outcome | None:
        def work(_: Store, __: object) -> dict[str, Any]:
            raise error

        return Outcome.from_json(outcome_of(job.id, lambda _: work).to_json())

    wrong = InvalidInputError("this cannot be done.", field="what", hint="Ask for something else.")
    assert told(wrong) == Outcome(error=JobError("this cannot be done.", "what", "Ask for something else."))
    assert told(UnavailableError("gone.")) == Outcome(error=JobError("gone."), is_passing=True)
    with pytest.raises(ZeroDivisionError):
        outcome_of(job.id, lambda _: lambda *_: {"share": 1 / 0})
    with pytest.raises(ValueError, match="JSON"):
        outcome_of(job.id, lambda _: lambda *_: {"share": float("nan")}).to_json()


def test_a_crash_is_told_by_its_last_words_without_secrets_and_data(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_TOKEN", "geheimnis")
    code = (
        "import os; logits = [[0.125, -1.5, 2], [3e-5, 4, float('nan')]]\n"
        "token, url = os.environ['JOB_TOKEN'], os.environ['LIFELONG_DATABASE_URL']\n"
        "raise RuntimeError(f'{logits} by {token}, {url}')"
    )
    job = store.jobs.submit("validate", {}, actor="tests")
    url = "postgresql://me:very%20secret@nowhere/x"
    monkeypatch.setattr(Settings, "resolved_database_url", url)
    with running(store, settings, exporter, light(code)):
        said = (ended(store, job).error or {})["message"] or ""
    assert said.startswith("it crashed: its process ended with status 1. Its last words:\nTraceback")
    assert said.endswith("RuntimeError: [[...]] by ***, postgresql://me:***@nowhere/x")


@pytest.mark.parametrize("database_kind", ["sqlite", "postgresql"], indirect=True)
def test_one_after_the_other_the_oldest_first(store: Store, settings: Settings, exporter: Exporter) -> None:
    jobs = [store.jobs.submit("validate", {"number": number}, actor="tests") for number in range(3)]
    with running(store, settings, exporter, telling(result={"accepted": True})):
        done = [ended(store, job) for job in jobs]
    assert [job.result for job in done] == [{"accepted": True}] * 3
    for before, after in pairwise(done):
        assert before.finished_at is not None
        assert after.started_at is not None
        assert before.finished_at <= after.started_at
    assert count(exporter, "succeeded", kind="validate") == 3


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "by signal 9 (Killed), perhaps because the memory was full."),
        ("import ctypes; ctypes.string_at(0)", "by signal 11 (Segmentation fault). Its last words:\nFatal"),
        ("import sys; sys.exit('what a pity')", "with status 1. Its last words:\nwhat a pity"),
        ("print('{}')", "without a word of what came out."),
        ("import sys; sys.stderr.write('x' * 5000 + 'the end')", "without a word of what came out. Its last"),
    ],
)
def test_a_crash_fails_the_job_and_says_how(
    store: Store, settings: Settings, exporter: Exporter, code: str, said: str
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(code)):
        failed = ended(store, job)
    assert said in (failed.error["message"] or "")
    assert ("the end" in code) == (failed.error["message"] or "").endswith("the end")
    assert (failed.state, failed.attempts) == ("failed", 1)


def test_a_result_that_the_store_refuses_fails_the_job(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    code = 'print(\'{"result": {"text": "%s"}, "error": null, "is_passing": false}\' % ("x" * 1100000))'
    with running(store, settings, exporter, light(code)):
        error = ended(store, job).error
    assert error["field"] == "result"


def test_a_job_that_hangs_is_killed_at_its_time_limit(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path
) -> None:
    file = tmp_path / "pids"
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(HANGS, file), job_time_limit_seconds=1.5):
        error = ended(store, job).error
    assert [is_alive(pid) for pid in pids(file)] == [False]
    assert error["message"] == "it was ended because it took longer than 1.5 s."
    assert error["field"] == "LIFELONG_JOB_TIME_LIMIT_SECONDS"
    assert error["hint"]


def test_a_runner_that_is_stopped_kills_its_subprocess_and_gives_the_job_back(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(HANGS, tmp_path / "pids")):
        (pid,) = until(lambda: pids(tmp_path / "pids"))
        assert exporter.registry.get_sample_value("lifelong_jobs_running", {"kind": "validate"}) == 1
    assert not is_alive(pid)
    left = store.jobs.get(job.id)
    assert (left.state, left.attempts) == ("queued", 0)
    assert (count(exporter, "again", "validate"), count(exporter, "failed", "validate")) == (1, 0)


def test_a_signal_for_all_processes_of_the_service_gives_the_job_back(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = threading.Event()

    def renew(job: Job, *, lease_seconds: float) -> Job:
        (pid,) = until(lambda: pids(tmp_path / "pids"))
        os.kill(pid, signal.SIGTERM)
        until(lambda: not is_alive(pid))
        stopping.set()
        return job

    monkeypatch.setattr(store.jobs, "renew", renew)
    job = store.jobs.submit("validate", {}, actor="tests")
    quick = settings.model_copy(
        update={"job_poll_seconds": 0.05, "lease_seconds": 3.0, "training_devices": ()}
    )
    command = light(HANGS, tmp_path / "pids")
    runner = JobRunner(store, quick, exporter.jobs, stopping=stopping, command=command)
    runner.start()
    assert stopping.wait(60)
    assert runner.join(30)
    left = store.jobs.get(job.id)
    assert (left.state, left.attempts, left.error) == ("queued", 0, None)


def test_a_claim_is_renewed_and_when_it_is_lost_the_subprocess_is_killed(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(HANGS, tmp_path / "pids"), lease_seconds=1.5):
        (pid,) = until(lambda: pids(tmp_path / "pids"))
        for _ in range(20):
            assert store.jobs.claim("another", lease_seconds=1) is None
            time.sleep(0.1)
        # As if this monitor had been away for too long.
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE jobs SET held_until = '2000-01-01 00:00:00'")
        taken = store.jobs.claim("another", lease_seconds=600)
        assert taken is not None
        until(lambda: not is_alive(pid))
    assert (store.jobs.get(job.id).holder, store.jobs.get(job.id).state) == ("another", "running")
    assert pids(tmp_path / "pids") == [pid]


def test_a_subprocess_is_killed_when_the_claim_cannot_be_renewed_in_time(
    store: Store, settings: Settings, exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renew(job: Job, *, lease_seconds: float) -> Job:
        raise UnavailableError("gone.")

    monkeypatch.setattr(store.jobs, "renew", renew)
    store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(HANGS, tmp_path / "pids"), lease_seconds=1):
        until(lambda: len(pids(tmp_path / "pids")) == 2)
        first, second = pids(tmp_path / "pids")
        assert not is_alive(first)
    assert not is_alive(second)


def test_what_the_database_prevented_is_begun_again_when_the_claim_is_over(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    away = telling(error={"message": "gone.", "field": None, "hint": None}, is_passing=True)
    with running(store, settings, exporter, away, lease_seconds=0.3):
        error = ended(store, job).error
    assert error["message"] == "it was started 3 times and never ended; the last time: gone."
    assert (count(exporter, "again", "validate"), count(exporter, "failed", "validate")) == (2, 1)


def test_the_end_of_a_job_is_recorded_when_the_database_is_back(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, away = store.jobs.succeed, iter([1, 2])

    def succeed(job: Job, result: dict[str, Any]) -> Job:
        if next(away, None) is not None:
            raise UnavailableError("gone for a moment.")
        return real(job, result)

    monkeypatch.setattr(store.jobs, "succeed", succeed)
    monkeypatch.setattr("lifelong_monitor.jobs.running.lane.FINISH_AGAIN_SECONDS", 0.05)
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, telling(result={})):
        assert ended(store, job).attempts == 1
    assert count(exporter, "succeeded", "validate") == 1


def test_without_a_database_it_says_so_once_and_goes_on(
    store: Store,
    settings: Settings,
    exporter: Exporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real, asked = store.jobs.claim, list[str]()

    def claim(holder: str, **options: Any) -> Job | None:
        asked.append(holder)
        if len(asked) <= 3:
            raise UnavailableError("gone for a moment.")
        if len(asked) == 4:
            raise ZeroDivisionError("a defect")
        return real(holder, **options)

    monkeypatch.setattr(store.jobs, "claim", claim)
    with running(store, settings, exporter, telling(result={})):
        until(lambda: len(asked) > 5)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["no jobs at present" in record.getMessage() for record in said] == [True, False]
    assert "a defect" in said[1].getMessage()


def test_an_unknown_kind_says_which_there_are() -> None:
    with pytest.raises(InvalidInputError, match=f"Kinds: {', '.join(KINDS)}") as caught:
        work_of("unheard-of")
    assert {"compare", "cycle", "fingerprint"} <= set(KINDS)
    assert caught.value.field == "kind"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("[np.float64(0.25), np.float64(-3.5), np.float64(nan)] is odd", "[np.float64(...)] is odd"),
        ("tensor([[0.1, 2.],\n        [1e-7, inf]])", "tensor([[...]])"),
        ("shape (3, 4), row 17 of 20, version 1.2.3, 2025-03-01 12:00:00",) * 2,
        ("1" * 50_000 + "x", "1" * 1799 + "x"),
        ("1" + "(" * 50_000 + "x", "(" * 1799 + "x"),
        ("1 " * 25_000 + "2x", "... 2x"),
        ("first\n" + "y" * 100 + "\n" + "z" * 1750, "z" * 1750),
    ],
)
def test_rows_of_numbers_are_not_kept_however_they_are_written(said: str, kept: str) -> None:
    assert last_lines(said, {}) == kept


@pytest.mark.parametrize("sign", ["killed", "silent"])
def test_a_subprocess_ends_with_its_runner(sign: str) -> None:
    """One that was killed ends the pipe; one that hangs says nothing more before its claim is over."""
    code = (
        "import time; from lifelong_monitor.jobs.running import process; "
        "process.end_with_runner(); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as orphan:
        os.write(orphan.stdin.fileno(), HOLD.pack(600) + HOLD.pack(600 if sign == "killed" else 0.1))
        if sign == "killed":
            orphan.stdin.close()
        assert orphan.wait(60) == ABANDONED


def test_a_job_that_was_abandoned_is_begun_again(
    store: Store, settings: Settings, exporter: Exporter
) -> None:
    job = store.jobs.submit("validate", {}, actor="tests")
    with running(store, settings, exporter, light(f"raise SystemExit({ABANDONED})")):
        until(lambda: count(exporter, "again", "validate"))
    assert store.jobs.get(job.id).state == "running"


def shown(exporter: Exporter, name: str, **labels: str) -> float | None:
    return exporter.registry.get_sample_value(name, labels)


@pytest.mark.parametrize("database_kind", ["sqlite", "postgresql"], indirect=True)
def test_jobs_that_wait_and_jobs_that_failed_are_shown_whoever_ran_them(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lifelong_monitor.jobs.running.runner.LOOK_SECONDS", 0.05)
    waiting, since = "lifelong_jobs_waiting", "lifelong_job_waiting_since_timestamp_seconds"
    failure = "lifelong_job_last_failure_timestamp_seconds"
    store.jobs.submit("of-a-newer-version", {}, actor="tests")
    elsewhere = store.jobs.claim("another monitor", lease_seconds=60)
    assert elsewhere is not None
    failed = store.jobs.fail(elsewhere, UnavailableError("no sun."))
    assert shown(exporter, waiting) is None
    with running(store, settings, exporter, light(HANGS, tmp_path / "pids")):
        until(lambda: shown(exporter, waiting) == 0)
        assert shown(exporter, since, kind="validate") is None
        assert shown(exporter, failure, kind="validate") is None
        assert shown(exporter, failure, kind="other") == failed.finished_at.timestamp()
        limit = "lifelong_job_time_limit_seconds"
        assert shown(exporter, limit, kind="validate") == settings.job_time_limit_seconds
        assert shown(exporter, limit, kind="retrain") == settings.training_time_limit_seconds
        store.jobs.submit("validate", {}, actor="tests")
        until(lambda: pids(tmp_path / "pids"))
        behind = store.jobs.submit("validate", {}, actor="tests")
        until(lambda: shown(exporter, since, kind="validate") == behind.created_at.timestamp())
        assert shown(exporter, waiting) == 1


def test_what_nobody_knows_any_more_is_not_shown(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state() -> None:
        raise UnavailableError("gone.")

    monkeypatch.setattr("lifelong_monitor.jobs.running.runner.LOOK_SECONDS", 0.05)
    with running(store, settings, exporter, telling(result={})):
        until(lambda: shown(exporter, "lifelong_jobs_waiting") == 0)
        with monkeypatch.context() as patched:
            patched.setattr(store.jobs, "state", state)
            until(lambda: shown(exporter, "lifelong_jobs_waiting") is None)
            assert shown(exporter, "lifelong_job_time_limit_seconds", kind="validate") is not None
        until(lambda: shown(exporter, "lifelong_jobs_waiting") == 0)
        monkeypatch.setattr("lifelong_monitor.jobs.running.metrics.STATE_HOLDS_SECONDS", 0)
        assert shown(exporter, "lifelong_jobs_waiting") is None, "as if the database had hung since"
