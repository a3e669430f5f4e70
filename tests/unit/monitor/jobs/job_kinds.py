"""Job kinds for the tests of the runner: `python job_kinds.py ID` runs a small one."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from lifelong_core.store import Job, Store
from lifelong_monitor.jobs.__main__ import main
from lifelong_monitor.jobs.running.context import open_context


def echo(store: Store, job: Job) -> dict[str, Any]:
    sys.stdout.write("a library that prints what it does\n")
    sys.stdout.flush()
    modesty = Path("/proc/self/oom_score_adj").read_text().strip()
    return {"said": store.artifacts.put(job.payload["say"].encode()), "nice": os.nice(0), "oom": int(modesty)}


def train(store: Store, job: Job) -> dict[str, Any]:
    """Counts the steps in its checkpoints; hangs at some steps, unless it begins there."""
    with open_context(store, job) as context:
        begun_at = step = int(context.checkpoint() or 0)
        with Path(job.payload["pids"]).open("a") as pids:
            pids.write(f"{os.getpid()}\n")
        cache = context.folder / "cache"
        is_cached = cache.exists()
        cache.write_bytes(b"images")
        context.log(f"begins at step {begun_at} on {context.device}")
        while step < job.payload["steps"]:
            step += 1
            context.report(
                {"phase": "training", "fraction": step / job.payload["steps"], "loss": float("nan")}
            )
            context.save_checkpoint(str(step).encode())
            if step in job.payload["hang_at"]:
                time.sleep(600)
        return {"begun_at": begun_at, "steps": step, "is_cached": is_cached}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], {"echo": echo, "retrain": train}.__getitem__))
