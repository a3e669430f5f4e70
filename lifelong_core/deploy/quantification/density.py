"""Quantifiers by kernel density estimates of the softmax probabilities, class by class."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats, Integers, Logits
from lifelong_core.deploy.quantification.base import FittedQuantifier
from lifelong_core.deploy.quantification.mixture import MixtureLinearisation
from lifelong_core.deploy.quantification.simplex import mixture_weights
from lifelong_core.deploy.quantification.uncertainty import Influence, pseudo_weights
from lifelong_core.deploy.softmax import one_hot, softmax
from lifelong_core.errors import InvalidInputError

FLOOR = 1e-12
"""Added to every density, as QuaPy does: a sample far from all kernels says nothing, instead of nearly everything."""

CELLS_PER_BANDWIDTH = 200
"""Points that share a cell of this grid are evaluated once, at their mean: it moves densities by some 1e-5
relative. Softmax probabilities cluster at the corners, so that a fifth of the points, or fewer, remain."""

MINIMUM_BANDWIDTH = 1e-4

_CHUNK = 1 << 20
"""Kernel values held in memory at once."""


@dataclass(frozen=True)
class Points:
    """Distinct places with the number of samples at each."""

    places: Floats
    """shape (U, C)"""
    counts: Floats
    """shape (U,)"""
    place_of: Integers
    """the place of each row that was merged"""

    @classmethod
    def merged(cls, values: Floats, counts: Floats, cell: float) -> Self:
        """Samples in one cell of a grid become one place, at their mean."""
        grid = np.ascontiguousarray(np.round(values / cell).astype(np.int64))
        keys = grid.view(np.dtype((np.void, grid.dtype.itemsize * grid.shape[1]))).ravel()
        place_of = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        totals = np.bincount(place_of, counts).astype(np.float64)
        sums = np.column_stack([np.bincount(place_of, column * counts) for column in values.T])
        return cls(sums / totals[:, np.newaxis], totals, place_of)


class KernelDensityMaximumLikelihood(FittedQuantifier):
    """KDEyML: the prevalence under which the window is most likely, with Gaussian kernel densities of the
    softmax probabilities for each class (Moreo et al. 2025).

    Settings:
        bandwidth: standard deviation of the kernel, 0.1 by default.
    """

    method = "KDEyML"
    defaults = MappingProxyType({"bandwidth": 0.1})

    def _fit(self) -> None:
        self._bandwidth = float(self.settings["bandwidth"])
        if not MINIMUM_BANDWIDTH <= self._bandwidth < np.inf:
            raise InvalidInputError(f"expected a number of at least {MINIMUM_BANDWIDTH}.", field="bandwidth")
        own = self._features(self.calibration.logits)
        self._check_separated(own)
        self._own = own
        singles: Floats = np.ones(own.shape[0])
        self._centres = Points.merged(own, singles, self._cell)
        onehot = one_hot(self.calibration.labels, self.calibration.classes) / self.calibration.counts
        self._shares = np.zeros((self._centres.counts.size, self.calibration.classes))
        np.add.at(self._shares, self._centres.place_of, onehot)

    @property
    def _cell(self) -> float:
        return self._bandwidth / CELLS_PER_BANDWIDTH

    def _features(self, rows: Logits) -> Floats:
        return softmax(rows.astype(np.float64))

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        points = Points.merged(features, counts, self._cell)
        return mixture_weights(self._densities(points.places), points.counts, self.calibration.prevalence)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        window = Points.merged(features, counts, self._cell)
        own = np.zeros(self._centres.counts.size)
        np.add.at(own, self._centres.place_of, pseudo_weights(self.calibration))
        places = np.vstack([window.places, self._centres.places])
        linear = MixtureLinearisation.at(
            prevalence, self._densities(places), np.concatenate([window.counts, own])
        )
        at_window, at_own = np.split(linear.influences(), [window.counts.size])
        return Influence(
            at_window[window.place_of], at_own[self._centres.place_of], self._centre_effects(places, linear)
        )

    def _centre_effects(self, places: Floats, linear: MixtureLinearisation) -> Floats:
        """How the kernel at each calibration sample moves the estimate, up to a constant per class, (M, C).

        A kernel of class k at u adds K_iu to the density of k at place i. The ratios of place i then change
        by (e_k - p_k ratios_i) K_iu / mixture_i.
        """
        size = self._centres.counts.size
        direct, through = np.zeros(size), np.zeros((size, linear.prevalence.size))
        for rows, kernels, floor in self._kernels(places):
            mixture = (kernels @ self._shares + floor[:, np.newaxis]) @ linear.prevalence
            pull = kernels.T * (linear.weights[rows] / mixture)
            direct += pull.sum(axis=1)
            through += pull @ linear.ratios[rows]
        labels, place = self.calibration.labels, self._centres.place_of
        own_class = linear.sensitivity[labels] * direct[place][:, np.newaxis]
        others = through[place] @ linear.sensitivity * linear.prevalence[labels][:, np.newaxis]
        return own_class - others

    def _densities(self, places: Floats) -> Floats:
        """Density of each class at each place, up to a factor per place, shape (U, C)."""
        parts = [kernels @ self._shares + floor[:, np.newaxis] for _, kernels, floor in self._kernels(places)]
        return np.vstack(parts)

    def _kernels(self, places: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Kernel values between places and centres, and the floor, both up to one factor per place; in chunks."""
        centres, variance = self._centres.places, self._bandwidth**2
        log_floor = np.log(FLOOR) + places.shape[1] / 2 * np.log(2 * np.pi * variance)
        squares = (centres**2).sum(axis=1)
        step = max(1, _CHUNK // centres.shape[0])
        for begin in range(0, places.shape[0], step):
            rows = slice(begin, begin + step)
            chunk = places[rows]
            kernels = chunk @ (centres.T / variance)
            kernels -= squares / (2 * variance)
            # The factor exp(-|x|^2 / 2 variance - shift) of each row is left out: only ratios between classes
            # matter.
            norm = (chunk**2).sum(axis=1) / (2 * variance)
            shift = np.maximum(kernels.max(axis=1), log_floor + norm)
            kernels -= shift[:, np.newaxis]
            np.exp(kernels, out=kernels)
            yield rows, kernels, np.exp(log_floor + norm - shift)
