"""Quantifiers that undo the model's confusions: mean features of the window as a mix of those of the classes."""

from abc import abstractmethod

import numpy as np

from lifelong_core.arrays import Floats, Logits
from lifelong_core.deploy.quantification.base import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.simplex import simplex_least_squares, tangent_basis
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.deploy.softmax import one_hot, softmax


class AdjustedCount(FittedQuantifier):
    """argmin |M p - q| over the simplex: q the window's mean feature, column k of M that of calibration class k."""

    def _fit(self) -> None:
        self._own = self._features(self.calibration.logits)
        self._means = self._class_means(self._own)
        self._check_separated(self._own)

    @abstractmethod
    def _features(self, rows: Logits) -> Floats: ...

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        return simplex_least_squares(self._means, mean_feature(features, counts))

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:  # noqa: ARG002
        return adjusted_influence(self._means, features, self._own, self.calibration.labels, prevalence)


class AdjustedClassifyAndCount(AdjustedCount):
    """ACC: features are the decisions of argmax (Forman 2008; least squares as Bunse 2022)."""

    method = "ACC"

    def _features(self, rows: Logits) -> Floats:
        return one_hot(rows.argmax(axis=1), rows.shape[1])


class ProbabilisticAdjustedClassifyAndCount(AdjustedCount):
    """PACC: features are softmax probabilities (Bella et al. 2010)."""

    method = "PACC"

    def _features(self, rows: Logits) -> Floats:
        return softmax(rows.astype(np.float64))


def adjusted_influence(
    means: Floats, window: Floats, own: Floats, labels: np.ndarray, prevalence: Floats
) -> Influence:
    """Influences of least squares on the simplex, as if no bound of it were active (which only widens)."""
    basis = tangent_basis(prevalence.size)
    sensitivity = (basis @ np.linalg.pinv(means @ basis)).T
    expected = means @ prevalence
    shifts = (own - means[:, labels].T) * prevalence[labels][:, np.newaxis]
    return Influence((window - expected) @ sensitivity, (own - expected) @ sensitivity, -shifts @ sensitivity)
