"""Quantifiers that count decisions or add up probabilities: plain, adjusted, and adjusted on adapted scores."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.numerics.simplex import simplex_least_squares, tangent_basis
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, Logits, softmax
from lifelong_core.values.scientific import solve


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


class AdjustedCount(FittedQuantifier):
    """Minimise |M p - q| over the simplex: q is the window's mean feature, column k of M that of calibration class
    k.
    """

    def _fit(self) -> None:
        self._own = self._features(self.calibration.logits)
        self._means = class_means(self._own, self.calibration)
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
    decisions_only = True

    def _features(self, rows: Logits) -> Floats:
        return one_hot(rows.argmax(axis=1), rows.shape[1])


class ProbabilisticAdjustedClassifyAndCount(AdjustedCount):
    """PACC: features are softmax probabilities (Bella et al. 2010)."""

    method = "PACC"

    def _features(self, rows: Logits) -> Floats:
        return softmax(rows.astype(np.float64))


class BlackBoxShiftEstimation(AdjustedClassifyAndCount):
    """BBSE: importance weights from the joint confusion matrix (Lipton et al. 2018).

    w solves C w = q, where C[i, k] is the share of all calibration samples that are of class k and decided as i,
    and q the share of the window's decisions; the estimate is w times the calibration set's prevalence. Where the
    solution is a prevalence, it is that of ACC. They differ where sampling noise makes weights negative: here those
    become 0 and the rest is scaled to sum to 1, while ACC finds the mix of all classes that fits best.
    """

    method = "BBSE"

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        joint = self._means * self.calibration.prevalence
        importance = np.maximum(solve(joint, mean_feature(features, counts)), 0)
        prevalence = importance * self.calibration.prevalence
        return prevalence / prevalence.sum()


def adjusted_influence(
    means: Floats, window: Floats, own: Floats, labels: np.ndarray, prevalence: Floats
) -> Influence:
    """Influences of least squares on the simplex, without its bounds (which only widens the interval).

    Args:
        means: shape (F, C), mean feature of each calibration class.
        window: shape (U, F), features of the window's distinct rows.
        own: shape (M, F), features of the calibration samples.
        labels: shape (M,), of the calibration samples.
        prevalence: shape (C,), point of the linearisation.
    """
    basis = tangent_basis(prevalence.size)
    sensitivity = (basis @ np.linalg.pinv(means @ basis)).T
    expected, by_class = prevalence @ means.T @ sensitivity, means.T @ sensitivity
    pulls = own @ sensitivity
    pushes = (pulls - by_class[labels]) * prevalence[labels][:, np.newaxis]
    return Influence(window @ sensitivity - expected, pulls - expected, -pushes)


def matching_directions(means: Floats, precision: Floats) -> Floats:
    """Change of argmin sum_f precision_f (q - means @ p)_f^2 on the simplex per change of q, shape (F, C).

    Args:
        means: shape (F, C).
        precision: shape (F,), not negative.
    """
    basis = tangent_basis(means.shape[1])
    weighted = means * precision[:, np.newaxis]
    information = basis.T @ (means.T @ weighted) @ basis
    return weighted @ basis @ np.linalg.pinv(information, hermitian=True, rcond=1e-14) @ basis.T


def matching_influence(
    window: Floats, own: Floats, calibration: LabeledLogits, prevalence: Floats
) -> Influence:
    """Influences of a prevalence that matches mean features of the window to a mix of the classes' mean features.

    Near a match, features of the window pull the estimate, and features of a calibration class push it, in proportion
    to the prevalence of the class.

    Args:
        window: shape (U, C), pull of the window's distinct rows: their features times `matching_directions`.
        own: shape (M, C), pull of the calibration samples as part of the window.
        calibration: the calibration set.
        prevalence: shape (C,), point of the linearisation.
    """
    labels = calibration.labels
    pulls = class_means(own, calibration).T
    expected = prevalence @ pulls
    pushes = (own - pulls[labels]) * prevalence[labels][:, np.newaxis]
    return Influence(window - expected, own - expected, -pushes)


@dataclass(frozen=True)
class ScoreAdaptedCount:
    """Mix of the classes' mean posteriors nearest to the window's mean posterior.

    Near the true prevalence, the posterior is the most informative feature. The calibration does not bias the estimate,
    provided that the calibration samples' posteriors are cross-fitted.
    """

    calibration: LabeledLogits
    crossfitted: Floats
    """log posteriors of the calibration samples at their own prevalence, shape (M, C)"""

    def solve(self, scores: Floats, counts: Floats, prevalence: Floats) -> Floats:
        """Estimate, (C,), from log posteriors at the calibration set's prevalence, (U, C), with their counts.

        Posteriors are taken under `prevalence`, which is positive.
        """
        window, own = self._posteriors(scores, prevalence)
        return simplex_least_squares(class_means(own, self.calibration), mean_feature(window, counts))

    def influence(self, scores: Floats, prevalence: Floats) -> Influence:
        """Influence of each sample on the estimate.

        It acts through the means only: a change of the posteriors' definition moves the window's mean and the classes'
        means equally.
        """
        window, own = self._posteriors(scores, prevalence)
        means = class_means(own, self.calibration)
        return adjusted_influence(means, window, own, self.calibration.labels, prevalence)

    def _posteriors(self, scores: Floats, prevalence: Floats) -> tuple[Floats, Floats]:
        shift = np.log(prevalence / self.calibration.prevalence)
        return softmax(scores + shift), softmax(self.crossfitted + shift)
