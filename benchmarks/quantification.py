"""Our quantifiers against QuaPy's, side by side in one process: accuracy, coverage, time, and window summaries.

    python -m benchmarks.quantification [--json] [--quick] [--figures FOLDER]

A window is drawn from a task's deployment set with a prevalence from Dirichlet(1). Errors are L1 distances to the
window's own class shares; coverage is that of the prevalence it was drawn with, over calibration sets that are drawn
anew. A class of which a window needs more samples than there are is drawn with replacement: on the small sets this
counts against the intervals, which know nothing of the deployment set's own chance.

Tasks: real logits, networks trained here on scikit-learn's bundled data, and a synthetic one.
"""

import argparse
import json
import multiprocessing
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import t

from benchmarks.datasets import (
    SHARED,
    Task,
    draw,
    redrawn,
    shared_task,
    synthetic_task,
    trained_tasks,
)
from benchmarks.machine import describe
from benchmarks.peers import PEERS, SLOW, fit_peer
from lifelong_core.deploy import QUANTIFIERS, quantifier
from lifelong_core.deploy.adaptation.planning import plan_samples

SEED = 0
CONFIDENCE = 0.95
CHOSEN = "auto"
REFERENCE = "KDEyHD"
"""of QuaPy, which the thesis recommends"""
MANY_CLASSES = 50
COVERED = ("PACC", "MLLS", CHOSEN)
CALIBRATION_SHARE = 0.2
LARGEST_CALIBRATION = 2000
BUCKETS, ROWS = 168, 1_000_000
"""A week of hours."""
Row = dict[str, Any]


def tasks(*, quick: bool) -> list[Task]:
    """Real, trained and synthetic ones."""
    if quick:
        return [shared_task(name) for name in SHARED[:2]]
    return [*(shared_task(name) for name in SHARED), *trained_tasks(), synthetic_task(4, 1000)]


def accuracy(task: Task, *, sizes: tuple[int, ...], windows: int, referred: int) -> list[Row]:
    """L1 errors of all methods, ours and QuaPy's, on the same windows; the slow reference only on the first ones."""
    rng = np.random.default_rng(SEED)
    many = task.classes > MANY_CLASSES
    ours = {
        name: quantifier(name).fit(task.calibration) for name in QUANTIFIERS if not (many and _slow(name))
    }
    wanted = dict.fromkeys(PEERS[name] for name in QUANTIFIERS if name in PEERS)
    theirs = {name: fit_peer(name, task.calibration) for name in wanted if not (many and name in SLOW)}
    found: list[Row] = []
    for size in sizes:
        for number in range(windows):
            window = draw(task.deployment, rng.dirichlet(np.ones(task.classes)), size, rng)
            key = {"task": task.name, "size": size, "window": number}
            for name, one in ours.items():
                error = float(np.abs(one.prevalence(window.logits) - window.prevalence).sum())
                found.append({**key, "method": name, "error": error})
            for name, one in theirs.items():
                if name != REFERENCE or number < referred:
                    error = float(np.abs(one.predict(window.logits) - window.prevalence).sum())
                    found.append({**key, "method": f"QuaPy {name}", "error": error})
    return found


def _slow(name: str) -> bool:
    """With 100 classes; those that are left out have no peer there either."""
    return name in ("HDy", "KDEyML", "KDEyHD", "KDEyCS")


def coverage(task: Task, *, draws: int, sizes: tuple[int, ...], windows: int) -> list[Row]:
    """How often the intervals hold the prevalence that a window was drawn with, and how wide they are."""
    rng = np.random.default_rng(SEED + 1)
    pool = task.pool
    share = min(CALIBRATION_SHARE, LARGEST_CALIBRATION / pool.samples)
    found: list[Row] = []
    for number in range(draws):
        calibration, population = redrawn(pool, share, rng)
        fitted = {name: quantifier(name).fit(calibration) for name in COVERED}
        for size in sizes:
            for _ in range(windows):
                prevalence = rng.dirichlet(np.ones(task.classes))
                window = draw(population, prevalence, size, rng)
                for name, one in fitted.items():
                    estimate = one.estimate(window.logits, confidence=CONFIDENCE)
                    covered = (estimate.low <= prevalence) & (prevalence <= estimate.high)
                    found.append(
                        {
                            "task": task.name,
                            "draw": number,
                            "calibration": calibration.samples,
                            "size": size,
                            "method": name,
                            "covered": float(covered.mean()),
                            "width": float((estimate.high - estimate.low).mean()),
                        }
                    )
    return found


