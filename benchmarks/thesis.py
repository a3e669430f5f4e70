"""The experiments of the thesis' chapter 6 (design: section 6.1.4; results: sections 6.2.2 to 6.2.5) on one task.

Each function gives one row per imbalance ratio and repetition, as a dictionary of figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef

from benchmarks.datasets import Task
from lifelong_core.deploy import (
    AffineCalibration,
    FittedQuantifier,
    LabeledLogits,
    bayes_decisions,
    fit_affine,
)
from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost

METRICS = ("accuracy", "F1", "MCC", "BA", "EC")
DEAR_MISS = np.array([[0.0, 1.0], [5.0, 0.0]])
"""Costs under which argmax is wrong even with calibrated probabilities: missing class 1 costs five times as much."""
BINS = 20
Figures = dict[str, float]


@dataclass(frozen=True)
class Scene:
    """A deployment set at one imbalance ratio, with the prevalence estimates that recalibration is tried with."""

    task: Task
    ratio: float
    deployment: LabeledLogits
    by_acc: np.ndarray
    """the thesis' choice for its later steps"""
    by_auto: np.ndarray
    """ours"""

    @property
    def prevalence(self) -> np.ndarray:
        """True shares of the classes, shape (C,)."""
        return self.deployment.prevalence


def at_imbalance(data: LabeledLogits, ratio: float, rng: np.random.Generator) -> LabeledLogits:
    """T_dep(r): subsampled so that the largest class is `ratio` times the smallest (thesis section 6.1.4).

    At or above the set's own ratio r', a share r'/r of all classes but the largest; below it, each class is
    interpolated between the size of the smallest (at 1) and its own (at r').
    """
    counts = data.counts
    own = counts.max() / counts.min()
    if ratio >= own:
        sizes = counts * own / ratio
        sizes[counts.argmax()] = counts.max()
    else:
        sizes = counts.min() + (ratio - 1) / (own - 1) * (counts - counts.min())
    rows = [
        rng.permutation(np.flatnonzero(data.labels == k))[: max(1, round(size))]
        for k, size in enumerate(sizes.tolist())
    ]
    return data.select(np.concatenate(rows))


def quantification(scene: Scene, fitted: dict[str, FittedQuantifier]) -> Figures:
    """Step 1: L1 distance of each method's estimate to the true prevalence."""
    return {
        name: float(np.abs(one.prevalence(scene.deployment.logits) - scene.prevalence).sum())
        for name, one in fitted.items()
    }


def calibrators(scene: Scene) -> dict[str, AffineCalibration]:
    """Step 2: the recalibrations that are compared, all fitted on the calibration set."""
    data = scene.task.calibration

    def fit(target: np.ndarray | None, *, bias: bool) -> AffineCalibration:
        return fit_affine(data.logits, data.labels, target_prevalence=target, bias=bias)

    raw = AffineCalibration(1.0, np.zeros(data.classes))
    return {
        "no recalibration": raw,
        "temperature": fit(None, bias=False),
        "temperature, true weights": fit(scene.prevalence, bias=False),
        "temperature, estimated weights": fit(positive(scene.by_acc), bias=False),
        "affine": fit(None, bias=True),
        "affine, true weights": fit(scene.prevalence, bias=True),
        "affine, estimated weights (ACC)": fit(positive(scene.by_acc), bias=True),
        "affine, estimated weights (auto)": fit(positive(scene.by_auto), bias=True),
    }


def calibration_quality(scene: Scene, found: dict[str, AffineCalibration]) -> Iterator[tuple[str, Figures]]:
    """Step 2: class-wise calibration error and Brier score on the deployment set."""
    labels = scene.deployment.labels
    for name, one in found.items():
        probabilities = one.probabilities(scene.deployment.logits)
        yield (
            name,
            {
                "CWCE": classwise_calibration_error(probabilities, labels),
                "Brier score": brier_score(probabilities, labels),
            },
        )


