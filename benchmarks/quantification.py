"""Our quantifiers against QuaPy's, side by side in one process: accuracy, coverage and time on real logits.

    python -m benchmarks.quantification [--json] [--quick]

Every bag is a sample (with replacement) of a deployment set with a prevalence drawn from Dirichlet(1). Errors are L1
distances to the bag's own class shares, coverage is that of the prevalence it was drawn with.
"""

import argparse
import importlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator

from benchmarks.machine import describe
from lifelong_core.deploy import QUANTIFIERS, LabeledLogits, quantifier

SEED = 0
CONFIDENCE = 0.95
TASKS = (
    "lapgyn4_surgical_actions",
    "hyperkvasir_therapeutic_interventions",
    "cifar10_resnet50",
    "cifar100_resnet20",
)
PEERS = {"CC": "CC", "ACC": "ACC", "PACC": "PACC", "EMQ": "EMQ", "KDEyML": "KDEyML", "MLLS": "EMQ"}
"""MLLS has no peer of its own (QuaPy's needs the package `abstention`): it is set against EMQ on raw softmax."""


class Softmax(BaseEstimator):
    """A trained classifier whose outputs are the logits, as QuaPy wants one."""

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, *_: Any) -> "Softmax":
        """It is trained already."""
        return self

    def predict_proba(self, logits: np.ndarray) -> np.ndarray:
        """Softmax of the logits."""
        return softmax(np.asarray(logits, dtype=float), axis=1)

    def predict(self, logits: np.ndarray) -> np.ndarray:
        """The class with the largest logit."""
        return np.asarray(logits).argmax(axis=1)


@dataclass(frozen=True)
class Bag:
    """A sample of a deployment set."""

    logits: np.ndarray
    shares: np.ndarray
    prevalence: np.ndarray


@dataclass(frozen=True)
class Row:
    """One method on one task. Times are medians, in milliseconds."""

    task: str
    method: str
    peer: str
    classes: int
    bags: int
    error: float
    peer_error: float
    largest_difference: float
    coverage: float
    width: float
    fit_ms: float
    peer_fit_ms: float
    point_ms: float
    peer_point_ms: float
    interval_ms: float


