"""The whole service on a GPU: clients that send JPEG files, with workers that share the GPU."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_graphs import CLASSES, Architecture, jpeg
from benchmarks.serving.wrk import prepared
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Scope, Store, promote_calibrated, register_calibration
from tests.integration.processes import running_service

REPOSITORY = Path(__file__).resolve().parents[1]
_CASES = 60
"""Calibration cases of each class; their logits are made up, which no time depends on."""


def measure_service(
    architecture: Architecture,
    graph: Path,
    *,
    providers: Sequence[str],
    workers: int,
    connections: int,
    source_edge: int,
    seconds: float,
) -> dict[str, Any]:
    """Answers per second and latency of `/v1/predict`; each connection sends its next image when it has an answer."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        token = _install(folder, architecture, graph)
        files = [jpeg(source_edge, seed) for seed in range(8)]
        environment = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
        with running_service(
            folder,
            token,
            environment=environment,
            workers=workers,
            execution_providers=json.dumps(list(providers)),
            # The measurement is one of throughput: no request is refused because it would wait.
            maximum_wait_seconds=60,
            queue_capacity=4096,
        ) as service:
            service.wait_for_workers(workers)
            ready = service.send("GET", "/readyz").body
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "image/jpeg"}
            with prepared(service.port, "/v1/predict", headers, files) as requests:
                requests.send(connections, seconds / 4)
                load = requests.send(connections, seconds)
            service.terminate()
    return {
        "workers": workers,
        "connections": connections,
        "images_per_second": load.per_second,
        "p50_ms": load.p50_ms,
        "p99_ms": load.p99_ms,
        "faults": load.refused + load.faults,
        "providers": sorted(set(ready["execution_providers"].values())),
    }


def _install(folder: Path, architecture: Architecture, graph: Path) -> str:
    """An installation with one promoted model; returns a token."""
    settings = Settings(data_directory=folder / "data")
    Store.migrate(settings.resolved_database_url)
    names = [f"class-{number}" for number in range(CLASSES)]
    labels = np.tile(np.arange(CLASSES), _CASES)
    noise = np.random.default_rng(0).normal(size=(labels.size, CLASSES))
    logits = (2 * np.eye(CLASSES)[labels] + noise).astype(np.float32)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor="benchmark")
        _, token = store.tokens.create("admin", [Scope.ADMIN], actor="benchmark")
        costs = (1 - np.eye(CLASSES)).tolist()
        store.tasks.add("task", names, costs, actor="benchmark")
        model = store.models.add(
            "task",
            "model",
            kind="onnx",
            onnx=graph.read_bytes(),
            preprocessing=architecture.preprocessing,
            actor="benchmark",
        )
        register_calibration(store, model.reference, LabeledLogits(logits, labels), actor="benchmark")
        if store.tasks.get("task").promoted_model_id is None:
            promote_calibrated(store, model.reference, actor="benchmark")
    return token
