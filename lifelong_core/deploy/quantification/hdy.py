"""HDy: matching of histograms of the softmax probabilities."""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lifelong_core.deploy.checks import as_whole_number
from lifelong_core.deploy.labeled import class_means
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.numerics.simplex import simplex_least_squares, simplex_minimum
from lifelong_core.deploy.quantification.counting import matching_directions, matching_influence
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, Logits, softmax

LEAST_DISTANCE = 1e-4
"""Lower bound of the distance between a histogram and its match: at 0 the slope of the Hellinger distance is
infinite."""

MOST_BINS = 1000


@dataclass(frozen=True)
class MeanHellingerDistance:
    """Mean over channels of the Hellinger distance between a histogram and a mix of histograms."""

    target: Floats
    """shape (K, B), histogram of each channel"""
    components: Floats
    """shape (K, B, C), histograms of the classes"""

    def value(self, weights: Floats) -> float:
        """Mean distance; nearly convex, because each squared distance is convex."""
        return float(self.distances(weights).mean())

    def distances(self, weights: Floats) -> Floats:
        """Distance in each channel, shape (K,)."""
        squares = (np.sqrt(self.target) - np.sqrt(self.components @ weights)) ** 2
        return np.sqrt(squares.sum(axis=1) + LEAST_DISTANCE**2)

    def quadratic_model(self, weights: Floats) -> tuple[Floats, Floats]:
        """Quadratic model of the weighted sum of squared distances, which has the same gradient and is nowhere
        smaller.
        """
        mixture = self.components @ weights
        precision = 1 / (self.distances(weights) * mixture.shape[0])[:, np.newaxis]
        used = (self.target > 0) & (mixture > 0)
        ratios = self.components[used] / mixture[used][:, np.newaxis]
        affinity = (precision * np.sqrt(self.target * mixture))[used]
        total = (precision[:, :, np.newaxis] * self.components).sum(axis=(0, 1)) / 2
        gradient = total - affinity @ ratios / 2
        return gradient, (ratios * affinity[:, np.newaxis]).T @ ratios / 4


class HellingerDistanceHistograms(FittedQuantifier):
    """HDy: the mix of classes with the histograms of softmax probabilities nearest to those of the window.

    There is one histogram for each class's probability; the mean of their Hellinger distances is minimised
    (González-Castro et al. 2013, for many classes as distribution matching, Firat 2016).

    Settings:
        bins: number of bins of equal width per histogram; 8 by default.
    """

    method = "HDy"
    defaults = MappingProxyType({"bins": 8})

    def _fit(self) -> None:
        self._bins = as_whole_number(self.settings["bins"], 2, MOST_BINS, field="bins")
        self._own = self._features(self.calibration.logits)
        self._check_separated(self._own)
        self._means = class_means(self._own, self.calibration)

    def _features(self, rows: Logits) -> Floats:
        """One-hot bins of each class's probability, shape (N, C * bins)."""
        probabilities = softmax(rows.astype(np.float64))
        bins = np.minimum((probabilities * self._bins).astype(np.int64), self._bins - 1)
        return np.hstack([one_hot(column, self._bins) for column in bins.T])

    def _distance(self, features: Floats, counts: Floats) -> MeanHellingerDistance:
        shape = (self.calibration.classes, self._bins)
        return MeanHellingerDistance(
            mean_feature(features, counts).reshape(shape),
            self._means.reshape(*shape, self.calibration.classes),
        )

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        return simplex_minimum(self._distance(features, counts), self.calibration.prevalence)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        # A channel weighs the more the better it matches; near a match a bin weighs as its variance says.
        distances = self._distance(features, counts).distances(prevalence)
        expected = self._means @ prevalence
        precision = np.zeros_like(expected)
        np.divide(np.repeat(1 / distances, self._bins), expected, out=precision, where=expected > 0)
        directions = matching_directions(self._means, precision)
        return matching_influence(features @ directions, self._own @ directions, self.calibration, prevalence)

    def _second_solution(self, features: Floats, counts: Floats, prevalence: Floats) -> Floats:  # noqa: ARG002
        """Estimate by least squares, which is not biased by bins with few or no samples."""
        return simplex_least_squares(self._means, mean_feature(features, counts))
