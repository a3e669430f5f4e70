"""Kernel density estimates of the softmax probabilities, and the quantifier of their maximum likelihood."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.labeled import LabeledLogits, class_means, stratified_folds
from lifelong_core.deploy.numerics.simplex import (
    MixtureLinearisation,
    mixture_weights,
    simplex_least_squares,
    smooth,
)
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier, mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence, pseudo_weights
from lifelong_core.values.arrays import Floats, Integers, Logits, as_bandwidth, softmax

FLOOR = 1e-12
"""Constant added to every density, as in QuaPy: without it a sample far from all kernels would dominate the
estimate."""

FOLDS = 5

LARGEST_EXPONENT = 300.0
"""Exponent with a finite exponential, beside which 1 vanishes by rounding."""

CELLS_PER_BANDWIDTH = 50
"""Grid cells per bandwidth. Points in one cell are evaluated once, at their mean, which changes densities by some 1e-4
relative. Softmax probabilities cluster at the corners, so at most about a fifth of the points remains."""
MINIMUM_BANDWIDTH = 1e-4
SINGLE_PRECISION_BANDWIDTH = 0.05
"""From this bandwidth on, kernel values in single precision are accurate to 1e-4 relative."""
_CHUNK = 1 << 20
"""Kernel values held in memory at once."""


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


@dataclass(frozen=True)
class Points:
    """Distinct places with the number of samples at each."""

    places: Floats
    """shape (U, C)"""
    counts: Floats
    """shape (U,)"""
    place_of: Integers
    """shape (N,), place of each merged row"""

    @classmethod
    def merge(cls, values: Floats, counts: Floats, bandwidth: float) -> Self:
        """Merge rows in one cell of a grid, CELLS_PER_BANDWIDTH per bandwidth, into one place, at their mean."""
        grid = np.ascontiguousarray(np.round(values * (CELLS_PER_BANDWIDTH / bandwidth)).astype(np.int64))
        keys = grid.view(np.dtype((np.void, grid.dtype.itemsize * grid.shape[1]))).ravel()
        place_of = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        totals = np.bincount(place_of, counts).astype(np.float64)
        sums = np.column_stack([np.bincount(place_of, column * counts) for column in values.T])
        return cls(sums / totals[:, np.newaxis], totals, place_of)


@dataclass(frozen=True)
class ClassKernels:
    """Kernel centres at the calibration samples, in order of class; kernels have the height 1."""

    centres: Floats
    """shape (U, C)"""
    weights: Floats
    """shape (U,), the centre's share of its class: those of a class sum to 1"""
    first: Integers
    """shape (C,), each class's first centre"""
    centre_of: Integers
    """shape (M,), the centre of each calibration sample"""
    bandwidth: float

    @classmethod
    def at(cls, probabilities: Floats, calibration: LabeledLogits, bandwidth: float) -> Self:
        """Build kernels with centres at the calibration samples, merged within each class."""
        centres, weights, first = list[Floats](), list[Floats](), list[int]()
        centre_of = np.empty(calibration.samples, dtype=np.int64)
        total = 0
        for label, count in enumerate(calibration.counts.tolist()):
            own = np.flatnonzero(calibration.labels == label)
            points = Points.merge(probabilities[own], np.full(own.size, 1 / count), bandwidth)
            centre_of[own] = points.place_of + total
            centres.append(points.places)
            weights.append(points.counts)
            first.append(total)
            total += points.counts.size
        return cls(
            np.vstack(centres), np.concatenate(weights), np.array(first, dtype=np.int64), centre_of, bandwidth
        )

    @cached_property
    def class_of(self) -> Integers:
        """Class of each centre, shape (U,)."""
        return np.repeat(np.arange(self.first.size), np.diff(self.first, append=self.weights.size))

    def densities(self, places: Floats) -> tuple[Floats, Floats]:
        """Density of each class at each place, (P, C), up to a factor per row, and the logarithm of that factor,
        (P,).
        """
        parts = [(self.sums(kernels), scale) for _, kernels, scale in self.chunks(places)]
        return np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def sums(self, kernels: NDArray[np.float32]) -> Floats:
        """Weighted sum of kernel values, (P, U), over the centres of each class, (P, C)."""
        weighted = kernels * self.weights.astype(np.float32)
        return np.add.reduceat(weighted, self.first, axis=1, dtype=np.float64)

    def chunks(self, places: Floats) -> Iterator[tuple[slice, NDArray[np.float32], Floats]]:
        """Kernels between places and centres, (P, U), scaled to a row maximum of 1, and the logarithm of each row's
        scale.
        """
        return kernel_chunks(places, self.centres, self.bandwidth)


def kernel_chunks(
    places: Floats, centres: Floats, bandwidth: float
) -> Iterator[tuple[slice, NDArray[np.float32], Floats]]:
    """Compute Gaussian kernels between places and centres, in chunks of rows that bound the memory.

    Yields:
        the rows; the kernels, shape (P, U), divided by the largest of their row; its logarithm, shape (P,).
    """
    variance = bandwidth**2
    # Single precision takes a fraction of the time. An exponent is off by 1e-7 of its terms, which 1 / variance bounds.
    exact = np.float32 if bandwidth >= SINGLE_PRECISION_BANDWIDTH else np.float64
    scaled = (centres.T / variance).astype(exact)
    squares = ((centres**2).sum(axis=1) / (2 * variance)).astype(exact)
    step = max(1, _CHUNK // centres.shape[0])
    for begin in range(0, places.shape[0], step):
        rows = slice(begin, begin + step)
        exponents = places[rows].astype(exact) @ scaled
        exponents -= squares
        largest = exponents.max(axis=1)
        exponents -= largest[:, np.newaxis]
        kernels = np.exp(exponents.astype(np.float32, copy=False))
        yield rows, kernels, largest - (places[rows] ** 2).sum(axis=1) / (2 * variance)
