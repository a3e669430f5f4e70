"""The monitor as a real process: its end, the errors that it survives, and the modules that it never imports."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifelong_core.deploy import quantifier
from lifelong_core.store import Store
from lifelong_monitor import __main__
from lifelong_monitor.cycle import subject
from lifelong_monitor.daemon import Daemon
from tests.databases import locked
from tests.ports import free_port
from tests.unit.monitor.population import SHIFTED, add_model, draw, open_store, predict, settings_for


def environment(folder: Path, port: int, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    return kept | {"LIFELONG_DATA_DIRECTORY": str(folder), "LIFELONG_MONITOR_PORT": str(port)} | more


@contextmanager
def monitor(folder: Path, port: int, **more: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lifelong_monitor"],
        env=environment(folder, port, **more),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def metrics(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.read().decode()
    except urllib.error.URLError:
        return ""


def wait_for(port: int, pattern: str) -> None:
    deadline = time.monotonic() + 30
    while not re.search(pattern, metrics(port), re.MULTILINE):
        assert time.monotonic() < deadline, metrics(port)
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = settings_for(tmp_path)
    with open_store(settings) as store:
        predict(store, add_model(store), "clinic", draw(SHIFTED, 600, seed=3))
    return tmp_path


def settings_store(folder: Path) -> Store:
    settings = settings_for(folder)
    return Store.from_settings(settings)


def test_a_signal_stops_it_with_status_0(folder: Path) -> None:
    port = free_port()
    with monitor(folder, port) as process:
        wait_for(port, r'^lifelong_cycles_total\{.*outcome="swap"\} 1')
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert "watching in mode auto (cycles swap heads); metrics at" in said.splitlines()[0]
    assert "swap." in said
    with settings_store(folder) as store:
        assert store.monitors.list() == []
    assert json.loads(said.splitlines()[-1])["message"] == "stopped"


def test_a_cycle_that_cannot_write_does_not_hold_up_the_end(folder: Path) -> None:
    port = free_port()
    with locked(folder / "lifelong.db"), monitor(folder, port) as process:
        wait_for(port, r"^lifelong_population_first_seen_timestamp_seconds\{")
        # Enough for the cycle to come to its transaction; sooner is no harm to the test.
        time.sleep(1)
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    with settings_store(folder) as store:
        assert store.cycles.list() == []
        assert len(store.heads.list("lesions")) == 1


def test_it_goes_on_without_a_database_and_counts(tmp_path: Path) -> None:
    port, nobody = free_port(), free_port()
    url = f"postgresql+psycopg://user@127.0.0.1:{nobody}/lifelong"
    more = {"LIFELONG_DATABASE_URL": url, "LIFELONG_CYCLE_INTERVAL_SECONDS": "0.2"}
    with monitor(tmp_path, port, **more) as process:
        wait_for(port, r"^lifelong_tick_errors_total ([2-9]|\d\d)")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert "does not answer" in said
    assert "Traceback" not in said


def test_without_a_schema_it_says_how_to_make_one(tmp_path: Path) -> None:
    with monitor(tmp_path, free_port()) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "lifelong init" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LIFELONG_CYCLE_INTERVAL_SECONDS", "-1"),
        ("LIFELONG_QUANTIFIER", "MLSS"),
        ("LIFELONG_MONITOR_PORT", "taken"),
    ],
)
def test_what_keeps_it_from_starting_is_explained(
    tmp_path: Path,
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In this process, of which `main` must not change anything."""
    monkeypatch.setattr(__main__, "restrict_new_files", lambda: None)
    monkeypatch.setattr(__main__, "configure_logging", lambda _: None)
    monkeypatch.setattr(Daemon, "stop_on_signals", lambda _: None)
    monkeypatch.setattr(subject, "quantifier", quantifier)  # not the one that `fitted_once` remembers
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv(variable, value.replace("taken", str(taken.getsockname()[1])))
        assert __main__.main() == 1
    (said,) = caplog.records
    assert variable in said.getMessage()
    assert said.exc_info is None


_AFTER_A_TICK = """
import sys, threading, time
from datetime import UTC, datetime
import lifelong_monitor.__main__
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.running.runner import JobRunner, check_job_runner
from lifelong_monitor.schedule.tick import Ticker

settings = Settings.load()
store = Store.from_settings(settings)
exporter = Exporter(cycle_interval_seconds=60)
Ticker(store, settings, exporter).tick(datetime.now(UTC), datetime.now(UTC))
check_job_runner(settings.job_runner)
job, stopping = store.jobs.submit("cycle", {}, actor="tests"), threading.Event()
runner = JobRunner(store, settings, exporter.jobs, stopping=stopping)
runner.start()
while (job := store.jobs.get(job.id)).finished_at is None:
    time.sleep(0.1)
stopping.set()
print(job.error["field"])
print([cycle.outcome for cycle in store.cycles.list()], sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_process_that_ran_a_cycle_and_a_job_has_imported_nothing_that_only_jobs_need(folder: Path) -> None:
    on_ray = {"LIFELONG_JOB_RUNNER": "ray", "LIFELONG_RAY_ADDRESS": "nonsense"}
    answer = subprocess.run(
        [sys.executable, "-c", _AFTER_A_TICK],
        env=environment(folder, free_port(), **on_ray),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "['swap']" in answer.stdout
    assert "'scipy'" in answer.stdout
    assert "LIFELONG_RAY_ADDRESS" in answer.stdout
    assert not re.search(r"'(torch|sklearn|timm|bentoml|onnxruntime|ray|pydicom|webdataset)'", answer.stdout)
