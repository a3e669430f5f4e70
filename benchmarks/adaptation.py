"""The thesis' experiments on prevalence shifts (chapter 6) with our code, and how safe unattended swaps are.

    python -m benchmarks.adaptation [--json] [--quick] [--figures FOLDER]

Deployment sets are subsampled to imbalance ratios 1 to 10 (thesis section 6.1.4). The real data sets are joined by the
binary tasks of their most confused pairs of classes, because only one of them is binary. Swap safety is measured on
networks that were trained here as well, with calibration sets drawn anew.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import swaps, thesis
from benchmarks.datasets import SHARED, Task, class_pairs, shared_task, synthetic_task, trained_tasks
from benchmarks.machine import describe
from lifelong_core.deploy import QUANTIFIERS, AdaptationPolicy, FittedQuantifier, quantifier

SEED = 0
PAIRS = 6
CHOSEN = "auto"
Row = dict[str, Any]
PUBLISHED_ERRORS = {
    "CC": 0.156,
    "ACC": 0.048,
    "PCC": 0.225,
    "PACC": 0.046,
    "BBSE": 0.048,
    "EMQ": 0.095,
    "HDy": 0.046,
    "KDEyCS": 0.046,
    "KDEyHD": 0.037,
    "KDEyML": 0.041,
}
"""L1 error at imbalance ratio 10, mean over the 30 tasks of the thesis (Fig. 6.3)"""
PUBLISHED_SAVINGS = {1.0: 0.01, 4.0: 0.18, 7.0: 0.32, 10.0: 0.42}
"""relative drop of the expected cost by recalibration, mean over 24 binary tasks (section 6.2.4)"""


def tasks(*, quick: bool) -> list[Task]:
    """The real data sets and binary tasks of their classes.

    CIFAR-100 is left out: it has no development set, and at imbalance ratio 10 five samples of each class.
    """
    whole = [shared_task(name) for name in SHARED[: 2 if quick else 3]]
    many = [task for task in whole if task.classes > 2]
    return whole + [pair for task in many for pair in class_pairs(task, 1 if quick else PAIRS)]


def experiments(task: Task, ratios: list[float], repetitions: int) -> list[Row]:
    """One row per figure: step, task, imbalance ratio, repetition, method, metric, value."""
    fitted = {name: quantifier(name).fit(task.calibration) for name in QUANTIFIERS}
    found: list[Row] = []
    for ratio in ratios:
        for repetition in range(repetitions):
            rng = np.random.default_rng((SEED, round(2 * ratio), repetition))
            scene = _scene(task, ratio, fitted, rng)
            found += _experiments(
                scene, fitted, {"task": task.name, "ratio": ratio, "repetition": repetition}
            )
    return found


def all_experiments(found: list[Task], ratios: list[float], repetitions: int) -> list[Row]:
    """Of all tasks, in two processes."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(experiments, task, ratios, repetitions) for task in found]
        return [row for job in jobs for row in job.result()]


def _experiments(scene: thesis.Scene, fitted: dict[str, FittedQuantifier], key: Row) -> Iterator[Row]:
    for method, value in thesis.quantification(scene, fitted).items():
        yield {**key, "step": "prevalence", "method": method, "metric": "L1", "value": value}
    recalibrations = thesis.calibrators(scene)
    for step, results in (
        ("calibration", thesis.calibration_quality(scene, recalibrations)),
        ("generalisation", thesis.generalisation(scene, recalibrations)),
        ("regret", thesis.regret(scene, recalibrations)),
        ("dear misses", thesis.dear_misses(scene, recalibrations)),
    ):
        for method, figures in results:
            for metric, value in figures.items():
                yield {**key, "step": step, "method": method, "metric": metric, "value": value}
    for method, cost in thesis.costs_of_argmax(scene, recalibrations).items():
        yield {**key, "step": "argmax", "method": method, "metric": "EC", "value": cost}


def _scene(
    task: Task, ratio: float, fitted: dict[str, FittedQuantifier], rng: np.random.Generator
) -> thesis.Scene:
    deployment = thesis.at_imbalance(task.deployment, ratio, rng)
    by_acc, chosen = (fitted[name].prevalence(deployment.logits) for name in ("ACC", CHOSEN))
    return thesis.Scene(task, ratio, deployment, by_acc, chosen)


