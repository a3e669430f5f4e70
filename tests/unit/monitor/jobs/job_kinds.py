"""What the tests of the runner let it start: `python job_kinds.py ID`, which does a small kind of work."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lifelong_core.store import Store
from lifelong_monitor.jobs.__main__ import main


def echo(store: Store, payload: Mapping[str, Any]) -> dict[str, Any]:
    sys.stdout.write("a library that prints what it does\n")
    sys.stdout.flush()
    modesty = Path("/proc/self/oom_score_adj").read_text().strip()
    return {"said": store.artifacts.put(payload["say"].encode()), "nice": os.nice(0), "oom": int(modesty)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], {"echo": echo}.__getitem__))
