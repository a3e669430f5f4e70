"""Random spread of a window's mean features around a mix of the calibration classes' means."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits, class_means, independent_cases
from lifelong_core.deploy.numerics.rows import sort_into_runs
from lifelong_core.values.arrays import Floats, Integers

PSEUDO_SAMPLES = 2.0
"""Weight of the covariance over all classes in that of one class, in samples: a feature that is absent in twenty
samples may occur once in thirty."""

DOUBTED = 4.0
"""The variance of a class's mean counts this many samples fewer, but at least half of them, because the features were
fitted on samples of the class. On synthetic data of four classes, where a class of 30 samples dominates the window,
detectors then vary at most as much as their standard errors; with 15 samples, up to 1.6 times."""


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
