"""Metrics of lifelong, scikit-learn and torchmetrics in one process: time and memory, for metrics that they share.

    python -m benchmarks.metrics [--json] [--quick]

Probabilities of a simulated classifier; each figure is the median of some repeats, by turns. Ratios, theirs over
ours, are of the time that the processor took, which other work on the machine hardly changes. Memory is the peak of
the process above what was in use before (Linux), numpy's and torch's alike. torchmetrics is left out where it is not
installed.
Large: the whole pool in one call for a million samples of 8 and of 50 classes, once.
Bootstrap: intervals of all metrics that count, from resampled confusion matrices; the peer resamples the data.
"""

import argparse
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from sklearn import metrics as sklearn_metrics

from benchmarks.machine import describe
from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.metrics import METRICS, bootstrap_confusions, compute_metrics, counting_metric

SEED = 0
SAMPLES, CLASSES = 100_000, 10
QUICK_SAMPLES = 20_000
BINS = 15
LARGE_SAMPLES, QUICK_LARGE_SAMPLES = 1_000_000, 50_000
LARGE = ((8, 5.0, 1000.0), (50, 20.0, None))
"""Classes, and the goals: seconds, and megabytes with the inputs"""
REPLICATES = 1000
GOAL_SECONDS = 1.0
POOL = tuple(acronym for acronym, card in METRICS.items() if card.is_in_pool)
COUNTING = tuple(acronym for acronym in POOL if METRICS[acronym].family == "counting")
Call = Callable[[], Any]


