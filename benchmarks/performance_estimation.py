"""Performance without labels: error and coverage beside NannyML's CBPE and the methods of Li et al.

    python -m benchmarks.performance_estimation [--json] [--quick] [--rounds N] [--nannyml PYTHON]

Each round draws a calibration set anew from the pool of a task, and windows of 500 and 2,000 samples from the rest:
with a random prevalence (Dirichlet, parameters 1), alone or with noise, scaled logits, or the logit of one class moved.
The truth is that of the window itself. `--nannyml` names a Python that has nannyml and statsmodels installed (they need
an environment of their own); without it the rest still runs.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import SHARED, Task, class_pairs, draw, redrawn, shared_task, trained_tasks
from benchmarks.machine import describe
from lifelong_core.deploy import LabeledLogits, PostProcessingHead, estimate_performance, fit_head, quantifier
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS
from lifelong_core.deploy.performance.estimate_performance import PERFORMANCE_METHODS
from lifelong_core.deploy.performance.performance_estimate import ASSUMPTIONS
from lifelong_core.deploy.performance.posteriors import JudgedWindow
from lifelong_core.values.arrays import centre_rows, softmax

SEED = 17
SIZES = (500, 2000)
SHIFTS = ("prevalence", "noise", "scale", "class")
CBPE = "NannyML CBPE"
AUTO = "auto"
FEW_ROUNDS = 3
"""of tasks with 100 classes, which take long"""
SPEED_SAMPLES = 100_000

Row = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """A window with known labels and the answers of two heads."""

    shift: str
    size: int
    logits: np.ndarray
    accuracy: float
    expected_cost: float
    """of the head with unequal costs"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print tables, and with `--json` one JSON object as the last line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.performance_estimation", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three tasks, three rounds")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--nannyml", type=Path, help="a Python with nannyml and statsmodels")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    rounds = 3 if options.quick else options.rounds
    for task in tasks(quick=options.quick):
        begin = time.perf_counter()
        for number in range(min(rounds, FEW_ROUNDS) if task.classes > 50 else rounds):
            rows += measure(task, np.random.default_rng((SEED, number)), options.nannyml)
        print(f"{task.name}: {time.perf_counter() - begin:.0f} s", flush=True)
    found = {**figures(rows), "seconds": speeds(), "machine": describe("numpy", "scipy"), "seed": SEED}
    show(found)
    if options.json:
        print(json.dumps(found))


def tasks(*, quick: bool) -> Iterator[Task]:
    """The shared tasks, their most confused pairs of classes, and networks trained here."""
    names = SHARED[:2] if quick else SHARED
    for name in names:
        task = shared_task(name)
        yield task
        if task.classes > 2:
            yield from class_pairs(task, 1 if quick else 2)
    if not quick:
        yield from trained_tasks()


def measure(task: Task, rng: np.random.Generator, nannyml: Path | None) -> list[Row]:
    """Errors of every method on the windows of one round."""
    pool = task.pool
    calibration, population = redrawn(pool, task.calibration.samples / pool.samples, rng)
    fitted = quantifier("auto").fit(calibration)
    costs = rng.integers(1, 10, size=(task.classes, task.classes)).astype(np.float64)
    np.fill_diagonal(costs, 0)
    plain, unequal = fit_head(calibration, 1 - np.eye(task.classes)), fit_head(calibration, costs)
    windows = [
        judge(draw_window(calibration, population, shift, size, rng), plain, unequal, shift, size)
        for size in SIZES
        for shift in SHIFTS
    ]
    rows: list[Row] = []

    def note(
        window: Judged, method: str, metric: str, value: float, interval: tuple[float, float] | None
    ) -> None:
        truth = window.accuracy if metric == "AC" else window.expected_cost
        unit = 1.0 if metric == "AC" else float(costs.max())
        row = {
            "task": task.name,
            "shift": window.shift,
            "size": window.size,
            "method": method,
            "metric": metric,
        }
        covered = None if interval is None else interval[0] <= truth <= interval[1]
        rows.append(row | {"error": 100 * abs(value - truth) / unit, "covered": covered})

    for window in windows:
        for method in (AUTO, *ASSUMPTIONS):
            for head, metric in ((plain, "AC"), (unequal, "EC")):
                one = estimate_performance(fitted, window.logits, head, method=method).estimates[metric]
                note(window, method, metric, one.value, (one.low, one.high))
        for method, kind in CONFIDENCE_METHODS.items():
            probabilities = kind.fit(calibration).class_probabilities(window.logits)
            for head, metric in ((plain, "AC"), (unequal, "EC")):
                judged = JudgedWindow.of(window.logits, head)
                confusion = judged.confusion(probabilities, task.classes)
                value = float(np.trace(confusion) if metric == "AC" else (confusion * costs).sum())
                note(window, method, metric, value, None)
    if nannyml is not None:
        accuracies, expected = ask_nannyml(
            nannyml, calibration, plain, unequal, [one.logits for one in windows]
        )
        for window, accuracy, cost in zip(windows, accuracies.tolist(), expected.tolist(), strict=True):
            note(window, CBPE, "AC", accuracy, None)
            note(window, CBPE, "EC", cost, None)
    return rows


def draw_window(
    calibration: LabeledLogits, population: LabeledLogits, shift: str, size: int, rng: np.random.Generator
) -> LabeledLogits:
    """A window with a random prevalence, and beside it another shift."""
    window = draw(population, rng.dirichlet(np.ones(population.classes)), size, rng)
    logits, spread = window.logits.astype(np.float64), float(centre_rows(calibration.logits).std())
    if shift == "noise":
        logits = logits + rng.normal(scale=0.5 * spread, size=logits.shape)
    elif shift == "scale":
        logits = logits * rng.choice([0.6, 0.8, 1.25, 1.6])
    elif shift == "class":
        logits[:, rng.integers(population.classes)] += 0.5 * spread
    return LabeledLogits(logits.astype(np.float32), window.labels)