def plans(task: Task, *, sizes: tuple[int, ...], windows: int) -> list[Row]:
    """Half-widths that `plan_samples` foretells, over those that windows then have (before they are cut off)."""
    rng = np.random.default_rng(SEED + 4)
    fitted = quantifier(CHOSEN).fit(task.calibration)
    prevalence = rng.dirichlet(np.full(task.classes, 2.0))
    plan = plan_samples(fitted, prevalence=prevalence, confidence=CONFIDENCE)
    found: list[Row] = []
    for size in sizes:
        squares = []
        for _ in range(windows):
            estimate = fitted.estimate(draw(task.deployment, prevalence, size, rng).logits)
            quantile = t.ppf((1 + CONFIDENCE) / 2, np.maximum(estimate.degrees_of_freedom, 1))
            squares.append(quantile**2 * np.diag(estimate.covariance))
        ratio = plan.half_widths(size) / np.sqrt(np.mean(squares, axis=0))
        found.append(
            {
                "task": task.name,
                "size": size,
                "mean": float(ratio.mean()),
                "lowest": float(ratio.min()),
                "highest": float(ratio.max()),
            }
        )
    return found


def speed(task: Task, size: int, repetitions: int) -> list[Row]:
    """Milliseconds of fitting, of a point estimate and of one with intervals; medians, ours and QuaPy's by turns."""
    rng = np.random.default_rng(SEED + 2)
    window = draw(task.deployment, rng.dirichlet(np.ones(task.classes)), size, rng).logits
    fit_peer("CC", task.calibration)  # imports QuaPy
    found: list[Row] = []
    for name in (name for name in QUANTIFIERS if name in PEERS):
        times: list[tuple[float, ...]] = []
        for _ in range(repetitions):
            fitted, fit_ms = _timed(lambda name=name: quantifier(name).fit(task.calibration))
            _, point_ms = _timed(lambda fitted=fitted: fitted.prevalence(window))
            _, interval_ms = _timed(lambda fitted=fitted: fitted.estimate(window))
            peer, peer_fit_ms = _timed(lambda name=name: fit_peer(PEERS[name], task.calibration))
            _, peer_point_ms = _timed(lambda peer=peer: peer.predict(window))
            times.append((fit_ms, point_ms, interval_ms, peer_fit_ms, peer_point_ms))
        fit_ms, point_ms, interval_ms, peer_fit_ms, peer_point_ms = (
            median(column) for column in zip(*times, strict=True)
        )
        found.append(
            {
                "method": name,
                "peer": f"QuaPy {PEERS[name]}",
                "fit_ms": fit_ms,
                "point_ms": point_ms,
                "interval_ms": interval_ms,
                "peer_fit_ms": peer_fit_ms,
                "peer_point_ms": peer_point_ms,
                "times_faster": (peer_fit_ms + peer_point_ms) / (fit_ms + point_ms),
            }
        )
    return found


def summaries(task: Task, rows: int) -> list[Row]:
    """A window of many samples as the sum of its hourly summaries, against the exact estimate from all of its rows."""
    rng = np.random.default_rng(SEED + 3)
    window = draw(task.deployment, rng.dirichlet(np.ones(task.classes)), rows, rng).logits
    window = window + rng.normal(0, 0.05, window.shape).astype(np.float32)  # no two samples are equal
    found: list[Row] = []
    for name in (CHOSEN,):
        fitted = quantifier(name).fit(task.calibration)
        parts, summarize_ms = _timed(
            lambda fitted=fitted: [fitted.summarize(part) for part in np.array_split(window, BUCKETS)]
        )
        # What a cycle reads is bytes: it has to read them, add them up, and estimate.
        stored = [part.to_bytes() for part in parts]
        estimate, cycle_ms = _timed(lambda fitted=fitted, stored=stored: _from_bytes(fitted, stored))
        tracemalloc.start()
        _from_bytes(fitted, stored)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        exact, exact_ms = _timed(lambda fitted=fitted: fitted.estimate(window))
        found.append(
            {
                "method": name,
                "rows": rows,
                "buckets": BUCKETS,
                "bytes_per_bucket": median(len(one) for one in stored),
                "summarize_ms_per_1000_rows": summarize_ms / rows * 1000,
                "cycle_ms": cycle_ms,
                "cycle_peak_megabytes": peak / 1e6,
                "exact_ms": exact_ms,
                "difference_over_width": float(
                    np.max(np.abs(estimate.prevalence - exact.prevalence) / (exact.high - exact.low))
                ),
            }
        )
    return found