def generalisation(scene: Scene, found: dict[str, AffineCalibration]) -> Iterator[tuple[str, Figures]]:
    """Step 3: |metric on the development set - metric on the deployment set| under argmax."""
    development = scene.task.development
    if development is None:
        return
    for name, recalibration, prevalence in (
        ("no recalibration", "no recalibration", scene.by_acc),
        ("recalibrated", "affine, true weights", scene.by_acc),
    ):
        one, estimated = found[recalibration], found["affine, estimated weights (ACC)"]
        before = _metrics(one, development, scene.prevalence)
        after = _metrics(one, scene.deployment, scene.prevalence)
        figures = {metric: abs(before[metric] - after[metric]) for metric in METRICS}
        # With estimated prevalences the head that serves is fitted for them as well (thesis section 6.2.4).
        serving = estimated if name == "recalibrated" else one
        figures["EC (estimated)"] = abs(
            _metrics(serving, development, prevalence)["EC"]
            - _metrics(serving, scene.deployment, scene.prevalence)["EC"]
        )
        yield name, figures


def regret(scene: Scene, found: dict[str, AffineCalibration]) -> Iterator[tuple[str, Figures]]:
    """Step 4, binary tasks: how far each decision rule stays behind the best threshold for the deployment set."""
    task = scene.task
    if task.classes != 2 or task.development is None:
        return
    for name, recalibration in (
        ("no recalibration", "no recalibration"),
        ("recalibrated", "affine, true weights"),
        ("recalibrated (estimated)", "affine, estimated weights (auto)"),
    ):
        one = found[recalibration]
        developed = Sweep.of(one, task.development)
        deployed = Sweep.of(one, scene.deployment)
        argmax, threshold = {}, {}
        for metric in METRICS:
            achieved = deployed.metric(metric)
            # Only EC can be told on the development set which prevalence to expect (thesis section 6.1.3, step 3).
            tuned = developed.metric(metric, prevalence=scene.prevalence)
            argmax[metric] = achieved.max() - achieved[deployed.index_of(0.5)]
            threshold[metric] = achieved.max() - achieved[deployed.index_of(developed.best_threshold(tuned))]
        yield f"argmax, {name}", argmax
        yield f"tuned threshold, {name}", threshold


def dear_misses(scene: Scene, found: dict[str, AffineCalibration]) -> Iterator[tuple[str, Figures]]:
    """Step 4 with unequal costs, binary tasks: regret in expected cost of argmax, tuned threshold and EC rule."""
    task = scene.task
    if task.classes != 2 or task.development is None:
        return
    raw = found["no recalibration"]
    deployed = Sweep.of(raw, scene.deployment)
    best = deployed.expected_cost(DEAR_MISS).min()
    tuned = Sweep.of(raw, task.development)
    threshold = tuned.best_threshold(-tuned.expected_cost(DEAR_MISS))
    rules = {
        "argmax": raw.probabilities(scene.deployment.logits).argmax(axis=1),
        "tuned threshold": (raw.probabilities(scene.deployment.logits)[:, 1] >= threshold).astype(int),
    }
    for name in ("no recalibration", "affine, true weights", "affine, estimated weights (auto)"):
        rules[f"EC rule, {name}"] = bayes_decisions(
            found[name].probabilities(scene.deployment.logits), DEAR_MISS
        )
    for name, decisions in rules.items():
        confusion = confusion_matrix(scene.deployment.labels, decisions, classes=2)
        yield name, {"EC": expected_cost(confusion, DEAR_MISS) - float(best)}


def costs_of_argmax(scene: Scene, found: dict[str, AffineCalibration]) -> Figures:
    """Step 4: 0-1 expected cost on the deployment set."""
    return {
        name: float(
            (one.probabilities(scene.deployment.logits).argmax(axis=1) != scene.deployment.labels).mean()
        )
        for name, one in found.items()
    }


