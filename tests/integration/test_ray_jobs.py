"""Jobs on a real Ray cluster of two nodes: they succeed, fail, lose their worker, and end with their monitor."""

import os
import signal
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.store import Store
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.running.runner import COMMANDS, JobRunner
from tests import databases
from tests.unit.develop.features import conftest as extractors
from tests.unit.monitor.daemons import until
from tests.unit.monitor.jobs.test_runner import ended, is_alive
from tests.unit.monitor.population import CLASS_NAMES, COSTS, open_store, settings_for

PASSWORD = "geheim-7c1f"
PATIENCE = 180.0
"""Seconds: on a busy machine, Ray needs long to start its processes."""
KINDS = (sys.executable, str(Path(__file__).with_name("ray_job_kinds.py")))
weights_file, backbone, extractor = extractors.weights_file, extractors.backbone, extractors.extractor
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


def test_an_upload_is_fingerprinted_on_the_cluster(
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    extractor: ExtractorReference,
    weights_file: Path,
) -> None:
    (tmp_path / "extractor.npz").write_bytes(extractor.to_bytes())
    monkeypatch.setenv("LIFELONG_FINGERPRINT_EXTRACTOR", str(tmp_path / "extractor.npz"))
    monkeypatch.setenv("LIFELONG_FINGERPRINT_WEIGHTS", str(weights_file))
    from tests.unit.develop.features.drawn import draw_images  # which imports torch

    draw_images(tmp_path / "images", 30, classes=("benign", "unclear", "malignant"))
    images = BytesIO()
    with tarfile.open(fileobj=images, mode="w") as archive:
        archive.add(tmp_path / "images", arcname=".")
    with open_store(settings) as store:
        store.tasks.add("lesions", CLASS_NAMES, COSTS, actor="tests")
        payload = {"task": "lesions", "archive": "tar", "samples": 20}
        job = store.jobs.submit("fingerprint", payload, upload=images, actor="ann")
        with monitor(store, settings, COMMANDS["ray"]):
            done = ended(store, job, seconds=PATIENCE)
        assert done.error is None
        (record,) = store.knowledge.get("lesions").fingerprints
        assert [one["digest"] for one in (done.result or {})["fingerprints"]] == [record.digest]
        assert (record.samples, record.extractor) == (20, extractor.digest)
        assert not store.artifacts.has(job.payload["upload"])


def test_a_job_whose_worker_is_killed_is_begun_again_and_ends_once(
    tmp_path: Path, settings: Settings, cluster: SimpleNamespace
) -> None:
    with databases.PostgreSQL() as server, databases.database("postgresql", tmp_path, server) as url:
        settings = settings.model_copy(update={"database_url": url, "lease_seconds": 2.0})
        with open_store(settings) as store:
            payload = {"pids": str(tmp_path / "pids"), "password": PASSWORD}
            job = store.jobs.submit("hang-once", payload, actor="tests")
            with monitor(store, settings), monitor(store, settings):
                ((worker, _),) = until(lambda: workers(tmp_path / "pids"), seconds=PATIENCE)
                os.kill(worker, signal.SIGKILL)
                done = ended(store, job, seconds=PATIENCE)
            assert (done.state, done.error) == ("succeeded", None)
            assert done.result == {"attempt": 2, "password": True}
            ends = [entry.action for entry in store.audit.list(10) if entry.subject == str(job.id)]
            assert ends == ["jobs.succeed", "jobs.submit"]
            assert len(workers(tmp_path / "pids")) == 2
    secrets = [file for file in cluster.logs.rglob("*") if file.is_file() and PASSWORD in content_of(file)]
    assert secrets == []


def test_a_training_whose_worker_is_killed_goes_on_from_its_checkpoint_and_is_cancelled_like_others(
    tmp_path: Path, settings: Settings
) -> None:
    changes = {"training_devices": ("cpu",), "lease_seconds": 2.0}
    settings, file = settings.model_copy(update=changes), tmp_path / "pids"
    with open_store(settings) as store:
        job = store.jobs.submit("retrain", {"pids": str(file)}, actor="tests")
        with monitor(store, settings):
            until(lambda: store.jobs.checkpoint(job) == b"1" and store.jobs.log(job.id), seconds=PATIENCE)
            os.kill(workers(file)[0][0], signal.SIGKILL)
            done = ended(store, job, seconds=PATIENCE)
            assert (done.result, done.progress) == ({"begun_at": 1}, {"phase": "training", "fraction": 1.0})
            lines = [line.text for line in store.jobs.log(job.id)]
            assert lines == ["begins at step 0 on cpu", "begins at step 1 on cpu"]
            other = store.jobs.submit("retrain", {"pids": str(file)}, actor="tests")
            until(lambda: len(workers(file)) == 3, seconds=PATIENCE)
            store.jobs.cancel(other.id, actor="tests")
            assert ended(store, other, seconds=PATIENCE).state == "cancelled"
            until(lambda: not is_alive(workers(file)[2][0]))


def content_of(file: Path) -> str:
    return file.read_bytes().decode(errors="replace")


def test_two_monitors_use_two_nodes_and_their_tasks_end_with_them(tmp_path: Path, settings: Settings) -> None:
    with open_store(settings) as store:
        file = tmp_path / "pids"
        jobs = [store.jobs.submit("hang", {"pids": str(file)}, actor=actor) for actor in ("ann", "bob")]
        with monitor(store, settings), monitor(store, settings):
            until(lambda: len(workers(file)) == 2, seconds=PATIENCE)
            assert len({node for _, node in workers(file)}) == 2
        until(lambda: not any(is_alive(worker) for worker, _ in workers(file)))
        left = [store.jobs.get(job.id) for job in jobs]
        assert [(job.state, job.attempts) for job in left] == [("queued", 0)] * 2


def test_a_crash_on_a_node_fails_the_job_without_secrets_and_data(settings: Settings) -> None:
    with open_store(settings) as store:
        job = store.jobs.submit("crash", {}, actor="tests")
        with monitor(store, settings):
            done = ended(store, job, seconds=PATIENCE)
    said = (done.error or {}).get("message") or ""
    assert done.attempts == 1
    assert "it crashed" in said
    assert "bad logits [...] of ***" in said
