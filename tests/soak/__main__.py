"""A complete installation under load for a long time, and the memory growth of its processes.

    python -m tests.soak [--minutes 30] [--quick] [--json]

It prints RSS and USS (medians), and the USS that is kept between cycles. Exit status 1: a process has grown. The quick
form has a second monitor with a deliberate leak, which must be detected.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import describe
from tests.soak.memory import KEPT_SHARE, between
from tests.soak.soak import QUICK, Plan, Soaked, plan_of, soak

ROWS = 6
MOST_GROWTH = 0.05
"""Largest growth of the unique memory that a process keeps, from the first to the last quarter after the warm-up."""
MOST_QUICK_GROWTH = 0.1
"""The same for the quick form of a minute, in which one peak counts."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--quick", action="store_true", help="the bounded form of CI")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object of figures as the last line"
    )
    arguments = parser.parse_args()
    # SIGTERM also ends the processes of the installation.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not arguments.quick:
        os.environ["TEST_DEADLINES"] = "true"
    plan = QUICK if arguments.quick else plan_of(arguments.minutes)
    most = MOST_QUICK_GROWTH if arguments.quick else MOST_GROWTH
    _say(f"{describe()}")
    rows = iter(range(1, ROWS + 1))
    due = next(rows)

    def say(soaked: Soaked, seconds: float) -> None:
        nonlocal due
        if seconds >= due * plan.seconds / ROWS:
            _say_row(soaked, plan, due)
            due = next(rows)

    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), plan, say=say)
    _say_row(soaked, plan, ROWS)
    grown = soaked.growth()
    for name, share in grown.items():
        _say(f"{name}: {100 * share:+.1f} % after the warm-up of {soaked.warm_at:.0f} s")
    _say(f"{soaked.requests} requests, {len(soaked.failures)} failures, cycles: {soaked.cycles}")
    for failure in sorted(set(soaked.failures))[:5]:
        _say(f"  {failure}")
    if arguments.json:
        _say(json.dumps({"growth": grown, "cycles": soaked.cycles, "requests": soaked.requests}))
    return int(any((share > most) != name.startswith("leaking") for name, share in grown.items()))


def _say_row(soaked: Soaked, plan: Plan, row: int) -> None:
    length = plan.seconds / ROWS
    parts = [f"{(row - 1) * length / 60:5.1f} to {row * length / 60:4.1f} min"]
    for name, samples in soaked.memory.items():
        begin, end = (row - 1) * length, row * length
        usual, kept = (between(samples, begin, end, share=share) for share in (50, KEPT_SHARE))
        parts.append(f"{name} {usual.resident:.1f} / {usual.unique:.1f} / {kept.unique:.1f} MB")
    _say("; ".join(parts))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