def _from_bytes(fitted: Any, stored: list[bytes]) -> Any:
    from lifelong_core.deploy import WindowSummary

    parts = [WindowSummary.from_bytes(one) for one in stored]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return fitted.estimate(total)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - begin) * 1000


def show_accuracy(rows: list[Row]) -> dict[str, Any]:
    """Mean error over tasks by window size, and the ratios that the product promises."""
    sizes = sorted({row["size"] for row in rows})
    methods = list(dict.fromkeys(row["method"] for row in rows))
    print(
        f"\nL1 error to the window's class shares, mean over tasks\n{'n':16s}"
        + "".join(f"{n:>8,}" for n in sizes)
    )
    table: dict[str, dict[str, float]] = {}
    few = [row for row in rows if row["task"] != SHARED[3]]  # not all methods can do 100 classes
    for method in methods:
        table[method] = {
            str(size): _mean_over_tasks(
                [row for row in few if (row["method"], row["size"]) == (method, size)]
            )
            for size in sizes
        }
        print(f"{method:16s}" + "".join(f"{value:8.4f}" for value in table[method].values()))
    ratios: dict[str, float] = {}
    if "auto" in table:
        fixed = [name for name in methods if name != "auto" and not name.startswith("QuaPy")]
        best = min(fixed, key=lambda name: sum(table[name].values()))
        ratios[f"auto / best fixed ({best})"] = sum(table["auto"].values()) / sum(table[best].values())
    for size in sizes:
        value = _paired_ratio(few, CHOSEN, f"QuaPy {REFERENCE}", size)
        if value is not None:
            ratios[f"{CHOSEN} / QuaPy {REFERENCE}, n = {size}"] = value
    for name, value in ratios.items():
        print(f"  {name}: {value:.3f}")
    return {"errors": table, "ratios": ratios}


def _mean_over_tasks(rows: list[Row]) -> float:
    by_task: dict[str, list[float]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row["error"])
    return float(np.mean([np.mean(values) for values in by_task.values()])) if by_task else float("nan")


def _paired_ratio(rows: list[Row], method: str, peer: str, size: int) -> float | None:
    """Ratio of the mean errors on the windows that both have seen."""
    mine, theirs = (
        {(row["task"], row["window"]): row for row in rows if (row["method"], row["size"]) == (name, size)}
        for name in (method, peer)
    )
    both = [key for key in mine if key in theirs]
    if not both:
        return None
    ours, others = (_mean_over_tasks([one[key] for key in both]) for one in (mine, theirs))
    return ours / others


def show_coverage(rows: list[Row]) -> dict[str, Any]:
    """Coverage and widths by window size, and the worst task."""
    sizes = sorted({row["size"] for row in rows})
    print(
        f"\nnominal {CONFIDENCE:.0%} intervals, calibration sets drawn anew: coverage / mean width; worst task"
    )
    print(f"{'n':9s}" + "".join(f"{n:>16,}" for n in sizes) + "   all sizes, worst task")
    found: dict[str, Any] = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        by_task = {
            name: float(np.mean([row["covered"] for row in own if row["task"] == name]))
            for name in dict.fromkeys(row["task"] for row in own)
        }
        by_size = {
            str(size): [
                float(np.mean([row[key] for row in own if row["size"] == size]))
                for key in ("covered", "width")
            ]
            for size in sizes
        }
        worst = min(by_task, key=lambda name: by_task[name])
        found[method] = {"by_size": by_size, "by_task": by_task}
        print(
            f"{method:9s}"
            + "".join(f"{covered:9.3f} /{width:5.3f}" for covered, width in by_size.values())
            + f"{np.mean(list(by_task.values())):8.3f}, {worst} {by_task[worst]:.3f}"
        )
    return found


