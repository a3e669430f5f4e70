"""Job kinds for the tests of the runner: `python job_kinds.py ID` runs a small one."""

import os
import sys
from pathlib import Path
from typing import Any

from lifelong_core.store import Job, Store
from lifelong_monitor.jobs.__main__ import main


def echo(store: Store, job: Job) -> dict[str, Any]:
    sys.stdout.write("a library that prints what it does\n")
    sys.stdout.flush()
    modesty = Path("/proc/self/oom_score_adj").read_text().strip()
    return {"said": store.artifacts.put(job.payload["say"].encode()), "nice": os.nice(0), "oom": int(modesty)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], {"echo": echo}.__getitem__))
