"""Processor time and memory of one `lifelong adapt`, by the number of classes.

    python -m benchmarks.many_classes [--json] [--quick]

Each row is a process of its own, as a person starts it: import, first head, the judgement with both heads' estimated
performance, and the report. Logits are Gaussian, of 4 standard deviations between classes; the window has another
prevalence, so that a candidate is fitted and compared. There is no peer: libraries for quantification do a part of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import describe

SEED = 0
CLASSES = (2, 8, 30, 120, 300, 1000)
CASES = 3600
"""Calibration cases, but at least CASES_PER_CLASS of each class."""
CASES_PER_CLASS = 10
SAMPLES = 5000
_SEPARATION = 4.0


def measure(classes: int) -> dict[str, float]:
    """One `lifelong adapt`: cases, seconds of processor time (user and system), of the clock, and MiB."""
    rng = np.random.default_rng(SEED)
    labels = np.repeat(np.arange(classes), max(CASES // classes, CASES_PER_CLASS))
    drawn = rng.choice(classes, size=SAMPLES, p=rng.dirichlet(np.full(classes, 0.3)))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("calibration.npz", "window.npy")]
        np.savez(files[0], logits=_logits(labels, classes, rng), labels=labels)
        np.save(files[1], _logits(drawn, classes, rng))
        command = [sys.executable, "-m", "lifelong", "adapt", *map(str, files), "--json"]
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{' '.join(command)} failed")
    return {
        "classes": classes,
        "cases": labels.size,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "seconds": time.perf_counter() - began,
        "mebibytes": usage.ru_maxrss / 1024,
    }


def _logits(labels: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    logits = rng.normal(size=(labels.size, classes))
    logits[np.arange(labels.size), labels] += _SEPARATION
    return logits.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="up to 120 classes")
    arguments = parser.parse_args()
    machine = describe("numpy", "scipy")
    print(f"machine: {json.dumps(machine)}\nseed {SEED}; {SAMPLES:,} samples in the window\n")
    print("| classes | calibration cases | processor time, s | of it system, s | clock, s | memory, MiB |")
    print("|---|---|---|---|---|---|")
    rows: list[dict[str, float]] = []
    for classes in CLASSES[: 4 if arguments.quick else None]:
        one = measure(classes)
        rows.append(one)
        total = one["user_seconds"] + one["system_seconds"]
        print(
            f"| {classes:,} | {one['cases']:,} | {total:.1f} | {one['system_seconds']:.1f} | {one['seconds']:.1f} |"
            f" {one['mebibytes']:.0f} |",
            flush=True,
        )
    if arguments.json:
        print(json.dumps({"benchmark": "many_classes", "machine": machine, "seed": SEED, "figures": rows}))


if __name__ == "__main__":
    main()
