"""Quantifiers by maximum likelihood with kernel density estimates of the softmax probabilities."""

from functools import cached_property
from types import MappingProxyType

import numpy as np

from lifelong_core.deploy.labeled import class_means, stratified_folds
from lifelong_core.deploy.numerics.simplex import mixture_weights, simplex_least_squares, smooth
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.kernels import MINIMUM_BANDWIDTH, ClassKernels, Points
from lifelong_core.deploy.quantification.mixture import MixtureLinearisation
from lifelong_core.deploy.quantification.uncertainty import Influence, pseudo_weights
from lifelong_core.values.arrays import Floats, Logits, as_bandwidth, softmax

FLOOR = 1e-12
"""Constant added to every density, as in QuaPy: without it a sample far from all kernels would dominate the
estimate."""

FOLDS = 5

LARGEST_EXPONENT = 300.0
"""Exponent with a finite exponential, beside which 1 vanishes by rounding."""


class KernelDensityQuantifier(FittedQuantifier):
    """Gaussian kernel densities of the softmax probabilities for each class (Moreo et al. 2025).

    Kernels smooth the classes and so bias the estimate, the more the fewer calibration samples there are. The interval
    therefore includes the squared difference from a second estimate, which is consistent for any densities: PACC on
    their posteriors under the estimated prevalence, with class means from calibration samples that are not part of the
    densities.
    """

    def _fit(self) -> None:
        self._bandwidth = as_bandwidth(self.settings["bandwidth"], smallest=MINIMUM_BANDWIDTH)
        self._own = softmax(self.calibration.logits.astype(np.float64))
        self._check_separated(self._own)
        self._kernels = ClassKernels.at(self._own, self.calibration, self._bandwidth)

    def _features(self, rows: Logits) -> Floats:
        """Softmax probabilities and the posteriors of the densities, (N, 2 C).

        Posteriors are taken at the calibration set's prevalence. Their mean over close samples keeps the information of
        the samples, so summaries store these means.
        """
        probabilities = softmax(rows.astype(np.float64))
        points = Points.merge(probabilities, np.ones(len(rows)), self._bandwidth)
        return np.hstack([probabilities, self._posteriors(points.places)[points.place_of]])

    def _split(self, features: Floats) -> tuple[Floats, Floats]:
        """Softmax probabilities, (U, C), and densities up to a factor per row, (U, C)."""
        probabilities, posteriors = np.hsplit(features, 2)
        return probabilities, posteriors / self.calibration.prevalence

    def _posteriors(self, places: Floats) -> Floats:
        return _posteriors(self._floored(*self._kernels.densities(places)), self.calibration.prevalence)

    def _floored(self, densities: Floats, scale: Floats) -> Floats:
        """Densities plus the floor, which is scaled by each row's factor too."""
        dimensions = self.calibration.classes
        log_floor = np.log(FLOOR) + dimensions / 2 * np.log(2 * np.pi * self._bandwidth**2) - scale
        # Far from all kernels the floor alone is seen; there it need not be the right size.
        return densities + np.exp(np.minimum(log_floor, LARGEST_EXPONENT))[:, np.newaxis]

    @cached_property
    def _crossfitted(self) -> Floats:
        """Densities at the calibration samples from kernels at the samples of other folds, shape (M, C)."""
        own, folds = self._own, stratified_folds(self.calibration, FOLDS)
        if not folds.any():
            return self._floored(*self._kernels.densities(own))
        densities = np.empty_like(own)
        for fold in range(1 + int(folds.max())):
            held = folds == fold
            kernels = ClassKernels.at(own[~held], self.calibration.select(~held), self._bandwidth)
            densities[held] = self._floored(*kernels.densities(own[held]))
        return densities

    def _second_solution(self, features: Floats, counts: Floats, prevalence: Floats) -> Floats:
        assumed = smooth(prevalence, float(counts.sum()))
        means = class_means(_posteriors(self._crossfitted, assumed), self.calibration)
        window = _posteriors(self._split(features)[1], assumed)
        return simplex_least_squares(means, mean_feature(window, counts))


class KernelDensityMaximumLikelihood(KernelDensityQuantifier):
    """KDEyML: the prevalence with the largest likelihood of the window, given kernel densities of the classes.

    Settings:
        bandwidth: standard deviation of the kernel, 0.1 by default.
    """

    method = "KDEyML"
    defaults = MappingProxyType({"bandwidth": 0.1})

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        return mixture_weights(self._split(features)[1], counts, self.calibration.prevalence)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        probabilities, densities = self._split(features)
        window = Points.merge(probabilities, counts, self._bandwidth)
        at_window = np.zeros_like(window.places)
        np.add.at(at_window, window.place_of, densities * counts[:, np.newaxis])
        places = np.vstack([window.places, self._kernels.centres])
        at_own = self._posteriors(self._kernels.centres) / self.calibration.prevalence
        own = np.bincount(self._kernels.centre_of, pseudo_weights(self.calibration)).astype(np.float64)
        linear = MixtureLinearisation.at(
            prevalence, np.vstack([at_window, at_own]), np.concatenate([window.counts, own])
        )
        at_window, at_own = np.split(linear.influences(), [window.counts.size])
        centre_of = self._kernels.centre_of
        return Influence(
            at_window[window.place_of], at_own[centre_of], self._centre_effects(places, linear)[centre_of]
        )

    def _centre_effects(self, places: Floats, linear: MixtureLinearisation) -> Floats:
        """Influence of the kernel at each centre on the estimate, up to a constant per class, (U, C).

        A kernel of class k at u adds K_iu to the density of k at place i. The ratios of place i then change by (e_k -
        p_k ratios_i) K_iu / mixture_i.
        """
        label = self._kernels.class_of
        direct, through = np.zeros(label.size), np.zeros((label.size, linear.prevalence.size))
        for rows, kernels, scale in self._kernels.chunks(places):
            mixture = self._floored(self._kernels.sums(kernels), scale) @ linear.prevalence
            shares = linear.weights[rows] / mixture
            direct += shares @ kernels
            through += kernels.T @ (linear.ratios[rows] * shares[:, np.newaxis])
        own_class = linear.sensitivity[label] * direct[:, np.newaxis]
        return own_class - through @ linear.sensitivity * linear.prevalence[label][:, np.newaxis]


def _posteriors(densities: Floats, prevalence: Floats) -> Floats:
    weighted = densities * prevalence
    return weighted / weighted.sum(axis=1, keepdims=True)
