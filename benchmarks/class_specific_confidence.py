"""Are class-specific confidence methods better than their class-agnostic counterparts (Li et al. 2022, table 1)?

    python -m benchmarks.class_specific_confidence [--json] [--quick]

Frequencies of the classes fall geometrically, in random order. Two kinds of tasks:

- digits: a small network trained on imbalanced digits, with a balanced calibration set (like CIFAR-10 in the paper) or
  an imbalanced one (like HAM10000); windows of corrupted test images
- real logits (LIFELONG_SHARED_DATA): imbalanced calibration sets; windows of logits with noise, another scale, or a
  constant added to one class

Windows have the prevalence of the calibration set ("same") or equal class frequencies ("equal").

The error of a method is
|estimated accuracy - accuracy of the window|, in points. A difference is the error of a class-specific method minus
that of its counterpart; its p-value is that of the t-test over the means of each seed, because the windows of one seed
share calibration set and network.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.corrupted_digits import (
    CLASSES,
    CORRUPTIONS,
    SEVERITIES,
    SmallNetwork,
    corrupt,
    split_digits,
)
from benchmarks.datasets import draw, first_of_each_class, shared_folder, shared_task
from benchmarks.machine import describe
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.performance.confidence.base import ConfidenceMethod
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS, COUNTERPARTS

SEED = 0
SEEDS, QUICK_SEEDS = 20, 3
TRAINING_RATIO, RATIO = 100.0, 20.0
"""frequency of the most frequent class over that of the rarest, in training and in calibration sets"""
WINDOW = 1000
LARGEST_SET = 2000
CALIBRATION_SHARE = 0.3
"""share of each class' logits that calibration sets are drawn from; windows are drawn from the others"""
SHARED = ("cifar10_resnet50", "lapgyn4_surgical_actions")
NOISE, SCALES, SHIFTS = (0.25, 0.5, 1.0), (0.5, 2.0, 4.0), (0.5, 1.0)
"""noise and shifts in units of the logits' standard deviation"""

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A calibration set, and sets that windows are drawn from, each with the name of its perturbation."""

    name: str
    calibration: LabeledLogits
    prevalence: np.ndarray
    """shape (C,), of the calibration set"""
    populations: list[tuple[str, LabeledLogits]]


def imbalanced(order: np.ndarray, ratio: float) -> np.ndarray:
    """Prevalence that falls geometrically by `ratio` in this order of the classes; shape (C,)."""
    frequencies = ratio ** (-order / (order.size - 1))
    return frequencies / frequencies.sum()


def members(labels: np.ndarray, prevalence: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of the largest part with this prevalence, LARGEST_SET at most, at least one of each class."""
    size = min(LARGEST_SET, (np.bincount(labels, minlength=prevalence.size) / prevalence).min())
    counts = np.maximum(1, np.round(size * prevalence).astype(int))
    return np.concatenate(
        [rng.permutation(np.flatnonzero(labels == k))[:count] for k, count in enumerate(counts)]
    )


def digits_cases(seed: int) -> Iterator[Case]:
    """A network trained on imbalanced digits, with a balanced and an imbalanced calibration set."""
    rng = np.random.default_rng((SEED, seed))
    train, calibration, test = split_digits(rng)
    order = rng.permutation(CLASSES)
    network = SmallNetwork(train.select(members(train.labels, imbalanced(order, TRAINING_RATIO), rng)), seed)

    def logits(images: np.ndarray) -> LabeledLogits:
        return LabeledLogits(network.logits(images), test.labels)

    populations = [("none", logits(test.images))] + [
        (name, logits(corrupt(test.images, name, severity, rng)))
        for name in CORRUPTIONS
        for severity in SEVERITIES
    ]
    for name, ratio in (("digits, balanced", 1.0), ("digits, imbalanced", RATIO)):
        prevalence = imbalanced(order, ratio)
        chosen = calibration.select(members(calibration.labels, prevalence, rng))
        labelled = LabeledLogits(network.logits(chosen.images), chosen.labels)
        yield Case(name, labelled, prevalence, populations)


def logits_case(name: str, seed: int) -> Case:
    """An imbalanced calibration set of real logits, and perturbed ones."""
    rng = np.random.default_rng((SEED, seed))
    pool = shared_task(name).pool
    held = first_of_each_class(pool.labels, CALIBRATION_SHARE, rng)
    prevalence = imbalanced(rng.permutation(pool.classes), RATIO)
    source = pool.select(held)
    calibration = source.select(members(source.labels, prevalence, rng))
    return Case(name, calibration, prevalence, list(_perturbed(pool.select(~held), rng)))


def _perturbed(data: LabeledLogits, rng: np.random.Generator) -> Iterator[tuple[str, LabeledLogits]]:
    size = float(data.logits.std())
    yield "none", data
    for noise in NOISE:
        yield (
            "noise",
            LabeledLogits(data.logits + noise * size * rng.normal(size=data.logits.shape), data.labels),
        )
    for scale in SCALES:
        yield "scale", LabeledLogits(scale * data.logits, data.labels)
    for shift in SHIFTS:
        for one in range(data.classes):
            moved = data.logits + shift * size * (np.arange(data.classes) == one)
            yield "shift", LabeledLogits(moved, data.labels)