def simulated(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities of an over-confident classifier that is right about six times in ten."""
    rng = np.random.default_rng(SEED)
    labels = rng.integers(CLASSES, size=samples)
    logits = 1.5 * np.eye(CLASSES)[labels] + rng.normal(size=(samples, CLASSES))
    weights = np.exp(1.5 * logits)
    return labels, weights / weights.sum(axis=1, keepdims=True)


def ours(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, Call]:
    """Each metric by itself, as `compute_metrics` gives it: from decisions where it counts, like the peers."""
    decisions = {"decisions": probabilities.argmax(axis=1)}

    def call(acronym: str) -> Call:
        inputs = decisions if acronym in COUNTING and acronym != "NB" else {"probabilities": probabilities}
        return lambda: compute_metrics([acronym], labels=labels, **inputs)[acronym]

    return {acronym: call(acronym) for acronym in POOL}


def of_scikit_learn(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, Call]:
    """What it has for several classes."""
    decisions, truth = probabilities.argmax(axis=1), np.eye(CLASSES, dtype=int)[labels]
    peer = sklearn_metrics
    return {
        "AC": lambda: peer.accuracy_score(labels, decisions),
        "ER": lambda: peer.zero_one_loss(labels, decisions),
        "BA": lambda: peer.balanced_accuracy_score(labels, decisions),
        "CK": lambda: peer.cohen_kappa_score(labels, decisions),
        "MCC": lambda: peer.matthews_corrcoef(labels, decisions),
        "TPR": lambda: peer.recall_score(labels, decisions, average=None),
        "PPV": lambda: peer.precision_score(labels, decisions, average=None),
        "F_beta": lambda: peer.f1_score(labels, decisions, average=None),
        "JAC": lambda: peer.jaccard_score(labels, decisions, average=None),
        "AUROC": lambda: peer.roc_auc_score(truth, probabilities, average=None),
        "AP": lambda: peer.average_precision_score(truth, probabilities, average=None),
        "BS": lambda: peer.brier_score_loss(labels, probabilities),
        "BSS": lambda: peer.d2_brier_score(labels, probabilities),
        "NLL": lambda: peer.log_loss(labels, probabilities),
    }


def of_torchmetrics(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, Call]:
    """What it has; nothing where it is not installed."""
    if importlib.util.find_spec("torchmetrics") is None:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it imports warns about optional parts
        torch = importlib.import_module("torch")
        if importlib.util.find_spec("torchvision") is not None:
            declare_missing_operators()  # torchmetrics imports torchvision where it is installed
        peer = importlib.import_module("torchmetrics.functional.classification")
    truth, scores = torch.tensor(labels), torch.tensor(probabilities, dtype=torch.float32)
    decided, one, each = (
        scores.argmax(dim=1),
        {"num_classes": CLASSES},
        {"num_classes": CLASSES, "average": None},
    )
    return {
        "AC": lambda: peer.multiclass_accuracy(decided, truth, average="micro", **one),
        "BA": lambda: peer.multiclass_accuracy(decided, truth, **one),
        "CK": lambda: peer.multiclass_cohen_kappa(decided, truth, **one),
        "MCC": lambda: peer.multiclass_matthews_corrcoef(decided, truth, **one),
        "TPR": lambda: peer.multiclass_recall(decided, truth, **each),
        "TNR": lambda: peer.multiclass_specificity(decided, truth, **each),
        "PPV": lambda: peer.multiclass_precision(decided, truth, **each),
        "F_beta": lambda: peer.multiclass_f1_score(decided, truth, **each),
        "JAC": lambda: peer.multiclass_jaccard_index(decided, truth, **each),
        "AUROC": lambda: peer.multiclass_auroc(scores, truth, **each),
        "AP": lambda: peer.multiclass_average_precision(scores, truth, **each),
        "ECE": lambda: peer.multiclass_calibration_error(scores, truth, n_bins=BINS, **one),
    }


def measured(calls: dict[str, Call], repeats: int) -> dict[str, dict[str, float]]:
    """Medians of time, and peaks of memory in MB, of each; all are called by turns, after one call to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    peaks: dict[str, float] = dict.fromkeys(calls, 0.0)
    for turn in range(repeats + 1):
        for name, call in calls.items():
            before = _reset_peak()
            start, start_of_processor = time.perf_counter(), time.process_time()
            call()
            if turn:
                seconds[name].append(time.perf_counter() - start)
                processor[name].append(time.process_time() - start_of_processor)
                peaks[name] = max(peaks[name], _peak() - before)
    return {
        name: {
            "seconds": median(seconds[name]),
            "processor_seconds": median(processor[name]),
            "peak_megabytes": peaks[name],
        }
        for name in calls
    }


def _reset_peak() -> float:
    """Forget the peak of resident memory (Linux); the memory in use now, in MB."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return psutil.Process().memory_info().rss / 1e6


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))


def together(calls: dict[str, Call]) -> Call:
    return lambda: [call() for call in calls.values()]


def compared(
    name: str, peer: dict[str, Call], inputs: tuple[np.ndarray, np.ndarray], repeats: int
) -> dict[str, Any]:
    """Each metric that the peer has, and all of these at once."""
    labels, probabilities = inputs
    alone = ours(labels, probabilities)
    calls = {f"{acronym} ours": alone[acronym] for acronym in peer}
    calls |= {f"{acronym} {name}": call for acronym, call in peer.items()}
    calls["all ours"] = lambda: compute_metrics(peer, labels=labels, probabilities=probabilities)
    calls[f"all {name}"] = together(peer)
    found = measured(calls, repeats)
    return {
        acronym: {
            "ours": found[f"{acronym} ours"],
            "peer": found[f"{acronym} {name}"],
            "ratio": found[f"{acronym} {name}"]["processor_seconds"]
            / found[f"{acronym} ours"]["processor_seconds"],
        }
        for acronym in (*peer, "all")
    }


def bootstrapped(labels: np.ndarray, decisions: np.ndarray, repeats: int) -> dict[str, Any]:
    """BCa intervals of all metrics that count; the peer draws samples anew and counts them, extrapolated."""
    few = 5
    rng = np.random.default_rng(SEED)

    def intervals() -> Any:
        resampled = bootstrap_confusions(labels, decisions, classes=CLASSES, replicates=REPLICATES)
        return {acronym: resampled.of(counting_metric(acronym)).intervals() for acronym in COUNTING}

    def peer() -> None:
        for _ in range(few):
            rows = rng.integers(labels.size, size=labels.size)
            for metric in (sklearn_metrics.balanced_accuracy_score, sklearn_metrics.matthews_corrcoef):
                metric(labels[rows], decisions[rows])

    found = measured({"ours": intervals, "peer": peer}, repeats)
    peer_seconds = found["peer"]["processor_seconds"] * REPLICATES / few
    return {
        "replicates": REPLICATES,
        "metrics": len(COUNTING),
        **found["ours"],
        "goal_seconds": GOAL_SECONDS,
        "peer": "scikit-learn, percentile, BA and MCC only, extrapolated from few replicates",
        "peer_processor_seconds": peer_seconds,
        "ratio": peer_seconds / found["ours"]["processor_seconds"],
    }


def large(samples: int) -> list[dict[str, Any]]:
    """The whole pool in one call, for each number of classes of `LARGE`."""
    found: list[dict[str, Any]] = []
    for classes, seconds, megabytes in LARGE:
        rng = np.random.default_rng(SEED)
        labels = rng.integers(classes, size=samples)
        probabilities = np.empty((samples, classes))
        for part in np.array_split(np.arange(samples), 50):
            logits = 2 * np.eye(classes)[labels[part]] + rng.normal(size=(part.size, classes))
            weights = np.exp(logits)
            probabilities[part] = weights / weights.sum(axis=1, keepdims=True)
        inputs = (labels.nbytes + probabilities.nbytes) / 1e6
        before = _reset_peak()
        start, start_of_processor = time.perf_counter(), time.process_time()
        compute_metrics(POOL, labels=labels, probabilities=probabilities)
        found.append(
            {
                "samples": samples,
                "classes": classes,
                "seconds": time.perf_counter() - start,
                "processor_seconds": time.process_time() - start_of_processor,
                "goal_seconds": seconds,
                "peak_megabytes": _peak() - before,
                "input_megabytes": inputs,
                "goal_megabytes": megabytes,
            }
        )
    return found


def report(*, quick: bool) -> dict[str, Any]:
    """All figures."""
    samples, repeats = (QUICK_SAMPLES, 2) if quick else (SAMPLES, 5)
    labels, probabilities = inputs = simulated(samples)
    pool = {"pool": lambda: compute_metrics(POOL, labels=labels, probabilities=probabilities)}
    each = measured(ours(labels, probabilities), max(1, repeats // 2))
    estimates = compute_metrics(POOL, labels=labels, probabilities=probabilities)
    peers = {"scikit-learn": of_scikit_learn(*inputs), "torchmetrics": of_torchmetrics(*inputs)}
    return {
        "benchmark": "metrics",
        "samples": samples,
        "classes": CLASSES,
        "seed": SEED,
        "repeats": repeats,
        "load_average": os.getloadavg()[0],
        **describe(
            "numpy", "scipy", "scikit-learn", *(["torchmetrics", "torch"] if peers["torchmetrics"] else [])
        ),
        "pool": {
            "metrics": len(POOL),
            **measured(pool, repeats)["pool"],
            "goal_seconds": GOAL_SECONDS,
            "standard_errors": dict(estimates.standard_errors),
            "one_by_one": each,
        },
        "large": large(QUICK_LARGE_SAMPLES if quick else LARGE_SAMPLES),
        "peers": {name: compared(name, peer, inputs, repeats) for name, peer in peers.items() if peer},
        "bootstrap": bootstrapped(labels, probabilities.argmax(axis=1), repeats),
    }


def show(found: dict[str, Any]) -> None:
    print(f"{found['samples']} samples, {CLASSES} classes; load {found['load_average']:.1f}")
    pool, resampled = found["pool"], found["bootstrap"]
    print(
        f"all {pool['metrics']} metrics: {pool['seconds']:.3f} s ({pool['processor_seconds']:.3f} s of processor), "
        f"{pool['peak_megabytes']:.0f} MB"
    )
    dear = sorted(pool["one_by_one"].items(), key=lambda item: -item[1]["processor_seconds"])[:6]
    listed = (f"{name} {one['processor_seconds'] * 1000:.0f} ms" for name, one in dear)
    print("dearest by itself:", ", ".join(listed))
    for one in found["large"]:
        print(
            f"{one['samples']} samples, {one['classes']} classes: {one['seconds']:.1f} s"
            f" ({one['processor_seconds']:.1f} s of processor), {one['peak_megabytes']:.0f} MB beside"
            f" {one['input_megabytes']:.0f} MB of inputs"
        )
    for name, rows in found["peers"].items():
        print(f"\n{name:16}{'ours ms':>10}{'theirs':>10}{'ratio':>8}{'ours MB':>10}{'theirs':>10}")
        for acronym, one in rows.items():
            times = (1000 * one[side]["processor_seconds"] for side in ("ours", "peer"))
            memory = (one[side]["peak_megabytes"] for side in ("ours", "peer"))
            cells = "".join(f"{cell:>10.1f}" for cell in times)
            print(f"{acronym:16}{cells}{one['ratio']:>8.1f}" + "".join(f"{cell:>10.1f}" for cell in memory))
    print(
        f"\nbootstrap of {resampled['metrics']} metrics, {resampled['replicates']} replicates, BCa: "
        f"{resampled['seconds']:.3f} s ({resampled['processor_seconds']:.3f} s of processor); "
        f"{resampled['peer']}: {resampled['peer_processor_seconds']:.1f} s of processor"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SAMPLES} samples, two repeats")
    options = parser.parse_args()
    found = report(quick=options.quick)
    show(found)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