def table(rows: list[Row], step: str, metric: str) -> dict[str, dict[float, tuple[float, float]]]:
    """Per method and imbalance ratio the mean and standard deviation over tasks (of the mean over repetitions)."""
    values: dict[tuple[str, float], dict[str, list[float]]] = {}
    for row in rows:
        if row["step"] == step and row["metric"] == metric:
            by_task = values.setdefault((row["method"], row["ratio"]), {})
            by_task.setdefault(row["task"], []).append(row["value"])
    result: dict[str, dict[float, tuple[float, float]]] = {}
    for (method, ratio), by_task in values.items():
        means = [float(np.nanmean(one)) for one in by_task.values()]
        result.setdefault(method, {})[ratio] = (float(np.mean(means)), float(np.std(means)))
    return result


def show(rows: list[Row], ratios: list[float]) -> dict[str, Any]:
    """Print every experiment at a few imbalance ratios; the same figures as a dictionary."""
    shown = [ratio for ratio in ratios if ratio in (1.0, 4.0, 7.0, 10.0)]
    found: dict[str, Any] = {}
    for step, metric, title in (
        ("prevalence", "L1", "L1 error of the estimated prevalence (Fig. 6.3)"),
        ("calibration", "CWCE", "class-wise calibration error (Fig. 6.6, top)"),
        ("calibration", "Brier score", "Brier score (Fig. 6.6, bottom)"),
        *(
            ("regret", metric, f"regret of the decision rule in {metric} (Fig. 6.9)")
            for metric in thesis.METRICS
        ),
        ("dear misses", "EC", "regret in expected cost when missing class 1 costs five times as much"),
        ("argmax", "EC", "0-1 expected cost of argmax"),
        *(
            ("generalisation", metric, f"|development - deployment| of {metric} (Fig. 6.10)")
            for metric in (*thesis.METRICS, "EC (estimated)")
        ),
    ):
        by_method = table(rows, step, metric)
        if not by_method:
            continue
        print(f"\n{title}\n{'imbalance ratio':45s}" + "".join(f"{ratio:>8.0f}" for ratio in shown))
        for method, by_ratio in by_method.items():
            print(f"  {method:43s}" + "".join(f"{by_ratio[ratio][0]:8.3f}" for ratio in shown))
        found[f"{step}: {metric}"] = {
            method: {f"{ratio:g}": by_ratio[ratio][0] for ratio in shown}
            for method, by_ratio in by_method.items()
        }
    return found


