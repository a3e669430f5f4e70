"""A profile of our worker at 16 clients: what holds the interpreter lock."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.serving.layers import shares_by_layer
from benchmarks.serving.servers import ours
from benchmarks.serving.workloads import TINY
from lifelong_core.values.errors import LifelongError

PROGRAM = "py-spy"
CONNECTIONS = 16
SAMPLES_PER_SECOND = 500


def check_profiler() -> None:
    """Check that the program is installed.

    Raises:
        LifelongError: it is not.
    """
    if shutil.which(PROGRAM) is None:
        raise LifelongError("py-spy is missing: --profile needs it. Install it (pip install py-spy).")


def measure_profile(folder: Path, target: Path, *, is_quick: bool) -> dict[str, Any]:
    """Record `worker.txt` (collapsed stacks, for flame graphs) in the target folder; shares of the samples by layer.

    Raises:
        LifelongError: the profiler failed.
    """
    seconds = 5 if is_quick else 20
    target.mkdir(parents=True, exist_ok=True)
    file = target / "worker.txt"
    with ours(TINY, TINY.graph(folder)) as (service, server):
        server.load(CONNECTIONS, 2)
        (worker,) = service.workers()
        command = server.requests.command(CONNECTIONS, seconds + 4)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
            time.sleep(1)
            try:
                _record(worker.pid, file, seconds)
            finally:
                load.terminate()
    shares = shares_by_layer(file.read_text())
    print(
        f"\nsamples that hold the interpreter lock, {CONNECTIONS} connections ({file})\n| layer | share |\n|---|---|"
    )
    for layer, share in shares.items():
        print(f"| {layer} | {100 * share:.1f} % |", flush=True)
    return {"file": str(file), "shares": shares}


def _record(process: int, file: Path, seconds: int) -> None:
    options = ["--gil", "--format", "raw", "--rate", str(SAMPLES_PER_SECOND), "--duration", str(seconds)]
    command = [PROGRAM, "record", "--pid", str(process), "--output", str(file), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LifelongError(f"py-spy failed: {done.stderr.strip()[-500:]}")
