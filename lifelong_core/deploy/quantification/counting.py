"""Quantifiers that count decisions or add up probabilities, without adjustment."""

from abc import abstractmethod

import numpy as np

from lifelong_core.deploy.numerics.rows import one_hot
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, Logits, softmax


class UnadjustedCount(FittedQuantifier):
    """Mean of features that lie on the simplex.

    It is biased towards the prevalence of the training data whenever the model errs. The interval includes the sampling
    of the window, not that bias. The method serves as a baseline only.
    """

    def _fit(self) -> None:
        self._own = self._features(self.calibration.logits)

    @abstractmethod
    def _features(self, rows: Logits) -> Floats: ...

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        return mean_feature(features, counts)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:  # noqa: ARG002
        return Influence(features - prevalence, self._own - prevalence, np.zeros_like(self._own))


class ClassifyAndCount(UnadjustedCount):
    """CC: the share of each class among the most probable classes (Forman 2008)."""

    method = "CC"

    def _features(self, rows: Logits) -> Floats:
        return one_hot(rows.argmax(axis=1), rows.shape[1])


class ProbabilisticClassifyAndCount(UnadjustedCount):
    """PCC: the mean softmax probability of each class (Bella et al. 2010)."""

    method = "PCC"

    def _features(self, rows: Logits) -> Floats:
        return softmax(rows.astype(np.float64))