def load(task: str) -> tuple[LabeledLogits, LabeledLogits]:
    folder = Path(os.environ.get("LIFELONG_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    with np.load(folder / "logits" / f"{task}.npz") as arrays:
        calibration, deployment = (
            LabeledLogits(arrays[f"{split}_logits"], arrays[f"{split}_labels"])
            for split in ("calibration", "deployment")
        )
    return calibration, deployment


def bags(deployment: LabeledLogits, count: int, sizes: tuple[int, ...]) -> Iterator[Bag]:
    rng = np.random.default_rng(SEED)
    members = [np.flatnonzero(deployment.labels == k) for k in range(deployment.classes)]
    for index in range(count):
        size = sizes[index % len(sizes)]
        prevalence = rng.dirichlet(np.ones(deployment.classes))
        labels = rng.choice(deployment.classes, size=size, p=prevalence)
        rows = np.array([rng.choice(members[k]) for k in labels])
        yield Bag(
            deployment.logits[rows], np.bincount(labels, minlength=deployment.classes) / size, prevalence
        )


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - begin) * 1000


def compare(task: str, method: str, count: int, sizes: tuple[int, ...]) -> Row:
    calibration, deployment = load(task)
    peers = importlib.import_module("quapy.method.aggregative")

    def fit_peer() -> Any:
        settings = {} if PEERS[method] == "CC" else {"val_split": None}
        blank = getattr(peers, PEERS[method])(Softmax(calibration.classes), fit_classifier=False, **settings)
        return blank.fit(calibration.logits, calibration.labels)

    fits = [(timed(lambda: quantifier(method).fit(calibration)), timed(fit_peer)) for _ in range(3)]
    ours, theirs = fits[-1][0][0], fits[-1][1][0]
    figures: list[tuple[float, ...]] = []
    for bag in bags(deployment, count, sizes):
        point, point_ms = timed(lambda bag=bag: ours.prevalence(bag.logits))
        peer, peer_ms = timed(lambda bag=bag: theirs.predict(bag.logits))
        estimate, interval_ms = timed(lambda bag=bag: ours.estimate(bag.logits, confidence=CONFIDENCE))
        covered = (estimate.low <= bag.prevalence) & (bag.prevalence <= estimate.high)
        figures.append(
            (
                float(np.abs(point - bag.shares).sum()),
                float(np.abs(peer - bag.shares).sum()),
                float(np.abs(peer - point).max()),
                float(covered.mean()),
                float((estimate.high - estimate.low).mean()),
                point_ms,
                peer_ms,
                interval_ms,
            )
        )
    table = np.array(figures)
    means, medians = table.mean(axis=0), np.median(table, axis=0)
    return Row(
        task=task,
        method=method,
        peer=f"QuaPy {PEERS[method]}",
        classes=calibration.classes,
        bags=count,
        error=means[0],
        peer_error=means[1],
        largest_difference=float(table[:, 2].max()),
        coverage=means[3],
        width=means[4],
        fit_ms=median(one[0][1] for one in fits),
        peer_fit_ms=median(one[1][1] for one in fits),
        point_ms=medians[5],
        peer_point_ms=medians[6],
        interval_ms=medians[7],
    )


def ratios(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Per method, ours / theirs: geometric means over tasks; below 1 is better."""
    found: dict[str, dict[str, float]] = {}
    for method in PEERS:
        own = [row for row in rows if row.method == method]
        if own:
            found[method] = {
                "error": _geometric([row.error / row.peer_error for row in own]),
                "point_time": _geometric([row.point_ms / row.peer_point_ms for row in own]),
                "fit_and_point_time": _geometric(
                    [(row.fit_ms + row.point_ms) / (row.peer_fit_ms + row.peer_point_ms) for row in own]
                ),
            }
    return found


def _geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def show(rows: list[Row], found: dict[str, dict[str, float]]) -> None:
    print(
        f"{'task':22s} {'method':7s} {'L1':>6s} {'peer':>6s} {'differ':>8s} {'cover':>6s} {'width':>6s} "
        f"{'fit ms':>8s} {'peer':>8s} {'point ms':>9s} {'peer':>8s} {'interval':>9s}"
    )
    for row in rows:
        print(
            f"{row.task[:22]:22s} {row.method:7s} {row.error:6.3f} {row.peer_error:6.3f} "
            f"{row.largest_difference:8.1e} {row.coverage:6.3f} {row.width:6.3f} {row.fit_ms:8.1f} "
            f"{row.peer_fit_ms:8.1f} {row.point_ms:9.2f} {row.peer_point_ms:8.2f} {row.interval_ms:9.2f}"
        )
    print("\nours / theirs, geometric mean over tasks (below 1 is better)")
    for method, figures in found.items():
        print(f"  {method:7s} " + "  ".join(f"{name} {value:.3f}" for name, value in figures.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="two tasks, few and small bags")
    arguments = parser.parse_args()
    # QuaPy and what it imports warn about optional parts that are not installed; EMQ about stopping early.
    warnings.simplefilter("ignore")
    count, sizes = (6, (100, 500)) if arguments.quick else (60, (100, 500, 2000))
    tasks = TASKS[:2] if arguments.quick else TASKS
    machine = describe("numpy", "scipy", "quapy", "scikit-learn")
    print(
        f"machine: {json.dumps(machine)}\nseed {SEED}; {count} bags of {sizes} samples per task, Dirichlet(1)\n"
    )
    # With 100 classes QuaPy's optimisers take seconds per bag.
    rows = [
        compare(task, method, count if task != "cifar100_resnet20" else 3, sizes)
        for task in tasks
        for method in PEERS
        if method in QUANTIFIERS and not (task == "cifar100_resnet20" and method == "KDEyML")
    ]
    found = ratios(rows)
    show(rows, found)
    if arguments.json:
        print(
            json.dumps(
                {
                    "benchmark": "quantification",
                    "machine": machine,
                    "seed": SEED,
                    "sizes": sizes,
                    "peer": "QuaPy",
                    "rows": [asdict(row) for row in rows],
                    "ratios": found,
                }
            )
        )


if __name__ == "__main__":
    main()