@dataclass(frozen=True)
class Sweep:
    """Confusions of a binary task at every threshold of the probability of class 1."""

    thresholds: np.ndarray
    true_positives: np.ndarray
    false_positives: np.ndarray
    positives: int
    negatives: int

    @classmethod
    def of(cls, calibrator: AffineCalibration, data: LabeledLogits) -> "Sweep":
        """Thresholds: each score that occurs, and one above them all."""
        scores = calibrator.probabilities(data.logits)[:, 1]
        order = np.argsort(-scores, kind="stable")
        scores, labels = scores[order], data.labels[order]
        last = np.flatnonzero(np.append(np.diff(scores) != 0, True))
        hits = np.cumsum(labels)[last]
        return cls(
            thresholds=np.concatenate([[np.inf], scores[last]]),
            true_positives=np.concatenate([[0], hits]),
            false_positives=np.concatenate([[0], last + 1 - hits]),
            positives=int(labels.sum()),
            negatives=int(labels.size - labels.sum()),
        )

    def metric(self, name: str, *, prevalence: np.ndarray | None = None) -> np.ndarray:
        """The metric at each threshold, larger is better; EC: the negative of that with 0-1 costs."""
        tp, fp = self.true_positives.astype(float), self.false_positives.astype(float)
        fn, tn = self.positives - tp, self.negatives - fp
        if name == "EC":
            return -self.expected_cost(1 - np.eye(2), prevalence)
        if name == "accuracy":
            return (tp + tn) / (self.positives + self.negatives)
        if name == "F1":
            return 2 * tp / (2 * tp + fp + fn)
        if name == "BA":
            return (tp / self.positives + tn / self.negatives) / 2
        product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return np.divide(tp * tn - fp * fn, np.sqrt(product), out=np.zeros_like(tp), where=product > 0)

    def expected_cost(self, costs: np.ndarray, prevalence: np.ndarray | None = None) -> np.ndarray:
        """Expected cost at each threshold, for these class shares instead of the set's own."""
        own = np.array([self.negatives, self.positives]) / (self.negatives + self.positives)
        shares = own if prevalence is None else prevalence
        missed = (self.positives - self.true_positives) / self.positives
        raised = self.false_positives / self.negatives
        return shares[1] * missed * costs[1, 0] + shares[0] * raised * costs[0, 1]

    def best_threshold(self, values: np.ndarray) -> float:
        """Halfway between the score where the values are best and the next lower one."""
        best = int(values.argmax())
        if best == 0:
            return np.inf
        lower = self.thresholds[best + 1] if best + 1 < self.thresholds.size else self.thresholds[best]
        return float((self.thresholds[best] + lower) / 2)

    def index_of(self, threshold: float) -> int:
        """Where the decisions are those of deciding class 1 from this probability on."""
        return int(np.flatnonzero(self.thresholds >= threshold)[-1])


def classwise_calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """CWCE (thesis Def. 2.68) with L1 distance and BINS bins of equal width."""
    edges = np.arange(1, BINS) / BINS
    total = 0.0
    for k in range(probabilities.shape[1]):
        scores = probabilities[:, k]
        residual = np.bincount(np.digitize(scores, edges), (labels == k) - scores, minlength=BINS)
        total += float(np.abs(residual).sum()) / labels.size
    return total / probabilities.shape[1]


def brier_score(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """BS (thesis Def. 2.74), 0..2."""
    onehot = labels[:, np.newaxis] == np.arange(probabilities.shape[1])
    return float(((probabilities - onehot) ** 2).sum(axis=1).mean())


def positive(prevalence: np.ndarray) -> np.ndarray:
    """Estimates of exactly 0 would remove the class from the recalibration: at least one in a thousand."""
    raised = np.maximum(prevalence, 1e-3)
    return raised / raised.sum()


def _metrics(calibrator: AffineCalibration, data: LabeledLogits, prevalence: np.ndarray) -> Figures:
    """Under argmax. EC is that of 0-1 costs, configured with the prevalence; F1 the mean over classes if C > 2."""
    decisions = calibrator.probabilities(data.logits).argmax(axis=1)
    confusion = confusion_matrix(data.labels, decisions, classes=data.classes)
    average = "binary" if data.classes == 2 else "macro"
    return {
        "accuracy": accuracy(confusion),
        "F1": float(f1_score(data.labels, decisions, average=average, zero_division=0)),
        "MCC": float(matthews_corrcoef(data.labels, decisions)),
        "BA": float(balanced_accuracy_score(data.labels, decisions)),
        "EC": expected_cost(confusion, 1 - np.eye(data.classes), prevalence=prevalence),
    }