def show_plans(rows: list[Row]) -> None:
    """Print how far plans are off."""
    print("\nplanned / measured half-width: mean over classes (lowest to highest class)")
    for row in rows:
        print(
            f"{row['task'][:24]:25s}{row['size']:6,}{row['mean']:7.2f} ({row['lowest']:.2f} to {row['highest']:.2f})"
        )


def show_speed(rows: list[Row]) -> None:
    """Print the times."""
    print(
        f"\n{'ms':9s}{'fit':>9s}{'point':>9s}{'interval':>10s}{'peer':>16s}{'fit':>9s}{'point':>9s}{'x faster':>10s}"
    )
    for row in rows:
        print(
            f"{row['method']:9s}{row['fit_ms']:9.1f}{row['point_ms']:9.2f}{row['interval_ms']:10.1f}{row['peer']:>16s}"
            f"{row['peer_fit_ms']:9.1f}{row['peer_point_ms']:9.1f}{row['times_faster']:10.1f}"
        )


def show_summaries(rows: list[Row]) -> None:
    """Print what windows as sums of summaries cost and lose."""
    for row in rows:
        print(
            f"\n{row['method']}: {row['rows']:,} rows in {row['buckets']} summaries of {row['bytes_per_bucket']:,.0f} "
            f"bytes; {row['summarize_ms_per_1000_rows']:.1f} ms per 1,000 rows to summarise; a cycle "
            f"{row['cycle_ms']:.0f} ms, {row['cycle_peak_megabytes']:.0f} MB at most (all rows: {row['exact_ms']:.0f} "
            f"ms); differs by {row['difference_over_width']:.4f} of the interval"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="two tasks, few windows, no summaries")
    parser.add_argument("--figures", type=Path, help="write the plot into this folder")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    begin = time.perf_counter()
    machine = describe("numpy", "scipy", "quapy", "scikit-learn")
    found = tasks(quick=quick)
    print(f"machine: {json.dumps(machine)}\nseed {SEED}; tasks: {', '.join(task.name for task in found)}")
    sizes = (100, 500) if quick else (100, 500, 2000, 5000)
    errors = _in_two_processes(
        accuracy, found, sizes=sizes, windows=4 if quick else 8, referred=1 if quick else 2
    )
    figures = show_accuracy(errors)
    few = [task for task in found if task.classes <= MANY_CLASSES]
    covered = _in_two_processes(
        coverage, few, draws=2 if quick else 10, sizes=sizes[:3], windows=3 if quick else 4
    )
    coverages = show_coverage(covered)
    planned = [
        row for task in few for row in plans(task, sizes=(200, 1000, 5000), windows=5 if quick else 20)
    ]
    show_plans(planned)
    # Times are taken alone, after the other process has ended.
    times = speed(found[0], 500 if quick else 6479, 1 if quick else 3)
    show_speed(times)
    compact = [] if quick else summaries(found[0], ROWS)
    show_summaries(compact)
    if arguments.figures is not None:
        from benchmarks import figures as drawing

        drawing.draw_quantification(errors, covered, arguments.figures)
    print(f"\n{time.perf_counter() - begin:.0f} s in all")
    if arguments.json:
        print(
            json.dumps(
                {
                    "benchmark": "quantification",
                    "machine": machine,
                    "seed": SEED,
                    "peer": "QuaPy",
                    **figures,
                    "coverage": coverages,
                    "plans": planned,
                    "times": times,
                    "summaries": compact,
                }
            )
        )


def _in_two_processes(measure: Callable[..., list[Row]], found: list[Task], **settings: Any) -> list[Row]:
    """Rows of all tasks."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(measure, task, **settings) for task in found]
        return [row for job in jobs for row in job.result()]


if __name__ == "__main__":
    main()
