"""KDEyHD and KDEyCS: match kernel densities of the softmax probabilities by a divergence."""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lifelong_core.deploy.checks import as_whole_number
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.numerics.simplex import (
    non_negative_minimum,
    simplex_minimum,
)
from lifelong_core.deploy.quantification.counting import matching_directions, matching_influence
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.kdey import (
    MINIMUM_BANDWIDTH,
    ClassKernels,
    KernelDensityQuantifier,
    Points,
    kernel_chunks,
)
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, Logits, as_bandwidth, softmax

MOST_TRIALS = 1_000_000

LARGEST_SEED = 2**32

FLOOR = 1e-15
"""Smallest density at the reference points, in units of the kernel's height."""


@dataclass(frozen=True)
class SampledHellingerDistance:
    """Squared Hellinger distance between a density and a mix of densities, by importance sampling."""

    target: Floats
    """shape (T,), density at the reference points over that of the reference"""
    components: Floats
    """shape (T, C), densities of the classes over that of the reference"""

    def value(self, weights: Floats) -> float:
        """Squared distance; convex in the weights."""
        return float(((np.sqrt(self.components @ weights) - np.sqrt(self.target)) ** 2).mean())

    def quadratic_model(self, weights: Floats) -> tuple[Floats, Floats]:
        """Gradient and second derivatives."""
        mixture = self.components @ weights
        ratios = self.components / mixture[:, np.newaxis]
        affinity = np.sqrt(self.target * mixture) / mixture.size
        gradient = self.components.mean(axis=0) - affinity @ ratios
        return gradient, (ratios * affinity[:, np.newaxis]).T @ ratios / 2


class KernelDensityHellinger(KernelDensityQuantifier):
    """KDEyHD: the mix of the classes' kernel densities with the smallest Hellinger distance from the window's density.

    The integral of the distance uses importance sampling over a fixed reference sample from the uniform mix of the
    classes' densities (Moreo et al. 2025). The window enters only through its density at those points.

    Settings:
        bandwidth: standard deviation of the kernel, 0.1 by default.
        trials: number of reference points, equally many of each class; 10,000 by default.
        seed: seed of the reference sample.
    """

    method = "KDEyHD"
    defaults = MappingProxyType({"bandwidth": 0.1, "trials": 10_000, "seed": 0})

    def _fit(self) -> None:
        super()._fit()
        trials = as_whole_number(self.settings["trials"], 1, MOST_TRIALS, field="trials")
        seed = as_whole_number(self.settings["seed"], 0, LARGEST_SEED, field="seed")
        self._reference = reference_sample(self._own, self.calibration, self._bandwidth, trials, seed)
        densities, self._scale = self._kernels.densities(self._reference)
        densities += FLOOR
        self._inverse = 1 / densities.mean(axis=1)
        self._components = densities * self._inverse[:, np.newaxis]

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        points = Points.merge(self._split(features)[0], counts, self._bandwidth)
        target = np.empty_like(self._inverse)
        shares = points.counts / counts.sum()
        for rows, kernels, scale in kernel_chunks(self._reference, points.places, self._bandwidth):
            target[rows] = kernels @ shares * np.exp(scale - self._scale[rows])
        target = (target + FLOOR) * self._inverse
        return simplex_minimum(
            SampledHellingerDistance(target, self._components), self.calibration.prevalence
        )

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        directions = matching_directions(self._components, 1 / (self._components @ prevalence))
        points = Points.merge(self._split(features)[0], counts, self._bandwidth)
        return matching_influence(
            self._pulls(points.places, directions)[points.place_of],
            self._pulls(self._kernels.centres, directions)[self._kernels.centre_of],
            self.calibration,
            prevalence,
        )

    def _pulls(self, places: Floats, directions: Floats) -> Floats:
        """Influence on the estimate of a kernel at each place, as part of the window's density, (U, C)."""
        pulls = np.zeros((places.shape[0], directions.shape[1]))
        for rows, kernels, scale in kernel_chunks(self._reference, places, self._bandwidth):
            ratios = self._inverse[rows] * np.exp(scale - self._scale[rows])
            pulls += kernels.T @ (directions[rows] * ratios[:, np.newaxis])
        return pulls


class KernelDensityCauchySchwarz(FittedQuantifier):
    """KDEyCS: the mix of the classes' kernel densities with the smallest Cauchy-Schwarz divergence from the window's
    density.

    It has a closed form (Moreo et al. 2025): with b_k the inner product of the densities of class k and of the window,
    and A the inner products among the classes, p maximises b.p / sqrt(p.A p); its direction solves a non-negative least
    squares problem. The window enters only through its mean density under each class.

    Settings:
        bandwidth: standard deviation of the kernel, 0.1 by default.
    """

    method = "KDEyCS"
    defaults = MappingProxyType({"bandwidth": 0.1})

    def _fit(self) -> None:
        self._bandwidth = as_bandwidth(self.settings["bandwidth"], smallest=MINIMUM_BANDWIDTH)
        own = softmax(self.calibration.logits.astype(np.float64))
        # The inner product of two Gaussians is a Gaussian of twice the variance.
        self._kernels = ClassKernels.at(own, self.calibration, np.sqrt(2) * self._bandwidth)
        self._own = self._features(self.calibration.logits)
        self._check_separated(self._own)
        means = class_means(self._own, self.calibration)
        self._products = (means + means.T) / 2

    def _features(self, rows: Logits) -> Floats:
        """Density of each class, convolved with a second kernel, in units of the kernels' height, shape (N, C)."""
        singles: Floats = np.ones(len(rows))
        points = Points.merge(softmax(rows.astype(np.float64)), singles, self._kernels.bandwidth)
        densities, scale = self._kernels.densities(points.places)
        return (densities * np.exp(scale)[:, np.newaxis] + FLOOR**2)[points.place_of]

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        weights = non_negative_minimum(self._products, mean_feature(features, counts))
        return weights / weights.sum()

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:  # noqa: ARG002
        inverse = np.linalg.pinv(self._products, hermitian=True, rcond=1e-14)
        directions = inverse - np.outer(inverse.sum(axis=1), prevalence)
        return matching_influence(features @ directions, self._own @ directions, self.calibration, prevalence)


def reference_sample(
    probabilities: Floats, calibration: LabeledLogits, bandwidth: float, trials: int, seed: int
) -> Floats:
    """Draw points from the uniform mix of the classes' kernel densities, shape (T, C), equally many of each class.

    Permuting the classes permutes the columns: classes are drawn in the order of their mean probability.
    """
    labels, counts = calibration.labels, calibration.counts
    own = probabilities[np.arange(labels.size), labels]
    order = np.argsort(np.bincount(labels, own) / counts, kind="stable")
    rng = np.random.default_rng(seed)
    each = max(1, trials // counts.size)
    points = list[Floats]()
    for label in order.tolist():
        # As many kernels as samples allow, evenly through the calibration set: less noise than drawing them.
        centres = np.flatnonzero(labels == label)[np.arange(each) * counts[label] // each]
        noise = np.empty((each, counts.size))
        noise[:, order] = rng.normal(0, bandwidth, (each, counts.size))
        points.append(probabilities[centres] + noise)
    return np.vstack(points)
