"""Jobs and the monitor as real processes: one job runs beside the cycles, one outlives the monitor that began it."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.store import Model, Store
from lifelong_core.store.schema import tables
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.running.runner import JobRunner
from tests.ports import free_port
from tests.unit.monitor.daemons import until
from tests.unit.monitor.jobs.test_runner import ended, is_alive, pids, telling
from tests.unit.monitor.population import (
    BALANCED,
    SHIFTED,
    add_model,
    draw,
    open_store,
    predict,
    settings_for,
)
from tests.unit.monitor.recommendations import attach
from tests.unit.monitor.test_process import environment, monitor, wait_for


def test_a_monitor_validates_a_model_beside_its_cycles(tmp_path: Path) -> None:
    port = free_port()
    with open_store(settings_for(tmp_path)) as store:
        model = add_model(store)
        attach(store)
        drawn = draw(BALANCED, 90, seed=7)
        data = LabelledSet(LabeledLogits(drawn.logits, drawn.labels, np.arange(90) // 2))
        payload = {
            "task": "lesions",
            "model": model.reference,
            "recommendation_version": 1,
            "labelled_set": store.artifacts.put(data.to_bytes()),
            "replicates": 100,
        }
        job = store.jobs.submit("validate", payload, actor="tests")
        with monitor(tmp_path, port) as process:
            result = ended(store, job).result
            wait_for(port, r'^lifelong_jobs_total\{kind="validate",outcome="succeeded"\} 1')
            process.terminate()
            _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
        assert f"job {job.id} (validate): succeeded" in said
        assert (result["samples"], result["accepted"]) == (90, None)
        assert b'"EC"' in store.artifacts.get(result["result"])


_WATCHED = (
    "import os, sys; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True)\nwhile os.read(0, 99): pass"
)
_MONITOR = """
import sys
from lifelong_monitor.__main__ import main
from lifelong_monitor.jobs.running.runner import JobRunner

JobRunner.__init__.__kwdefaults__["command"] = (sys.executable, "-S", "-c", *sys.argv[1:])
sys.exit(main())
"""


def test_the_job_of_a_monitor_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, lease_seconds=1.0, job_poll_seconds=0.05)
    with open_store(settings) as store:
        job = store.jobs.submit("validate", {}, actor="tests")
        killed = subprocess.Popen(
            [sys.executable, "-c", _MONITOR, _WATCHED, str(tmp_path / "pids")],
            env=environment(tmp_path, free_port(), LIFELONG_LEASE_SECONDS="1"),
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        (pid,) = until(lambda: pids(tmp_path / "pids"))
        assert store.jobs.get(job.id).state == "running"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        until(lambda: not is_alive(pid))
        stopping, exporter = threading.Event(), Exporter(cycle_interval_seconds=3600)
        command = telling(result={"by": "the other"})
        other = JobRunner(store, settings, exporter.jobs, stopping=stopping, command=command)
        other.start()
        try:
            taken = ended(store, job)
        finally:
            stopping.set()
            assert other.join(30)
        assert (taken.result, taken.attempts) == ({"by": "the other"}, 2)
        assert taken.holder.endswith(f"/{os.getpid()}")


class CommandLine:
    """Runs `lifelong cycles`, and a monitor, on the database of the settings."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.port = free_port()
        self._folder = folder
        self._variables = {
            "LIFELONG_WINDOW_SAMPLES": "600",
            "LIFELONG_CYCLE_NEW_SAMPLES": "0",
            "LIFELONG_POLICY__UNUSUAL_TRAFFIC": "report",
        }
        if settings.database_url:
            self._variables["LIFELONG_DATABASE_URL"] = settings.database_url

    def monitor(self) -> AbstractContextManager[subprocess.Popen[str]]:
        return monitor(self._folder, self.port, **self._variables)

    def cycles(self, *arguments: object) -> tuple[int, str, str]:
        """Status and output; an error that ends the command is raised."""
        variables = environment(self._folder, self.port, **self._variables)
        done = CliRunner().invoke(
            cli, ["cycles", *map(str, arguments)], env=variables, catch_exceptions=False
        )
        return done.exit_code, done.stdout, done.stderr

    def run(self, *options: str) -> tuple[int, str, str]:
        return self.cycles("run", "lesions@1", "clinic", *options)


@pytest.fixture
def command_line(tmp_path: Path, settings: Settings) -> CommandLine:
    return CommandLine(tmp_path, settings)


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_a_cycle_is_run_and_replayed_from_the_command_line(
    command_line: CommandLine, store: Store, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    with command_line.monitor():
        wait_for(command_line.port, r'^lifelong_cycles_total\{.*outcome="keep"\} 1')
        predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
        status, said, _ = command_line.run()
        cycle = store.cycles.last(model.id, "clinic")
        assert (status, said.splitlines()[0]) == (0, str(cycle.id))
        assert f"lesions@1 in clinic, due {cycle.due_at.isoformat(timespec='seconds')}" in said
        assert "swap (600 samples)" in said
        assert "Published head 2." in said
        assert store.audit.list(1, action="cycles.run")[0].actor.startswith("cli:")
        # Shown without a round.
        wait_for(command_line.port, r'^lifelong_cycles_total\{.*outcome="swap"\} 1')
        same = 0, f"{cycle.id}\nthe same to the last bit\n", ""
        assert command_line.cycles("replay", cycle.id) == same


def test_the_exit_status_of_a_replay_tells_what_came_out(
    command_line: CommandLine, store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    cycle = run_cycle(store, settings, model, "clinic", datetime.now(UTC)).last
    status, said, complaint = command_line.cycles("replay", cycle.id)
    assert (status, said, "no monitor runs" in complaint) == (2, "", True)
    assert store.jobs.list() == []
    with store.database.write() as connection:
        change = sa.update(tables.cycles).where(tables.cycles.c.id == cycle.id)
        connection.execute(change.values(report=cycle.report | {"samples": 601}))
    with command_line.monitor() as process:
        until(lambda: store.monitors.list())
        status, said, _ = command_line.cycles("replay", cycle.id)
        assert (status, said.splitlines()[1]) == (1, "differs in 1 field")
        status, said, _ = command_line.cycles("replay", cycle.id, "--json")
        difference = {"field": "samples", "recorded": 601, "replayed": 600}
        assert (status, json.loads(said)["differences"]) == (1, [difference])
        with store.database.write() as connection:
            connection.execute(sa.delete(tables.predictions))
        status, said, complaint = command_line.cycles("replay", cycle.id)
        assert (status, said) == (2, "")
        assert "the cycle was not replayed. cycle: the log holds" in complaint
        status, said, _ = command_line.run("--json")
        assert (status, json.loads(said)["outcome"]) == (1, "skip")
        process.send_signal(signal.SIGSTOP)
        status, _, complaint = command_line.cycles("replay", cycle.id, "--timeout", "1s")
        process.send_signal(signal.SIGCONT)
        assert status == 2
        assert "is still queued after 1 s." in complaint
