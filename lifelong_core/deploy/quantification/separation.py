"""Can a calibration set tell the classes apart? (thesis section 6.1.3, assumption ii, Ex. 6.5)"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.simplex import tangent_basis
from lifelong_core.deploy.softmax import one_hot

MINIMUM_SEPARATION = 1e-4
"""The classes' mean features span a simplex; this is how thin it may be: its smallest singular value, on directions
that sum to zero, in units of the features' standard deviation. In a thinner one some change of the prevalence hardly
shows: to see it would take a hundred million samples."""

MINIMUM_EVIDENCE = 3.0
"""A direction in which the class means differ by less than this, squared and in units of what chance explains, may be
none at all. In the benchmark's data it was 4.6 or more (100 classes with 50 samples each) and mostly above 100; where
two mixes truly look alike it was 0.7 or less."""

_ROUNDING = 1e-12
"""Features that spread no more than this are constant but for rounding."""


@dataclass(frozen=True)
class Separation:
    """How well mean features tell mixes of the classes apart."""

    thinnest: float
    """smallest singular value of the class means, in standard deviations of the features"""
    pair: tuple[int, int]
    """the classes that move most along the thinnest direction, one up and one down"""
    blurred: Floats
    """shape (K, C), unit vectors that sum to zero: changes of the prevalence that may change no mean feature"""

    @classmethod
    def of(cls, features: Floats, calibration: LabeledLogits) -> Self:
        """Of the calibration samples' features, shape (N, F)."""
        counts, labels = calibration.counts, calibration.labels
        means = features.T @ (one_hot(labels, calibration.classes) / counts)
        within = ((features - means.T[labels]) ** 2).sum(axis=1)
        pooled = float(within.sum()) / max(labels.size - counts.size, 1)
        own = np.bincount(labels, within, minlength=counts.size) / np.maximum(counts - 1, 1)
        chance = np.where(counts > 1, own, pooled) / counts
        basis = tangent_basis(calibration.classes)
        _, sizes, rows = np.linalg.svd(means @ basis, full_matrices=False)
        # With fewer features than classes some directions show in none of them.
        lacking = basis.shape[1] - sizes.size
        if lacking:
            rows = np.linalg.svd(means @ basis)[2]
            sizes = np.concatenate([sizes, np.zeros(lacking)])
        directions = rows @ basis.T
        spread = float(np.sqrt(features.var(axis=0).sum()))
        evidence = sizes**2 / np.maximum(directions**2 @ chance, np.finfo(np.float64).tiny)
        thinnest = directions[-1]
        return cls(
            thinnest=float(sizes[-1]) / spread if spread > _ROUNDING else 0.0,
            pair=(int(np.argmax(thinnest)), int(np.argmin(thinnest))),
            blurred=directions[evidence < MINIMUM_EVIDENCE],
        )

    def ambiguity(self, prevalence: Floats) -> Floats:
        """Covariance, shape (C, C), of moving a prevalence along the blurred directions as far as the simplex goes."""
        reach = np.array([_reach(prevalence, direction) for direction in self.blurred])
        scaled = self.blurred * reach[:, np.newaxis]
        return scaled.T @ scaled


def _reach(prevalence: Floats, direction: Floats) -> float:
    """The longest step along the direction, forth or back, that leaves no class below 0."""
    down, up = direction < 0, direction > 0
    return float(max((prevalence[down] / -direction[down]).min(), (prevalence[up] / direction[up]).min()))
