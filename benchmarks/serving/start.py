"""From the start to ready, and the memory of a worker."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.servers import running_ours
from benchmarks.serving.workloads import TINY, install
from benchmarks.serving.wrk import prepared

STARTS = 3
CONNECTIONS = 16


def measure_start(folder: Path, *, is_quick: bool) -> dict[str, Any]:
    """Seconds until `/readyz` answers 200, and resident memory of the worker before and after load, in megabytes.

    The served graph has some kilobytes, so the memory is that of a worker without a model.
    """
    seconds: list[float] = []
    before: list[float] = []
    after: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        installed = Path(name)
        token = install(installed, TINY, TINY.graph(folder))
        for _ in range(STARTS):
            with running_ours(installed, token, workers=1, threads=1) as service:
                seconds.append(service.wait_until_ready())
                (worker,) = service.workers()
                before.append(worker.memory_info().rss / 1e6)
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "image/jpeg"}
                with prepared(service.port, "/v1/predict", headers, TINY.jpegs()) as requests:
                    requests.send(CONNECTIONS, 1 if is_quick else 5)
                after.append(worker.memory_info().rss / 1e6)
    found = {
        "ready_seconds": float(np.median(seconds)),
        "ready_seconds_of_all": seconds,
        "ready_megabytes": float(np.median(before)),
        "loaded_megabytes": float(np.median(after)),
    }
    print(
        f"\nready after {found['ready_seconds']:.2f} s, the median of {STARTS};"
        f" resident memory of the worker {found['ready_megabytes']:.0f} MB, after load"
        f" {found['loaded_megabytes']:.0f} MB",
        flush=True,
    )
    return found
