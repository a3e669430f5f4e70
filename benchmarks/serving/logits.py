"""`/v1/logits`: decisions about batches of logits, as JSON and as npy."""

import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.rounds import Figures, in_turns, medians
from benchmarks.serving.servers import figures_of, ours, processor_seconds
from benchmarks.serving.workloads import CLASSES, LOGITS_MODEL, TINY
from benchmarks.serving.wrk import Requests, prepared
from tests.integration.processes import Service

ROWS = 64
CONNECTIONS = 4
BODIES = 20


def measure_logits(folder: Path, *, is_quick: bool) -> dict[str, Any]:
    """Decisions per second, and per second of processor time: the rate of one core that does nothing else."""
    rounds, seconds = (2, 2) if is_quick else (4, 5)
    with ExitStack() as stack:
        service, _ = stack.enter_context(ours(TINY, TINY.graph(folder)))
        arms: dict[str, Callable[[], Figures]] = {}
        for kind, (media_type, encode) in _ENCODINGS.items():
            headers = {"Authorization": f"Bearer {service.token}", "Content-Type": media_type}
            path = f"/v1/logits?model={LOGITS_MODEL}" if kind == "npy" else "/v1/logits"
            bodies = [encode(rows) for rows in _batches()]
            requests = stack.enter_context(prepared(service.port, path, headers, bodies))
            arms[kind] = partial(_load, service, requests, seconds)
            arms[kind]()
        found = {kind: medians(some) for kind, some in in_turns(arms, rounds).items()}
    print(f"\n/v1/logits, {ROWS} rows, {CONNECTIONS} connections, one worker")
    print(
        "| body | decisions/s | per second of processor time | p50 ms | p99 ms | refused |\n|---|---|---|---|---|---|"
    )
    for kind, one in found.items():
        print(
            f"| {kind} | {one['decisions_per_second']:,.0f} | {one['decisions_per_core']:,.0f} |"
            f" {one['p50_ms']:.1f} | {one['p99_ms']:.1f} | {one['refused']:.0f} |",
            flush=True,
        )
    return found


def _load(service: Service, requests: Requests, seconds: float) -> Figures:
    before = processor_seconds(service)
    load = requests.send(CONNECTIONS, seconds)
    processor = processor_seconds(service) - before
    decisions = load.answered * ROWS
    return figures_of(load, processor, load.per_second) | {
        "decisions_per_second": decisions / load.seconds,
        "decisions_per_core": decisions / processor,
    }


def _batches() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.round(rng.normal(size=(ROWS, CLASSES)), 4).astype(np.float32) for _ in range(BODIES)]


def _as_json(rows: np.ndarray) -> bytes:
    numbers = np.round(rows.astype(np.float64), 4).tolist()
    return json.dumps({"logits": numbers, "model": LOGITS_MODEL}).encode()


def _as_npy(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


_ENCODINGS: dict[str, tuple[str, Callable[[np.ndarray], bytes]]] = {
    "JSON": ("application/json", _as_json),
    "npy": ("application/x-npy", _as_npy),
}
