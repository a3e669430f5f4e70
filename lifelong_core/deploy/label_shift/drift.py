"""Detectors of drifts that occur in practice: statistics whose mean does not depend on the prevalence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from lifelong_core.deploy.label_shift.features import FOLDS, FeatureMap, column_order
from lifelong_core.deploy.labeled import LabeledLogits, class_means, independent_cases, stratified_folds
from lifelong_core.deploy.numerics.newton import member_sums, one_hot, sort_into_runs
from lifelong_core.values.arrays import MANY_CLASSES, Floats, Integers, Logits, Mask, centre_rows

DriftKind: TypeAlias = Literal["moved_logit", "scaled_logits", "noisy_logits", "mixed_samples"]

MOST_MOVED = 20
"""Most classes with detectors for single logits; with more, the other tests cover these drifts."""

MOVE = 0.5
"""Step of a moved logit, in units of calibrated log odds."""

SCALE = 0.8
NOISE = 0.5
"""Simulated noise, in robust standard deviations of each logit."""

_ROWS = 2000
"""Calibration samples with simulated drift; they only define the directions of the detectors."""

_RIDGE = 0.1
_SEED = 6_103
_NEGLIGIBLE = 1e-6
_LEAST_SPREAD = 0.03

PSEUDO_SAMPLES = 2.0
"""Weight of the covariance over all classes in that of one class, in samples: a feature that is absent in twenty
samples may occur once in thirty."""

DOUBTED = 4.0
"""The variance of a class's mean counts this many samples fewer, but at least half of them, because the features were
fitted on samples of the class. On synthetic data of four classes, where a class of 30 samples dominates the window,
detectors then vary at most as much as their standard errors; with 15 samples, up to 1.6 times."""


@dataclass(frozen=True)
class Drift:
    """Kind of change of the logits given the class, with the size of the simulated step."""

    kind: DriftKind
    class_index: int | None
    """class of the moved logit; None: the drift affects all logits"""
    step: float
    """a standard step: added to the logit; log of the factor; robust standard deviations; share of samples"""


@dataclass(frozen=True, eq=False)
class DriftDetectors:
    """One linear function of the features per drift, with its mean in each class.

    Each detector is the combination of features with equal means in all classes that a drift moves most, in standard
    errors (a score test, with the prevalence as nuisance parameter). Detectors are cross-fitted: they are fitted
    without one fold of the calibration set, and their class means come from that fold. Otherwise a detector would fit
    the noise of these means, and reject too often. If cross-fitting is impossible, as with one sample of a class, there
    are no detectors.
    """

    drifts: tuple[Drift, ...]
    weights: Floats
    """shape (J, M), weights of the features minus `middle`"""
    middle: Floats
    """shape (M,)"""
    effects: Floats
    """shape (J,), effect of a standard step of its drift on each detector"""
    values: Floats
    """shape (N, J): cross-fitted detectors of the calibration samples"""

    @classmethod
    def of(cls, data: LabeledLogits, features: FeatureMap, own: Floats) -> Self:
        """Fit the detectors.

        Args:
            data: the calibration set.
            features: map to features of its samples and of drifted samples.
            own: shape (N, M), cross-fitted features of the calibration samples.
        """
        middle = _class_means(own, data.labels, data.classes).mean(axis=0)
        rows = own - middle
        some = _rows_of_every_class(data)
        still = features(data.logits[some])
        drifts: list[Drift] = []
        moved: list[Floats] = []
        for drift, logits in _drifted(data.logits[some], features):
            drifts.append(drift)
            moved.append(features(logits) - still)
        folds = stratified_folds(data, FOLDS)
        fold_count = int(folds.max()) + 1
        if fold_count == 1:
            nothing = np.zeros((0, own.shape[1]))
            return cls((), nothing, middle, np.zeros(0), np.zeros((data.samples, 0)))
        weights = np.zeros((fold_count, len(drifts), own.shape[1]))
        effects = np.zeros((fold_count, len(drifts)))
        values = np.zeros((data.samples, len(drifts)))
        for fold in range(fold_count):
            held = folds == fold
            weights[fold] = _most_sensitive(
                rows[~held],
                data.labels[~held],
                data.classes,
                _directions(moved, data.labels[some], data.classes, ~held[some]),
            )
            values[held] = rows[held] @ weights[fold].T
            unseen = _directions(moved, data.labels[some], data.classes, held[some])
            effects[fold] = (weights[fold] * unseen).sum(axis=1)
        return cls(tuple(drifts), weights.mean(axis=0), middle, effects.mean(axis=0), values)


def _drifted(logits: Logits, features: FeatureMap) -> Iterator[tuple[Drift, Logits]]:
    """Calibration logits after each drift, shape (N, C)."""
    rows = centre_rows(logits)
    samples, classes = rows.shape
    step = MOVE * features.temperature
    for k in range(classes if classes <= MOST_MOVED else 0):
        moved = rows.copy()
        moved[:, k] += step
        yield Drift("moved_logit", k, step), moved.astype(np.float32)
    yield Drift("scaled_logits", None, float(np.log(SCALE))), (rows * SCALE).astype(np.float32)
    rng = np.random.default_rng(_SEED)
    noise = rng.normal(size=rows.shape)[:, column_order(rows)] * features.spread
    yield Drift("noisy_logits", None, NOISE), (rows + NOISE * noise).astype(np.float32)
    partners = rng.permutation(samples)
    yield Drift("mixed_samples", None, 1.0), ((rows + rows[partners]) / 2).astype(np.float32)


def _directions(moved: Sequence[Floats], labels: Integers, classes: int, used: Mask) -> Floats:
    """Effect of each drift on the mean features (J, M); all classes with a sample in `used` have equal weight.

    If `used` selects no sample, as with large groups, all samples count.
    """
    used = used if used.any() else np.ones_like(used)
    present = np.unique(labels[used])
    return np.stack([_class_means(move[used], labels[used], classes)[present].mean(axis=0) for move in moved])


def _most_sensitive(rows: Floats, labels: Integers, classes: int, directions: Floats) -> Floats:
    """Combinations (J, M) most sensitive to each direction (J, M), with equal class means and unit variance within
    classes.
    """
    means = _class_means(rows, labels, classes)
    counts = np.bincount(labels, minlength=classes)
    residuals = (rows - means[labels]) / np.sqrt(classes * counts[labels])[:, np.newaxis]
    deviations = np.sqrt((residuals**2).sum(axis=0))
    scale = np.where(deviations > _NEGLIGIBLE, deviations, 1.0)
    residuals = residuals / scale
    correlation = residuals.T @ residuals
    sizes, axes = np.linalg.eigh(correlation + _RIDGE * np.eye(scale.size))
    whiten = (axes / np.sqrt(sizes)).T / scale
    targets = remove_directions(tangents(means), whiten, directions @ whiten.T)
    weights = targets @ whiten
    spread = np.sqrt(((residuals @ (weights * scale).T) ** 2).sum(axis=0))[:, np.newaxis]
    # Combinations with almost no variance would only amplify rounding errors and differences between folds.
    usable = spread > _LEAST_SPREAD * np.linalg.norm(weights * scale, axis=1, keepdims=True)
    return np.divide(weights, spread, out=np.zeros_like(weights), where=usable & (spread > 0))


def tangents(means: Floats) -> Floats:
    """Directions in which a change of prevalence moves the mean features, shape (C - 1, M), for class means (C, M)."""
    return means[1:] - means[0]


def remove_directions(directions: Floats, whiten: Floats, vectors: Floats) -> Floats:
    """Vectors (J, K) in whitened coordinates minus their parts along the directions (T, M), whitened by (K, M)."""
    if directions.shape[0] == 0:
        return vectors
    _, sizes, axes = np.linalg.svd(directions @ whiten.T, full_matrices=False)
    span = axes[sizes > _NEGLIGIBLE * max(float(sizes[0]), np.finfo(np.float64).tiny)]
    return vectors - (vectors @ span.T) @ span


def _class_means(rows: Floats, labels: Integers, classes: int) -> Floats:
    """Mean row of each class, shape (C, M); 0 for a class without a row."""
    if classes > MANY_CLASSES:
        counts = np.bincount(labels, minlength=classes)
        means = np.zeros((classes, rows.shape[1]))
        means[counts > 0] = member_sums(rows, labels) / counts[counts > 0, np.newaxis]
        return means
    onehot = one_hot(labels, classes)
    return (onehot / np.maximum(onehot.sum(axis=0), 1)).T @ rows


def _rows_of_every_class(data: LabeledLogits) -> Integers:
    """Select at most _ROWS samples: the first ones of each class, equally many up to the smallest limit."""
    each = max(2, _ROWS // data.classes)
    return np.sort(
        np.concatenate([np.flatnonzero(data.labels == k)[:each] for k in range(data.classes)])
    ).astype(np.int64)


@dataclass(frozen=True, eq=False)
class GroupedResiduals:
    """Calibration features minus their class mean, sorted by group."""

    rows: Floats
    """shape (N, K)"""
    labels: Integers
    """shape (N,)"""
    first: Integers
    """shape (G,), index of the first row of each group"""

    def covariance(self, shares: Floats) -> Floats:
        """Covariance, (K, K), of the sum over all rows, each times the share of its class (C,), sampled group by
        group.
        """
        sums = np.add.reduceat(self.rows * shares[self.labels][:, np.newaxis], self.first, axis=0)
        groups = self.first.size
        return sums.T @ sums * (groups / (groups - 1) if groups > 1 else 1.0)


@dataclass(frozen=True, eq=False)
class ClassSpread:
    """Means and covariances of features within each calibration class."""

    counts: Integers
    """shape (C,)"""
    means: Floats
    """shape (C, K)"""
    covariances: Floats
    """shape (C, K, K)"""
    everywhere: Floats
    """shape (K, K), covariance over all classes with equal weights"""
    freedom: Floats
    """shape (C,), samples (or groups, if any) of each class minus one, at least one"""
    grouped: GroupedResiduals | None

    @classmethod
    def of(cls, rows: Floats, data: LabeledLogits) -> Self:
        """Compute from features (N, K) of the calibration samples."""
        counts, labels = data.counts, data.labels
        means = class_means(rows, data).T
        residuals = rows - means[labels]
        covariances = np.empty((data.classes, rows.shape[1], rows.shape[1]))
        for k in range(data.classes):
            own = residuals[labels == k]
            covariances[k] = own.T @ own / max(len(own) - 1, 1)
        between = means - means.mean(axis=0)
        everywhere = covariances.mean(axis=0) + between.T @ between / data.classes
        freedom = np.maximum(independent_cases(data) - 1.0, 1.0)
        return cls(counts, means, covariances, everywhere, freedom, _grouped(residuals, data))

    def covariance(self, prevalence: Floats, samples: float) -> Floats:
        """Covariance, (K, K), of a window's mean minus the mix of class means, without the effect of a changed mix.

        Args:
            prevalence: shape (C,), positive.
            samples: independent samples in the window.
        """
        window, fixed = self._parts(prevalence, samples)
        own = self.counts / (self.counts + PSEUDO_SAMPLES)
        alone = (window + (fixed if self.grouped is None else 0.0)) * own
        total: Floats = np.tensordot(alone, self.covariances, 1)
        if self.grouped is not None:
            total += self.grouped.covariance(np.sqrt(fixed / self.counts))
        borrowed = (window + fixed) * (1 - own)
        away = self.means - self.means.mean(axis=0)
        return total + borrowed.sum() * self.everywhere + (away.T * (borrowed * own)) @ away

    def degrees_of_freedom(self, prevalence: Floats, samples: float, scale: Floats) -> float:
        """Degrees of freedom of that covariance (Welch and Satterthwaite), with all features in units of `scale`
        (K,).
        """
        variances = np.diagonal(self.covariances, axis1=1, axis2=2)
        own = (self.counts / (self.counts + PSEUDO_SAMPLES))[:, np.newaxis]
        mixed = own * variances + (1 - own) * np.diag(self.everywhere)
        window, fixed = self._parts(prevalence, samples)
        parts = (window + fixed) * (mixed / scale**2).sum(axis=1)
        squares = float((parts**2 / self.freedom).sum())
        return float(parts.sum() ** 2 / squares) if squares > 0 else float(self.freedom.sum())

    def _parts(self, prevalence: Floats, samples: float) -> tuple[Floats, Floats]:
        """Weight of each class's covariance in the part of the window and in that of the calibration set, (C,) each."""
        units = self.freedom + 1
        trust = np.maximum(1 - DOUBTED / units, 0.5)
        return prevalence / samples, prevalence**2 / (trust * self.counts)


def _grouped(residuals: Floats, data: LabeledLogits) -> GroupedResiduals | None:
    """Residuals by group; None without groups."""
    if data.groups is None:
        return None
    order, first = sort_into_runs(np.unique(data.groups, return_inverse=True)[1])
    return GroupedResiduals(residuals[order], data.labels[order], first.astype(np.int64))
