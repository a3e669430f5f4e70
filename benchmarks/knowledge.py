"""Queries of a knowledge base of 1,000 and 10,000 tasks: all bKLD distances to one target.

    python -m benchmarks.knowledge [--json] [--quick]

Fingerprints are synthetic histograms of 10,000 images, 512 features in 100 bins: gamma distributions whose
parameters differ between tasks and features, so that tasks have near and far neighbours. Each figure is the median of
the repetitions on files that are in the page cache; the targets of the project are 10 ms (1,000 tasks) and 200 ms
(10,000).

The peers are the definition, task by task (`lifelong_core.develop.fingerprints`), and numpy's product with float32
rows of all tasks in memory, which takes twice the memory of the index.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.machine import describe
from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, Weighting
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.index_file import IndexFile
from lifelong_core.develop.knowledge.query_index import QueryIndex

FEATURES, BINS, SAMPLES = 512, 100, 10_000
TASKS, QUICK_TASKS = (1_000, 10_000), (200, 1_000)
TARGETS = {1_000: 10.0, 10_000: 200.0}
"""Milliseconds by number of tasks."""
NEIGHBOURS = 20
WEIGHTINGS: tuple[Weighting, ...] = ("target", "uniform", "source")
COMPARED = 200
"""Tasks that the definition is timed on."""
SEED = 20261123


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="200 and 1,000 tasks, few repetitions")
    options = parser.parse_args()
    repetitions = 5 if options.quick else 25
    report: dict[str, Any] = {"benchmark": "knowledge", "machine": describe("numpy"), "seed": SEED}
    report |= {"features": FEATURES, "bins": BINS, "samples": SAMPLES, "sizes": {}}
    for tasks in QUICK_TASKS if options.quick else TASKS:
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(Path(folder), tasks, repetitions)
        show(tasks, figures)
        report["sizes"][str(tasks)] = figures
    if options.json:
        print(json.dumps(report))


def measure(folder: Path, tasks: int, repetitions: int) -> dict[str, Any]:
    names = {f"task{number:05}": number for number in range(tasks)}
    digests = {name: make_fingerprint(number).digest for name, number in names.items()}
    generating = 0.0

    def load(name: str) -> HistogramFingerprint:
        nonlocal generating
        started = time.perf_counter()
        fingerprint = make_fingerprint(names[name])
        generating += time.perf_counter() - started
        return fingerprint

    started = time.perf_counter()
    file = IndexFile.open(folder, digests, load)
    built = time.perf_counter() - started - generating
    opened = milliseconds(lambda: IndexFile.open(folder, digests, load), 3)
    target = make_fingerprint(tasks)
    figures: dict[str, Any] = {
        "build_seconds": built,
        "open_milliseconds": opened["median"],
        "file_megabytes": next(folder.glob("*.index")).stat().st_size / 1e6,
        "target_milliseconds": TARGETS.get(tasks),
        "threads": {},
    }
    for threads in sorted({1, min(2, os.cpu_count() or 1)}):
        index = QueryIndex(file, threads=threads)
        figures["threads"][str(threads)] = {
            weighting: {
                "distances": milliseconds(lambda: index.distances(target, weighting), repetitions),  # noqa: B023
                "nearest": milliseconds(lambda: index.nearest(target, NEIGHBOURS, weighting), repetitions),  # noqa: B023
            }
            for weighting in WEIGHTINGS
        }
    compared = [load(name) for name in list(names)[:COMPARED]]
    method = BinnedKLD("target")
    figures["definition_milliseconds"] = milliseconds(lambda: method.distances(compared, target), 3)[
        "median"
    ] * (tasks / len(compared))
    figures["float32_rows_milliseconds"] = measure_rows(tasks, repetitions)
    wanted = np.argsort(method.distances(compared, target), kind="stable")
    everything = [one.task for one in index.nearest(target, tasks)]
    ours = [names[name] for name in everything if names[name] < len(compared)]
    figures["order_is_that_of_the_definition"] = ours == wanted.tolist()
    return figures


def make_fingerprint(number: int) -> HistogramFingerprint:
    """Gamma-distributed features of one of 50 families of tasks."""
    family = np.random.default_rng([SEED, number % 50])
    own = np.random.default_rng([SEED, 50, number])
    shape = family.gamma(2.0, 0.5, FEATURES) * own.lognormal(0.0, 0.1, FEATURES)
    scale = family.gamma(4.0, 0.25, FEATURES) * own.lognormal(0.0, 0.1, FEATURES)
    edges = np.linspace(0.0, 5.0, BINS + 1)[1:-1]
    # A fast approximation of the gamma distribution function, since the figures do not depend on it.
    cube = (edges / (shape * scale)[:, None]) ** (1 / 3)
    variance = 1 / (9 * np.maximum(shape, 0.1))[:, None]
    below = stats.norm.cdf((cube - (1 - variance)) / np.sqrt(variance))
    cumulated = np.concatenate([np.zeros((FEATURES, 1)), below, np.ones((FEATURES, 1))], axis=1)
    counts = np.diff(np.rint(cumulated * SAMPLES).astype(np.int64), axis=1)
    means = shape * scale
    return HistogramFingerprint("0" * 64, SAMPLES, counts, means, means / means.sum())


def measure_rows(tasks: int, repetitions: int) -> float:
    """Milliseconds of numpy's product with float32 rows."""
    rows = np.full((tasks, FEATURES * BINS), 0.01, dtype=np.float32)
    query = np.full(FEATURES * BINS, 0.01, dtype=np.float32)
    return milliseconds(lambda: rows @ query, repetitions)["median"]


def milliseconds(work: Callable[[], object], repetitions: int) -> dict[str, float]:
    """Time on the clock, and of all threads on the processor: the latter says little of other processes."""
    work()
    seconds: list[float] = []
    processor: list[float] = []
    for _ in range(repetitions):
        started, busy = time.perf_counter(), time.process_time()
        work()
        seconds.append(time.perf_counter() - started)
        processor.append(time.process_time() - busy)
    figures = {"median": np.median(seconds), "minimum": min(seconds), "processor": np.median(processor)}
    return {name: float(value) * 1e3 for name, value in figures.items()}


def show(tasks: int, figures: dict[str, Any]) -> None:
    goal = figures["target_milliseconds"]
    print(f"\n{tasks} tasks" + (f" (target: {goal:.0f} ms)" if goal else ""))
    print(
        f"  file {figures['file_megabytes']:.0f} MB, built in {figures['build_seconds']:.1f} s, "
        f"opened and verified in {figures['open_milliseconds']:.0f} ms"
    )
    for threads, by_weighting in figures["threads"].items():
        for weighting, work in by_weighting.items():
            cells = "  ".join(
                f"{name} {cell['median']:7.1f} ms (best {cell['minimum']:7.1f})"
                for name, cell in work.items()
            )
            print(f"  threads {threads}, weights {weighting:8} {cells}")
    print(f"  definition, one by one: {figures['definition_milliseconds']:.0f} ms")
    print(f"  float32 rows, numpy:    {figures['float32_rows_milliseconds']:.1f} ms")
    print(f"  order is that of the definition: {figures['order_is_that_of_the_definition']}")


if __name__ == "__main__":
    main()