def judge(
    window: LabeledLogits, plain: PostProcessingHead, unequal: PostProcessingHead, shift: str, size: int
) -> Judged:
    """The window with the true figures of both heads."""
    accuracy = float((plain.apply(window.logits).decisions == window.labels).mean())
    cost = float(unequal.costs[window.labels, unequal.apply(window.logits).decisions].mean())
    return Judged(shift, size, window.logits, accuracy, cost)


def ask_nannyml(
    python: Path,
    calibration: LabeledLogits,
    plain: PostProcessingHead,
    unequal: PostProcessingHead,
    windows: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """CBPE's accuracy of the first head's decisions and expected cost of the second's, for each window."""
    found: list[np.ndarray] = []
    for head in (plain, unequal):
        arrays = {
            "labels": calibration.labels,
            "probabilities": softmax(centre_rows(calibration.logits)),
            "decisions": head.apply(calibration.logits).decisions,
            "costs": head.costs[np.newaxis],
        }
        for number, logits in enumerate(windows):
            arrays[f"window_probabilities_{number}"] = softmax(centre_rows(logits))
            arrays[f"window_decisions_{number}"] = head.apply(logits).decisions
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder) / "given.npz", Path(folder) / "answer.npz"
            np.savez(given, **arrays)
            script = Path(__file__).with_name("nannyml_peer.py")
            subprocess.run(
                [python, "-I", "-W", "ignore", script, given, answer],
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "NML_DISABLE_USAGE_LOGGING": "1"},
            )
            with np.load(answer) as answers:
                found.append(answers["accuracy"] if head is plain else answers["expected_cost"][:, 0])
    return found[0], found[1]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Mean errors by shift, size, metric and method; ratios of auto to others; coverage of the intervals."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    errors: dict[str, Any] = {}
    for metric in ("AC", "EC"):
        for shift in SHIFTS:
            for size in SIZES:
                some = [
                    row for row in rows if (row["metric"], row["shift"], row["size"]) == (metric, shift, size)
                ]
                errors[f"{metric} {shift} {size}"] = {
                    method: _mean(row["error"] for row in some if row["method"] == method)
                    for method in methods
                }
    peers = [one for one in (CBPE, "CS-TS-ATC") if one in methods]
    ratios = {
        f"{metric} {shift} {AUTO} / {peer}": _ratio(rows, metric, shift, peer)
        for metric in ("AC", "EC")
        for shift in SHIFTS
        for peer in peers
    }
    covered = {
        f"{metric} {shift} {method}": _mean(
            float(row["covered"])
            for row in rows
            if (row["metric"], row["shift"], row["method"]) == (metric, shift, method)
        )
        for metric in ("AC", "EC")
        for shift in SHIFTS
        for method in (AUTO, *ASSUMPTIONS)
    }
    return {"errors": errors, "ratios": ratios, "coverage": covered}


def _mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))


def _ratio(rows: list[Row], metric: str, shift: str, peer: str) -> float:
    """Geometric mean over tasks of the ratio of mean errors."""
    ratios = []
    for task in dict.fromkeys(row["task"] for row in rows):
        some = [row for row in rows if (row["task"], row["metric"], row["shift"]) == (task, metric, shift)]
        ours, other = (_mean(row["error"] for row in some if row["method"] == one) for one in (AUTO, peer))
        ratios.append(np.log(max(ours, 1e-9) / max(other, 1e-9)))
    return float(np.exp(np.mean(ratios)))


def speeds() -> dict[str, Any]:
    """Processor seconds of each method on 100,000 x 10 logits: as rows, and as a summary of them."""
    task = shared_task("cifar10_resnet50")
    fitted = quantifier("auto").fit(task.calibration)
    head = fit_head(task.calibration, 1 - np.eye(task.classes))
    rows = np.random.default_rng(SEED).integers(task.deployment.samples, size=SPEED_SAMPLES)
    logits = task.deployment.logits[rows]
    summary = fitted.summarize(logits)
    estimate_performance(fitted, logits[:100], head)
    found: dict[str, Any] = {}
    for method in PERFORMANCE_METHODS:
        begin = time.process_time()
        estimate_performance(fitted, logits, head, method=method)
        middle = time.process_time()
        estimate_performance(fitted, summary, head, method=method)
        found[method] = {"rows": middle - begin, "summary": time.process_time() - middle}
    return found


def show(found: dict[str, Any]) -> None:
    """Print the figures as tables."""
    methods = list(next(iter(found["errors"].values())))
    print("\nMean absolute error, in points (EC: in hundredths of the largest cost)")
    for method in methods:
        cells = " ".join(f"{by_method[method]:6.2f}" for by_method in found["errors"].values())
        print(f"{method:14s} {cells}")
    print("columns:", ", ".join(found["errors"]))
    for name, values in (("Ratios", found["ratios"]), ("Coverage at .95", found["coverage"])):
        print(f"\n{name}")
        for key, value in values.items():
            print(f"  {key:40s} {value:.3f}")
    print("\nProcessor seconds for 100,000 x 10: rows, summary")
    for method, both in found["seconds"].items():
        print(f"  {method:14s} {both['rows']:.3f} {both['summary']:.3f}")


if __name__ == "__main__":
    main()
