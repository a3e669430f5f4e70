"""Jobs on a real Ray cluster of two nodes: they succeed, fail, lose their worker, and end with their monitor."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.runner import COMMANDS, JobRunner
from tests import databases
from tests.unit.monitor.jobs.test_runner import ended, is_alive, until
from tests.unit.monitor.population import BALANCED, add_model, draw, open_store, settings_for
from tests.unit.monitor.recommendations import attach

PASSWORD = "geheim-7c1f"
KINDS = (sys.executable, str(Path(__file__).with_name("ray_job_kinds.py")))
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimpleNamespace]:
    """Address and folder of a cluster with two nodes of one core each, on this machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        small = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        nodes = Cluster(initialize_head=True, head_node_args=small)
        try:
            nodes.add_node(num_cpus=1, object_store_memory=100 * 2**20)
            nodes.wait_for_nodes()
            yield SimpleNamespace(
                address=nodes.address, logs=Path(nodes.head_node.get_session_dir_path()) / "logs"
            )
        finally:
            nodes.shutdown()


@contextmanager
def monitor(store: Store, settings: Settings, command: Sequence[str] = KINDS) -> Iterator[None]:
    """A runner of a monitor."""
    stopping = threading.Event()
    exporter = Exporter(cycle_interval_seconds=3600)
    runner = JobRunner(store, settings, exporter.jobs, stopping=stopping, command=command)
    runner.start()
    try:
        yield
    finally:
        stopping.set()
        assert runner.join(30)


@pytest.fixture
def settings(tmp_path: Path, cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("LIFELONG_RAY_ADDRESS", cluster.address)
    changes = {"job_runner": "ray", "job_poll_seconds": 0.05, "ray_address": cluster.address}
    return settings_for(tmp_path, **changes)


def workers(file: Path) -> list[tuple[int, str]]:
    """Process and node of each task that has begun."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(line.split()[0]), line.split()[1]) for line in lines]


def test_a_validation_runs_on_the_cluster(settings: Settings) -> None:
    with open_store(settings) as store:
        model = add_model(store)
        attach(store)
        drawn = draw(BALANCED, 90, seed=7)
        payload = {
            "task": "lesions",
            "model": model.reference,
            "recommendation_version": 1,
            "replicates": 100,
        }
        content = LabelledSet(LabeledLogits(drawn.logits, drawn.labels, np.arange(90) // 2)).to_bytes()
        job = store.jobs.submit("validate", payload, labelled_set=content, actor="tests")
        with monitor(store, settings, COMMANDS["ray"]):
            done = ended(store, job)
        assert done.error is None
        assert (done.result or {})["samples"] == 90
        assert b'"EC"' in store.artifacts.get((done.result or {})["result"])


def test_a_job_whose_worker_is_killed_is_begun_again_and_ends_once(
    tmp_path: Path, settings: Settings, cluster: SimpleNamespace
) -> None:
    with databases.PostgreSQL() as server, databases.database("postgresql", tmp_path, server) as url:
        settings = settings.model_copy(update={"database_url": url, "lease_seconds": 2.0})
        with open_store(settings) as store:
            payload = {"pids": str(tmp_path / "pids"), "password": PASSWORD}
            job = store.jobs.submit("hang-once", payload, actor="tests")
            with monitor(store, settings), monitor(store, settings):
                ((worker, _),) = until(lambda: workers(tmp_path / "pids"))
                os.kill(worker, signal.SIGKILL)
                done = ended(store, job)
            assert (done.state, done.error) == ("succeeded", None)
            assert done.result == {"attempt": 2, "password": True}
            ends = [entry.action for entry in store.audit.list(10) if entry.subject == str(job.id)]
            assert ends == ["jobs.succeed", "jobs.submit"]
            assert len(workers(tmp_path / "pids")) == 2
    secrets = [file for file in cluster.logs.rglob("*") if file.is_file() and PASSWORD in content_of(file)]
    assert secrets == []


def content_of(file: Path) -> str:
    return file.read_bytes().decode(errors="replace")


def test_two_monitors_use_two_nodes_and_their_tasks_end_with_them(tmp_path: Path, settings: Settings) -> None:
    with open_store(settings) as store:
        file = tmp_path / "pids"
        jobs = [store.jobs.submit("hang", {"pids": str(file)}, actor="tests") for _ in range(2)]
        with monitor(store, settings), monitor(store, settings):
            until(lambda: len(workers(file)) == 2)
            assert len({node for _, node in workers(file)}) == 2
        until(lambda: not any(is_alive(worker) for worker, _ in workers(file)))
        left = [store.jobs.get(job.id) for job in jobs]
        assert [(job.state, job.attempts) for job in left] == [("queued", 0)] * 2


def test_a_crash_on_a_node_fails_the_job_without_secrets_and_data(settings: Settings) -> None:
    with open_store(settings) as store:
        job = store.jobs.submit("crash", {}, actor="tests")
        with monitor(store, settings):
            done = ended(store, job)
    said = (done.error or {}).get("message") or ""
    assert done.attempts == 1
    assert "it crashed" in said
    assert "bad logits [...] of ***" in said
