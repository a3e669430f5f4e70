"""Retraining: does it work under load, and does the knowledge base make it better?

    python -m benchmarks.retraining --quick [--json]
    python -m benchmarks.retraining --outcomes FILE [--workers N] [--json]

`--quick`: end to end with real processes on digits of 32 x 32 pixels. A service and a monitor run; a baseline is
trained, its monitor killed in the middle; each of the four scenarios is trained with a suggestion, exported, compared
with the promoted model, and goes through shadow, canary, promotion and roll-back while requests come in.

Without it: does the loop pay? Ten tasks (`benchmarks.retraining_tasks`), 90 training images each; every transfer
between two of them is trained once for each seed, and added to FILE, so that an interrupted run goes on. Then each task
is once the new one: a knowledge base that has never met it, neither as target nor as source, suggests what to transfer.
The first suggestion is compared with no transfer and with a random source.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.retraining_end_to_end import run
from benchmarks.retraining_loop import Choice, choices, difference, most_promising, summary
from benchmarks.retraining_transfers import SEEDS, all_cells, measure_all
from lifelong_core.develop.knowledge.entry import SCENARIOS

STRATEGIES = ("suggested", "closest", "random", "best")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="end to end with real processes")
    parser.add_argument("--outcomes", type=Path, help="file of the measured trainings; it goes on growing")
    parser.add_argument("--workers", type=int, default=1, help="trainings at once")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    if options.quick == (options.outcomes is not None):
        parser.error("give either --quick or --outcomes")
    began = time.perf_counter()
    machine = describe("torch", "timm", "onnxruntime")
    print(f"machine: {json.dumps(machine)}")
    found = end_to_end() if options.quick else does_it_pay(options.outcomes, options.workers)
    print(f"\n{time.perf_counter() - began:.0f} s")
    if options.json:
        print(json.dumps({"benchmark": "retraining", **machine, **found}))


def end_to_end() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        trained, load = run(Path(folder), say=print)
    print(f"\n{len(load.versions)} requests answered, {len(load.failures)} failed: {load.failures[:3]}")
    return {
        "trained": [asdict(one) for one in trained],
        "answered": len(load.versions),
        "failed": len(load.failures),
    }


def does_it_pay(file: Path, workers: int) -> dict[str, Any]:
    measured = measure_all(file, workers=workers, cells=all_cells())
    found = choices(measured)
    print(
        f"\n{SEEDS} seeds, gains in points of balanced accuracy over the uninformed baseline, 95 % intervals\n"
    )
    print(
        "| scenario | suggested | declined | closest | random | suggested - random | closest - random | best |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        print(_row(scenario, [one for one in found if one.scenario == scenario]))
    print(_row("mean of all", found))
    print(_row("highest expected gain", most_promising(found)))
    return {"choices": [asdict(one) for one in found]}


def _row(name: str, found: list[Choice]) -> str:
    figures = {strategy: _figure(summary(found, strategy)) for strategy in STRATEGIES}
    declined = sum(one.source is None for one in found)
    suggested, closest = (_figure(difference(found, one, "random")) for one in ("suggested", "closest"))
    return (
        f"| {name} | {figures['suggested']} | {declined} of {len(found)} | {figures['closest']} | {figures['random']} "
        f"| {suggested} | {closest} | {figures['best']} |"
    )


def _figure(figures: dict[str, float]) -> str:
    return f"{figures['mean']:+.2f} ({figures['low']:+.2f} to {figures['high']:+.2f})"


if __name__ == "__main__":
    main()
