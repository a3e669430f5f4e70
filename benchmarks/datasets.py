"""Labelled logits for the benchmarks: real ones of LIFELONG_SHARED_DATA, networks trained here, synthetic ones."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import log_expit
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from lifelong_core.deploy import LabeledLogits

SHARED = (
    "lapgyn4_surgical_actions",
    "hyperkvasir_therapeutic_interventions",
    "cifar10_resnet50",
    "cifar100_resnet20",
)
DEVELOPMENT_SHARE = 0.25
"""of CIFAR-10's test set: its published deployment set is a part of it, which would flatter every comparison"""


@dataclass(frozen=True)
class Task:
    """A classifier's logits on sets that share no sample (thesis section 6.1.4)."""

    name: str
    calibration: LabeledLogits
    development: LabeledLogits | None
    """class-balanced; None: there is none"""
    deployment: LabeledLogits

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.calibration.classes

    @property
    def pool(self) -> LabeledLogits:
        """All samples, to draw other calibration sets from: the classes look alike in all three sets."""
        sets = [one for one in (self.calibration, self.development, self.deployment) if one is not None]
        return LabeledLogits(
            np.vstack([one.logits for one in sets]), np.concatenate([one.labels for one in sets])
        )


def shared_folder() -> Path:
    """Where the logits of SHARED lie, if this machine has them."""
    data = os.environ.get("LIFELONG_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data"
    return Path(data) / "logits"


def shared_task(name: str) -> Task:
    """One of SHARED."""
    with np.load(shared_folder() / f"{name}.npz") as arrays:
        sets = {
            split: LabeledLogits(arrays[f"{split}_logits"], arrays[f"{split}_labels"])
            for split in ("calibration", "development_test", "deployment")
            if f"{split}_logits" in arrays
        }
    if name == "cifar10_resnet50":
        tests = sets["development_test"]
        held = first_of_each_class(tests.labels, DEVELOPMENT_SHARE, np.random.default_rng(0))
        return Task(name, sets["calibration"], tests.select(held), tests.select(~held))
    return Task(name, sets["calibration"], sets.get("development_test"), sets["deployment"])


def class_pairs(task: Task, count: int) -> Iterator[Task]:
    """Binary tasks: the pairs of classes that the calibration set confuses most, with the logits of those two."""
    decisions = task.calibration.logits.argmax(axis=1)
    confusions = np.zeros((task.classes, task.classes))
    np.add.at(
        confusions, (task.calibration.labels, decisions), 1 / task.calibration.counts[task.calibration.labels]
    )
    both = np.triu(confusions + confusions.T, 1)
    for first, second in zip(
        *np.unravel_index(np.argsort(-both, axis=None)[:count], both.shape), strict=True
    ):
        yield Task(
            f"{task.name} {first}/{second}",
            _pair(task.calibration, first, second),
            None if task.development is None else _pair(task.development, first, second),
            _pair(task.deployment, first, second),
        )


def trained_tasks() -> list[Task]:
    """Networks that were trained to certainty on scikit-learn's bundled data, with noise so that they err."""
    digits, cancer = load_digits(), load_breast_cancer()
    rng = np.random.default_rng(0)
    noisy_digits = digits.data + rng.normal(0, 6, digits.data.shape)
    scaled = (cancer.data - cancer.data.mean(axis=0)) / cancer.data.std(axis=0)
    noisy_cancer = scaled + rng.normal(0, 2, scaled.shape)
    return [
        _trained("digits", noisy_digits / 16, digits.target, sizes=(400, 600)),
        _trained("breast_cancer", noisy_cancer, cancer.target, sizes=(100, 200)),
        *(
            _trained(f"blobs_{classes}", *_blobs(classes, samples), sizes=(400, 1500))
            for classes, samples in ((3, 16000), (5, 20000))
        ),
    ]


def synthetic_task(classes: int, samples: int, *, separation: float = 2.0, confidence: float = 2.0) -> Task:
    """Gaussian class densities whose logits are `confidence` times the right ones."""
    rng = np.random.default_rng(classes)
    centres = separation * np.eye(classes)

    def draw(count: int) -> LabeledLogits:
        labels = rng.integers(classes, size=count)
        features = centres[labels] + rng.normal(size=(count, classes))
        return LabeledLogits(confidence * features @ centres.T, labels)

    return Task(f"gaussian_{classes}", draw(samples), None, draw(4 * samples))


def first_of_each_class(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Mask of this share of the samples of each class, drawn at random."""
    chosen = np.zeros(labels.size, dtype=bool)
    for k in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == k))
        chosen[members[: max(1, round(share * members.size))]] = True
    return chosen


def redrawn(
    pool: LabeledLogits, share: float, rng: np.random.Generator
) -> tuple[LabeledLogits, LabeledLogits]:
    """Another calibration set with this share of each class, and the rest as the population."""
    held = first_of_each_class(pool.labels, share, rng)
    return pool.select(held), pool.select(~held)


def draw(
    population: LabeledLogits, prevalence: np.ndarray, size: int, rng: np.random.Generator
) -> LabeledLogits:
    """A window with this prevalence: classes at random, samples without replacement where a class has enough.

    With replacement, what the population lacks by chance would look like an error of the calibration set.
    """
    labels = rng.choice(prevalence.size, size=size, p=prevalence)
    rows = np.empty(size, dtype=np.int64)
    for k in np.unique(labels):
        mine, members = labels == k, np.flatnonzero(population.labels == k)
        count = int(mine.sum())
        rows[mine] = rng.choice(members, size=count, replace=count > members.size)
    return population.select(rows)


def with_labels(population: LabeledLogits, labels: np.ndarray, rng: np.random.Generator) -> LabeledLogits:
    """A sample of each of these classes, (N,), drawn with replacement."""
    rows = np.empty(labels.size, dtype=np.int64)
    for k in range(population.classes):
        own = np.flatnonzero(population.labels == k)
        rows[labels == k] = rng.choice(own, size=int((labels == k).sum()))
    return population.select(rows)


def _pair(data: LabeledLogits, first: int, second: int) -> LabeledLogits:
    mine = np.isin(data.labels, (first, second))
    return LabeledLogits(data.logits[mine][:, [first, second]], (data.labels[mine] == second).astype(int))


def _blobs(classes: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    features, labels = make_classification(
        samples, 20, n_informative=8, n_classes=classes, class_sep=1.0, flip_y=0.05, random_state=classes
    )
    return features, labels


def _trained(name: str, features: np.ndarray, labels: np.ndarray, *, sizes: tuple[int, int]) -> Task:
    """A network fitted until it is sure of every training sample; the first `sizes` train and calibrate."""
    order = np.random.default_rng(1).permutation(labels.size)
    train, calibration, deployment = np.split(order, np.cumsum(sizes))
    network = MLPClassifier((64,), alpha=0, max_iter=400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(features[train], labels[train])

    def apply(rows: np.ndarray) -> LabeledLogits:
        return LabeledLogits(_logits(network, features[rows]), labels[rows])

    return Task(name, apply(calibration), None, apply(deployment))


def _logits(network: MLPClassifier, features: np.ndarray) -> np.ndarray:
    hidden = np.maximum(features @ network.coefs_[0] + network.intercepts_[0], 0)
    scores = hidden @ network.coefs_[1] + network.intercepts_[1]
    if scores.shape[1] > 1:
        return scores
    return np.column_stack([log_expit(-scores[:, 0]), log_expit(scores[:, 0])])
