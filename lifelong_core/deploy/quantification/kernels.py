"""Gaussian kernel density estimates of the softmax probabilities, class by class, evaluated in bulk."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats, Integers

CELLS_PER_BANDWIDTH = 50
"""Grid cells per bandwidth. Points in one cell are evaluated once, at their mean, which changes densities by some 1e-4
relative. Softmax probabilities cluster at the corners, so at most about a fifth of the points remains."""

MINIMUM_BANDWIDTH = 1e-4

SINGLE_PRECISION_BANDWIDTH = 0.05
"""From this bandwidth on, kernel values in single precision are accurate to 1e-4 relative."""

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