def measure(case: Case, seed: int) -> list[Row]:
    """Errors of all methods on all windows of a case."""
    methods = {name: kind.fit(case.calibration) for name, kind in CONFIDENCE_METHODS.items()}
    rng = np.random.default_rng((SEED, seed, 1))
    wanted = {"same": case.prevalence, "equal": np.full(case.prevalence.size, 1 / case.prevalence.size)}
    if np.ptp(case.prevalence) == 0:
        del wanted["same"]
    return [
        {
            "task": case.name,
            "seed": seed,
            "perturbation": perturbation,
            "windows": kind,
            "samples": case.calibration.samples,
            "never_predicted": len(methods["CS-TS"].fallback_classes),
            **_errors(methods, draw(population, prevalence, WINDOW, rng)),
        }
        for perturbation, population in case.populations
        for kind, prevalence in wanted.items()
    ]


def _errors(methods: dict[str, ConfidenceMethod], window: LabeledLogits) -> Row:
    predicted = window.logits.argmax(axis=1)
    each = np.arange(predicted.size)
    accuracy = float((predicted == window.labels).mean())
    estimates = {
        name: float(method.class_probabilities(window.logits)[each, predicted].mean())
        for name, method in methods.items()
    }
    return {
        "accuracy": accuracy,
        "error": {name: 100 * abs(value - accuracy) for name, value in estimates.items()},
    }


def mean_errors(rows: list[Row]) -> dict[str, float]:
    """Mean absolute error of every method, in points."""
    return {name: float(np.mean([row["error"][name] for row in rows])) for name in CONFIDENCE_METHODS}


def paired_differences(rows: list[Row]) -> dict[str, Row]:
    """Mean difference of each class-specific method to its counterpart, with the p-value of the t-test over seeds."""
    found: dict[str, Row] = {}
    for specific, agnostic in COUNTERPARTS.items():
        by_seed: dict[int, list[float]] = {}
        for row in rows:
            by_seed.setdefault(row["seed"], []).append(row["error"][specific] - row["error"][agnostic])
        means = np.array([np.mean(values) for values in by_seed.values()])
        found[specific] = {
            "difference": float(means.mean()),
            "p_value": float(stats.ttest_1samp(means, 0).pvalue),
            "seeds_won": int((means < 0).sum()),
        }
    return found


def columns(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows of each task and kind of windows, perturbed and not."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        state = "unperturbed" if row["perturbation"] == "none" else "perturbed"
        found.setdefault(f"{row['task']}, {row['windows']}, {state}", []).append(row)
    return found


def by_perturbation(rows: list[Row]) -> dict[str, Row]:
    """Mean errors and differences for each task, kind of windows and perturbation."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{row['task']}, {row['windows']}, {row['perturbation']}", []).append(row)
    return {name: _summary(own) for name, own in found.items()}


def _summary(rows: list[Row]) -> Row:
    return {
        "windows": len(rows),
        "accuracy": float(np.mean([row["accuracy"] for row in rows])),
        "errors": mean_errors(rows),
        "differences": paired_differences(rows),
    }


def _mean_by_task(rows: list[Row], key: str) -> dict[str, float]:
    return {
        task: float(np.mean([row[key] for row in rows if row["task"] == task]))
        for task in dict.fromkeys(row["task"] for row in rows)
    }


def show(found: dict[str, Row]) -> None:
    """Print one block for each column."""
    for name, one in found.items():
        print(f"\n{name}: {one['windows']} windows, mean accuracy {100 * one['accuracy']:.1f} %")
        for method, error in one["errors"].items():
            line = f"  {method:10} {error:6.2f}"
            if method in one["differences"]:
                paired = one["differences"][method]
                line += (
                    f"   {paired['difference']:+.2f} to {COUNTERPARTS[method]}, p {paired['p_value']:.2g}, "
                    f"better for {paired['seeds_won']} seeds"
                )
            print(line)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--quick", action="store_true", help="few seeds")
    options = parser.parse_args()
    begin = time.perf_counter()
    seeds = QUICK_SEEDS if options.quick else SEEDS
    machine = describe("numpy", "scipy", "scikit-learn", "torch")
    print(
        f"machine: {json.dumps(machine)}\nseeds {seeds}, imbalance ratio {RATIO:g}, in training {TRAINING_RATIO:g}"
    )
    rows: list[Row] = []
    for seed in range(seeds):
        for case in digits_cases(seed):
            rows += measure(case, seed)
    print(f"digits: {time.perf_counter() - begin:.0f} s", flush=True)
    for name in SHARED if shared_folder().is_dir() else ():
        for seed in range(seeds):
            rows += measure(logits_case(name, seed), seed)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    found = {name: _summary(own) for name, own in columns(rows).items()}
    show(found)
    if options.json:
        figures = {
            "benchmark": "class_specific_confidence",
            "machine": machine,
            "seed": SEED,
            "seeds": seeds,
            "ratios": {"training": TRAINING_RATIO, "calibration": RATIO},
            "window": WINDOW,
            "calibration_samples": _mean_by_task(rows, "samples"),
            "classes_never_predicted": _mean_by_task(rows, "never_predicted"),
            "columns": found,
            "perturbations": by_perturbation(rows),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