def show_savings(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Print by which share recalibration lowers the expected cost: of the means over tasks."""
    costs = table(rows, "argmax", "EC")
    before = costs["no recalibration"]
    print("\nrelative drop of the 0-1 expected cost by recalibration (printed: section 6.2.4)")
    print(
        f"{'imbalance ratio':45s}"
        + "".join(f"{ratio:>8.0f}" for ratio in PUBLISHED_SAVINGS if ratio in before)
    )
    found: dict[str, dict[str, float]] = {}
    for method, by_ratio in costs.items():
        if method.startswith("affine, "):
            found[method] = {
                f"{ratio:g}": 1 - by_ratio[ratio][0] / before[ratio][0]
                for ratio in PUBLISHED_SAVINGS
                if ratio in before
            }
            print(f"  {method:43s}" + "".join(f"{value:8.3f}" for value in found[method].values()))
    return found


def show_swaps(found: list[swaps.Summary]) -> None:
    """Print the table of swap safety."""
    print(
        f"\nswap safety, one window judged by itself, policy {AdaptationPolicy()}\n"
        f"{'scenario':18s}{'n':>6s}{'windows':>9s}{'swaps':>7s}{'refused':>9s}{'harmful':>9s}{'untested':>10s}"
        f"{'by prob.':>9s}{'worse':>7s}"
        f"{'kept':>7s}{'gain':>8s}{'untested':>10s}{'worst':>8s}{'ms':>7s}"
    )
    for one in found:
        print(
            f"{one.scenario:18s}{one.size:6d}{one.windows:9d}{one.swaps:7d}{one.refusals:9d}{one.harmful:9d}"
            f"{one.harmful_without_test:10d}{one.by_probability:9d}{one.worse_probabilities:7d}{one.kept:7.3f}{one.mean_gain:8.4f}{one.mean_gain_without_test:10.4f}"
            f"{one.worst:8.4f}{one.milliseconds:7.0f}"
        )


def show_streams(found: list[swaps.Stream]) -> Row:
    """Print what cycles with sequential evidence did before and after a shift."""
    worth = [one for one in found if one.possible > swaps.HARMFUL]
    delays = [one.samples_to_swap for one in worth]
    middle = float(np.median(delays)) if delays else float("nan")
    result: Row = {
        "streams": len(found),
        "calm_cycles": sum(one.cycles for one in found),
        "calm_swaps": sum(one.swaps for one in found),
        "harmful_swaps": sum(one.harmful for one in found),
        "kept": sum(one.gain for one in found) / sum(one.possible for one in found),
        "streams_worth_a_swap": len(worth),
        "swapped": sum(bool(np.isfinite(delay)) for delay in delays),
        "median_samples_to_swap": middle if np.isfinite(middle) else None,
    }
    print(
        f"\nsequential evidence, {swaps.NEW_SAMPLES} new samples per cycle, windows of "
        f"{swaps.WINDOW_CYCLES * swaps.NEW_SAMPLES}: {result['calm_swaps']} swaps in {result['calm_cycles']} cycles "
        f"without a shift; {result['swapped']} of {result['streams_worth_a_swap']} shifts worth a swap were followed "
        f"by one within {swaps.SHIFTED_CYCLES * swaps.NEW_SAMPLES} samples (median "
        f"{result['median_samples_to_swap']}); {result['kept']:.3f} of the possible gain; "
        f"{result['harmful_swaps']} harmful swaps"
    )
    return result


def swap_tasks(*, quick: bool) -> list[Task]:
    """Data sets with enough samples to draw calibration sets from."""
    if quick:
        return [shared_task(SHARED[0])]
    return [shared_task(SHARED[0]), shared_task(SHARED[2]), *trained_tasks()[2:], synthetic_task(2, 2000)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="fewer tasks, ratios, repetitions and windows")
    parser.add_argument("--figures", type=Path, help="write the figures into this folder")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    ratios = [1.0, 4.0, 10.0] if arguments.quick else np.arange(1, 10.5, 0.5).tolist()
    repetitions = 1 if arguments.quick else 3
    machine = describe("numpy", "scipy", "scikit-learn")
    found = tasks(quick=arguments.quick)
    print(
        f"machine: {json.dumps(machine)}\nseed {SEED}; {len(found)} tasks, {repetitions} subsamples per ratio"
    )
    rows = all_experiments(found, ratios, repetitions)
    figures = {**show(rows, ratios), "savings": show_savings(rows)}
    experiments_seconds = time.perf_counter() - begin
    windows, streams = swaps.measure(
        swap_tasks(quick=arguments.quick),
        seed=SEED,
        draws=1 if arguments.quick else 4,
        windows=12 if arguments.quick else 42,
        sizes=(200, 1000) if arguments.quick else (200, 1000, 5000),
        method=CHOSEN,
    )
    cycles = swaps.summary(windows)
    show_swaps(cycles)
    over_time = show_streams(streams)
    if arguments.figures is not None:
        from benchmarks import figures as drawing

        drawing.draw_all(rows, arguments.figures, PUBLISHED_ERRORS)
    print(f"\n{experiments_seconds:.0f} s for the experiments, {time.perf_counter() - begin:.0f} s in all")
    if arguments.json:
        print(
            json.dumps(
                {
                    "benchmark": "adaptation",
                    "machine": machine,
                    "seed": SEED,
                    "peer": "printed figures of the thesis",
                    "published_errors": PUBLISHED_ERRORS,
                    "published_savings": {f"{ratio:g}": value for ratio, value in PUBLISHED_SAVINGS.items()},
                    "figures": figures,
                    "swaps": [
                        {name: None if value != value else value for name, value in asdict(one).items()}
                        for one in cycles
                    ],
                    "streams": over_time,
                }
            )
        )


if __name__ == "__main__":
    main()
