"""Job kinds for the tests with Ray: `python ray_job_kinds.py ID` runs one on the cluster."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from lifelong_core.store import Job, Store
from lifelong_monitor.jobs.running.context import open_context
from lifelong_monitor.jobs.running.on_ray import main


def note_process(file: str) -> None:
    """Append the id of this process, and that of its node."""
    import ray

    with Path(file).open("a") as pids:
        pids.write(f"{os.getpid()} {ray.get_runtime_context().get_node_id()}\n")


def hang(store: Store, job: Job) -> dict[str, Any]:
    note_process(job.payload["pids"])
    time.sleep(600)
    return {}


def hang_once(store: Store, job: Job) -> dict[str, Any]:
    note_process(job.payload["pids"])
    if job.attempts == 1:
        time.sleep(600)
    return {"attempt": job.attempts, "password": os.environ["PGPASSWORD"] == job.payload["password"]}


def crash(store: Store, job: Job) -> dict[str, Any]:
    raise RuntimeError(f"bad logits [0.25, -1.5, 2.0] of {os.environ['PGPASSWORD']}")


def train(store: Store, job: Job) -> dict[str, Any]:
    """Two steps, each with a checkpoint; hangs behind the first."""
    note_process(job.payload["pids"])
    with open_context(store, job) as context:
        begun_at = int(context.checkpoint() or 0)
        context.log(f"begins at step {begun_at} on {context.device}")
        for step in range(begun_at + 1, 3):
            context.report({"phase": "training", "fraction": step / 2})
            context.save_checkpoint(str(step).encode())
            if step == 1:
                time.sleep(600)
        return {"begun_at": begun_at}


if __name__ == "__main__":
    kinds = {"hang": hang, "hang-once": hang_once, "crash": crash, "retrain": train}
    sys.exit(main(sys.argv[1], kinds.__getitem__))
