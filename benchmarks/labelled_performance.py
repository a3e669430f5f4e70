"""Performance from few labels: width and coverage against the same number of labels alone.

    python -m benchmarks.labelled_performance [--json] [--quick] [--rounds N] [--size N] [--floor SHARE]

Each round draws a new calibration set of each task; windows come with replacement from the rest, so that the
performance in the population is known. Every window but "none" has a random prevalence; its logits are also changed as
the shift says. The labels are drawn for the metric that is estimated. Widths are ratios to the interval of as many
labels of a simple random sample, with the true variance and the same kind of interval; geometric means over windows.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Task, redrawn, shared_folder, shared_task, trained_tasks, with_labels
from benchmarks.machine import describe
from lifelong_core.deploy import LabeledLogits, PostProcessingHead, fit_head, quantifier
from lifelong_core.deploy.label_shift.assumption_test import assumption_test
from lifelong_core.deploy.performance.derived_metrics import MetricGradients, metric_intervals
from lifelong_core.deploy.performance.estimate_performance import estimate_performance
from lifelong_core.deploy.performance.labelled.difference import combined_with, difference_estimate
from lifelong_core.deploy.performance.labelled.estimate import Target
from lifelong_core.deploy.performance.labelled.planning import (
    FLOOR,
    decision_uncertainty,
    draw_sample,
    labelling_probabilities,
)
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.deploy.performance.posteriors import posteriors_in_window

SHARED_TASKS = ("lapgyn4_surgical_actions", "hyperkvasir_therapeutic_interventions", "cifar10_resnet50")
SHIFTS = ("none", "prevalence", "noise", "scale", "class")
LABELS = (50, 100, 200, 500)
"""labels of a window, up to half of its samples"""
TARGETS: tuple[Target, ...] = ("population", "window")
LARGEST_CALIBRATION = 2500
DRAWS = 2
"""samples to label from each window, for each metric and number of labels"""

Row = dict[str, Any]


@dataclass(frozen=True)
class Window:
    """A window with its label-free estimate and what is true."""

    task: str
    shift: str
    posteriors: np.ndarray
    decisions: np.ndarray
    labels: np.ndarray
    costs: np.ndarray
    truth: np.ndarray
    """(C, D), confusion matrix of the population"""
    label_free: PerformanceEstimate
    rejected: bool
    """by the assumption test"""


def shifted(data: LabeledLogits, shift: str, rng: np.random.Generator) -> LabeledLogits:
    """The population after the change of its logits."""
    logits = data.logits.astype(np.float64)
    spread = logits.std()
    if shift == "noise":
        logits += rng.normal(0, 0.7 * spread, logits.shape)
    if shift == "scale":
        logits *= rng.choice([0.5, 1.7])
    if shift == "class":
        logits[:, rng.integers(data.classes)] += rng.choice([-1, 1]) * spread
    return LabeledLogits(logits, data.labels)


def windows(task: Task, size: int, rng: np.random.Generator) -> Iterator[Window]:
    """One window for each shift, with one calibration set."""
    pool = task.pool
    calibration, rest = redrawn(pool, min(0.4, LARGEST_CALIBRATION / pool.samples), rng)
    fitted = quantifier("auto").fit(calibration)
    costs = rng.integers(1, 6, size=(task.classes,) * 2) * (1.0 - np.eye(task.classes))
    head = fit_head(calibration, costs)
    for shift in SHIFTS:
        shares = calibration.prevalence
        if shift != "none":
            shares = np.maximum(rng.dirichlet(np.ones(task.classes)), 0.01)
        shares = shares / shares.sum()
        population = shifted(rest, shift, rng)
        window = with_labels(population, rng.choice(task.classes, size=size, p=shares), rng)
        found = estimate_performance(fitted, window.logits, head)
        reference = fitted.assumption_reference
        test = assumption_test(reference, reference.features(window.logits).mean(axis=0), n=size)
        yield Window(
            task.name,
            shift,
            posteriors_in_window(fitted, window.logits, found.prevalence),
            head.apply(window.logits).decisions,
            window.labels,
            costs,
            true_confusion(population, head, shares),
            found,
            test.rejected,
        )


def true_confusion(population: LabeledLogits, head: PostProcessingHead, prevalence: np.ndarray) -> np.ndarray:
    """Shares of class and decision, (C, D), in a population with this prevalence."""
    counts = np.zeros((population.classes, population.classes))
    np.add.at(counts, (population.labels, head.apply(population.logits).decisions), 1.0)
    return prevalence[:, np.newaxis] * counts / population.counts[:, np.newaxis]


def judged(window: Window, labels: int, floor: float, rng: np.random.Generator) -> Iterator[Row]:
    """Every estimator with one draw of labels for each metric."""
    size = window.labels.size
    for metric, gains in (("AC", np.eye(len(window.costs))), ("EC", window.costs)):
        paid = gains[window.labels, window.decisions]
        chances = labelling_probabilities(
            decision_uncertainty(window.posteriors, window.decisions, gains), labels, floor=floor
        )
        sample = draw_sample(chances, rng, strata=window.decisions)
        plain = rng.choice(size, labels, replace=False)
        alone = weighted_estimate(
            window.decisions[plain], window.labels[plain], classes=len(gains), costs=window.costs
        )
        for target in TARGETS:
            ours = difference_estimate(
                window.posteriors,
                window.decisions,
                sample,
                window.labels[sample],
                chances[sample],
                costs=window.costs,
                metrics=(metric,),
                target=target,
            )
            both = combined_with(ours, window.label_free.estimates, assumption_rejected=window.rejected)
            true = float((window.truth * gains).sum()) if target == "population" else float(paid.mean())
            variance = paid.var() / labels * (1 - (labels / size if target == "window" else 0))
            bounds = np.array([[gains.min(), gains.max()]])
            usual = metric_intervals(
                MetricGradients((metric,), np.array([true]), np.zeros((1, 1, 1)), bounds),
                np.array([variance]),
                degrees_of_freedom=labels - 1,
            )[metric]
            estimates = {"labels alone": alone, "difference": ours, "combined": both}
            estimates["label-free"] = window.label_free
            for method, one in estimates.items():
                value, low, high = one.estimates[metric]
                yield {
                    "task": window.task,
                    "shift": window.shift,
                    "rejected": window.rejected,
                    "metric": metric,
                    "labels": labels,
                    "target": target,
                    "method": method,
                    "covered": low <= true <= high,
                    "width": (high - low) / (usual.high - usual.low),
                    "error": abs(value - true),
                }


def summary(rows: list[Row]) -> Row:
    """Coverage, relative width and mean absolute error."""
    return {
        "coverage": round(float(np.mean([row["covered"] for row in rows])), 3),
        "width": round(float(np.exp(np.mean(np.log([max(row["width"], 1e-9) for row in rows])))), 3),
        "error": round(float(np.mean([row["error"] for row in rows])), 4),
        "intervals": len(rows),
    }


def figures(rows: list[Row]) -> Row:
    """Summaries by target, method and shift, by number of labels, and over the windows that pass the test."""
    found: Row = {}
    for target in TARGETS:
        for method in ("labels alone", "difference", "combined", "label-free"):
            own = [row for row in rows if (row["target"], row["method"]) == (target, method)]
            cells = {"all": own, "passed": [row for row in own if not row["rejected"]]}
            cells |= {shift: [row for row in own if row["shift"] == shift] for shift in SHIFTS}
            for labels in LABELS:
                mine = [row for row in own if row["labels"] == labels]
                cells[f"{labels} labels"] = mine
                cells[f"{labels} labels, passed"] = [row for row in mine if not row["rejected"]]
            cells |= {metric: [row for row in own if row["metric"] == metric] for metric in ("AC", "EC")}
            found[f"{target}, {method}"] = {name: summary(some) for name, some in cells.items() if some}
    return found


def show(found: Row) -> None:
    """Print a table for each target and method."""
    for name, cells in found.items():
        print(f"\n{name}: coverage, width against labels alone, mean absolute error, intervals")
        for cell, one in cells.items():
            print(
                f"  {cell:24s} {one['coverage']:.3f} {one['width']:.3f} {one['error']:.4f} {one['intervals']}"
            )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    parser.add_argument("--quick", action="store_true", help="one round of the small tasks")
    parser.add_argument("--rounds", type=int, default=6, help="calibration sets of each task")
    parser.add_argument("--size", type=int, default=2000, help="samples in a window")
    parser.add_argument("--floor", type=float, default=FLOOR, help="share of labels spread evenly")
    options = parser.parse_args()
    begin = time.perf_counter()
    tasks = trained_tasks()
    if not options.quick and shared_folder().is_dir():
        tasks = [*(shared_task(name) for name in SHARED_TASKS), *tasks]
    rows: list[Row] = []
    for number in range(1 if options.quick else options.rounds):
        for task in tasks:
            rng = np.random.default_rng([number, sum(task.name.encode())])
            for window in windows(task, options.size, rng):
                for labels in (count for count in LABELS if 2 * count <= options.size):
                    for _ in range(DRAWS):
                        rows += judged(window, labels, options.floor, rng)
    found = figures(rows)
    show(found)
    if options.json:
        document = {
            "machine": describe("numpy", "scipy"),
            "tasks": [task.name for task in tasks],
            "size": options.size,
            "floor": options.floor,
            "seconds": round(time.perf_counter() - begin, 1),
            "results": found,
        }
        print(json.dumps(document))


if __name__ == "__main__":
    main()
