"""Means over the cases of a calibration set, under a given class mix, with intervals that respect groups."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import t_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Figure:
    """A value with the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassMixMean:
    """Mean in a population with class mix P: sum_k P(k) * (mean over the cases of class k)."""

    value: float
    variance: float
    """variance of the value, for fixed numbers of cases of each class"""
    freedom: float
    """degrees of freedom of the variance"""
    units: int
    """independent cases: groups where the data have them"""
    samples: int

    @classmethod
    def of(cls, values: Floats, data: LabeledLogits, class_mix: Floats) -> Self:
        """Compute the mean of one number per case.

        Args:
            values: shape (N,).
            data: the cases; classes without a case are left out.
            class_mix: shape (C,).
        """
        present = data.counts > 0
        counts = np.maximum(data.counts, 1)
        shares = np.where(present, class_mix, 0.0)
        shares = shares / shares.sum()
        by_class = np.bincount(data.labels, values, minlength=data.classes) / counts
        influence = (shares / counts)[data.labels] * (values - by_class[data.labels])
        value = float(shares @ by_class)
        if data.groups is None:
            correction = counts / np.maximum(counts - 1, 1)
            parts = np.bincount(data.labels, influence**2, minlength=data.classes) * correction
            variance = float(parts.sum())
            spread = float((parts**2 / np.maximum(counts - 1, 1)).sum())
            freedom = variance**2 / spread if spread > 0 else float(data.samples - 1)
            return cls(value, variance, max(freedom, 1.0), data.samples, data.samples)
        _, member = np.unique(data.groups, return_inverse=True)
        sums = np.bincount(member, influence)
        units = sums.size
        variance = float((sums**2).sum()) * units / max(units - 1, 1)
        return cls(value, variance, float(max(units - 1, 1)), units, data.samples)

    def __sub__(self, other: "ClassMixMean") -> "ClassMixMean":
        """The difference of the means of two independent sets (Welch)."""
        variance = self.variance + other.variance
        spread = self.variance**2 / self.freedom + other.variance**2 / other.freedom
        freedom = variance**2 / spread if spread > 0 else min(self.freedom, other.freedom)
        return ClassMixMean(
            self.value - other.value,
            variance,
            freedom,
            min(self.units, other.units),
            min(self.samples, other.samples),
        )

    def reach(self, confidence: float = CONFIDENCE) -> float:
        """Half the width of the interval, by the t distribution."""
        return float(np.sqrt(self.variance) * t_quantile(self.freedom, (1 + confidence) / 2))

    def figure(self, lowest: float, highest: float) -> Figure:
        """Mean with its interval, within the range of the values.

        Where the variance is 0, the interval is that of an event with no occurrence among the cases (Clopper and
        Pearson 1934).
        """
        if self.variance > 0:
            reach = self.reach()
            return Figure(self.value, max(self.value - reach, lowest), min(self.value + reach, highest))
        share = 1 - ((1 - CONFIDENCE) / 2) ** (1 / self.units)
        low = self.value - share * (self.value - lowest)
        high = self.value + share * (highest - self.value)
        return Figure(self.value, low, high)

    def share_figure(self) -> Figure:
        """Share of cases with its interval (Wilson 1927, at the effective number of cases)."""
        if not 0 < self.value < 1 or self.variance <= 0:
            return self.figure(0.0, 1.0)
        count = min(self.value * (1 - self.value) / self.variance, float(self.samples))
        square = float(t_quantile(self.freedom, (1 + CONFIDENCE) / 2)) ** 2
        centre = (self.value + square / (2 * count)) / (1 + square / count)
        reach = np.sqrt(square * (self.value * (1 - self.value) / count + square / (4 * count**2))) / (
            1 + square / count
        )
        return Figure(self.value, float(max(centre - reach, 0.0)), float(min(centre + reach, 1.0)))
