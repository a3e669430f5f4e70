"""From the scores of sources to expected gains with intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError

_LARGEST_BLOCK = 2_000_000
"""Nodes that are visited at once."""


@dataclass(frozen=True, eq=False)
class Residuals(ArrayValue):
    """Gain minus expected gain of R pairs of tasks whose target was left out of the fit with its data set."""

    values: Floats
    """(2, R): with the baseline of the target known, and not known"""
    weights: Floats
    """(R,), sum to 1: each data set of targets counts the same"""


@dataclass(frozen=True, eq=False)
class GainModel(ArrayValue):
    """Gain of one measure in one scenario.

    gain = level + baseline_slope * (baseline - mean_baseline) + score_slope * score + residual. Sources without a track
    record have residuals of their own, which are larger.
    """

    level: float
    """gain by an average source, mean over data sets"""
    mean_baseline: float
    baseline_slope: float
    score_slope: float
    """gain for a unit of the score on data sets that were left out, above 0"""
    measured: Residuals
    """of sources with a track record"""
    new: Residuals
    """of sources without one"""
    datasets: int
    """data sets of the targets"""

    def target_level(self, baseline: float | None) -> float:
        """Gain to expect from an average source."""
        if baseline is None:
            return self.level
        return self.level + self.baseline_slope * (baseline - self.mean_baseline)

    def expected_gains(self, scores: Floats, baseline: float | None) -> Floats:
        """Expected gain of each source, shape (K,)."""
        return self.target_level(baseline) + self.score_slope * scores

    def residual_variance(self, *, baseline_known: bool) -> float:
        """Mean square of the residuals of sources with a track record."""
        return float(self.measured.weights @ self.measured.values[0 if baseline_known else 1] ** 2)

    def residual_limits(
        self, confidence: float, *, is_measured: bool, baseline_known: bool
    ) -> tuple[float, float]:
        """Limits of the prediction interval around the expected gain (cross-conformal by data set).

        The data set of the new target is as likely as each known one to have the largest residuals, so one further data
        set with the most extreme ones is added (Vovk, 2015; Barber et al., 2021).
        """
        held = self.measured if is_measured else self.new
        residuals = held.values[0 if baseline_known else 1]
        tail = (1 - confidence) / 2
        extreme = 0.5 / (self.datasets + 1)
        order = np.argsort(residuals)
        weights = np.concatenate([[extreme], held.weights[order] * (1 - 2 * extreme), [extreme]])
        values = np.concatenate([residuals[order][:1], residuals[order], residuals[order][-1:]])
        below = np.cumsum(weights)
        low = values[np.searchsorted(below, tail)]
        high = values[min(int(np.searchsorted(below, 1 - tail)), values.size - 1)]
        return float(min(low, 0.0)), float(max(high, 0.0))


@dataclass(frozen=True, eq=False)
class Forest(ArrayValue):
    """Trees one behind the other; a child comes behind its parent.

    Raises:
        InvalidInputError: the arrays do not describe trees.
    """

    roots: NDArray[np.int32]
    """(trees,): index of each root"""
    features: NDArray[np.int16]
    """(nodes,): feature that a node asks for; -1: a leaf"""
    thresholds: NDArray[np.float64]
    """(nodes,): to the left goes what is not greater"""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    """(nodes,): indices of the children; a leaf's are its own"""
    missing_left: Mask
    """(nodes,): whether a missing value goes to the left"""
    values: NDArray[np.float64]
    """(nodes,): mean of the training values in a node"""
    feature_count: int

    def __post_init__(self) -> None:
        nodes = self.features.shape
        arrays = (self.features, self.thresholds, self.left, self.right, self.missing_left, self.values)
        if self.roots.ndim != 1 or not self.roots.size or any(array.shape != nodes for array in arrays):
            raise InvalidInputError("the arrays of the forest differ in shape.", field="forest")
        index = np.arange(self.features.size)
        inner = self.features >= 0
        # Children behind their parents: a descent ends, whatever the file says.
        forward = (self.left > index) & (self.right > index)
        inside = (np.maximum(self.left, self.right) < index.size) & (self.features < self.feature_count)
        rooted = (self.roots >= 0).all() and (self.roots < index.size).all()
        finite = np.isfinite(self.values).all() and np.isfinite(self.thresholds[inner]).all()
        if not (rooted and finite and (forward & inside)[inner].all()):
            raise InvalidInputError("the arrays describe no forest of trees.", field="forest")

    def predict(self, features: Floats) -> Floats:
        """Mean over the trees, shape (K,).

        Args:
            features: shape (K, `feature_count`), nan where missing; compared as float32, as in the fit.
        """
        rows = np.asarray(features, dtype=np.float32)
        block = max(1, _LARGEST_BLOCK // self.roots.size)
        parts = [self._predict(rows[start : start + block]) for start in range(0, len(rows), block)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _predict(self, rows: NDArray[np.float32]) -> Floats:
        node = np.repeat(self.roots[:, np.newaxis], len(rows), axis=1)
        places = np.arange(len(rows))
        while (inner := self.features[node] >= 0).any():
            value = rows[places, self.features[node]]
            to_left = np.where(np.isnan(value), self.missing_left[node], value <= self.thresholds[node])
            node = np.where(inner, np.where(to_left, self.left[node], self.right[node]), node)
        return self.values[node].mean(axis=0)
