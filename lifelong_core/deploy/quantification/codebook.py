"""Parts of a summary that the calibration set fixes: the cells of the space of logits, and the scale of logits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.calibration.affine import fit_weighted
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.values.arrays import Floats, Integers, Logits, centre_rows, softmax

MOST_CELLS = 4096

_COARSE_CELLS = 64
_ITERATIONS = 8
_TRAINING_POINTS = 20_000
_SEED = 0
_CHUNK = 8192
_GRID = 2.0**20
"""Points and centres are multiples of 1 / _GRID. Products of two of them, and sums of thousands of products, are exact
in float64. Equal calibration sets therefore give equal cells on every processor and with any number of threads,
whatever the order of additions."""
_PARAMETER_DIGITS = 4
"""Significant digits of temperature and bias: fewer than the digits on which optimisers agree across machines."""
_SCALES = ((1.0, 1.0), (1 / 8, 0.1), (1 / 64, 0.1))
"""Points are square roots of softmax probabilities at these multiples of the calibrated logits, with these weights: the
first is the finest, where posteriors change; the others cover logits far beyond."""
_STRETCHES = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 8.0, 64.0)
"""Training points are mixes of two calibration samples, stretched by these factors in turn."""

_FACTOR = 8.0
"""Norms count as at most this many times the largest norm of the calibration set, and as at least the smallest one
divided by it: single rows with absurd logits do not move the mean."""


@dataclass(frozen=True)
class Codebook:
    """Cells in two levels: the nearest coarse centre, then the nearest of its own fine centres.

    Summaries of several processes and machines are added up, so learning gives the same codebook everywhere.
    """

    temperature: float
    bias: Floats
    """shape (C,); with the temperature, calibrates the logits"""
    coarse: Floats
    """shape (K, D)"""
    fine: Sequence[Floats]
    """K arrays of shape (cells, D), at most MOST_CELLS in all"""

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Learn the cells from a calibration set; a deterministic function of it.

        Cells are the means of a clustering, so they are small where points are dense and probabilities change. Mixed
        and stretched samples give cells between and beyond the calibration samples.
        """
        fitted = fit_weighted(calibration.logits, calibration.labels, np.ones(calibration.samples))
        temperature = float(_rounded(np.full(1, np.mean(fitted.temperature), dtype=np.float64))[0])
        bias = _rounded(fitted.bias)
        rng = np.random.default_rng(_SEED)
        rows = centre_rows(calibration.logits)
        first, second = rng.integers(rows.shape[0], size=(2, _TRAINING_POINTS))
        share = rng.uniform(-0.25, 1.25, size=(_TRAINING_POINTS, 1))
        stretch = np.resize(_STRETCHES, _TRAINING_POINTS)[:, np.newaxis]
        mixed = (rows[first] * share + rows[second] * (1 - share)) * stretch
        points = np.vstack([_view(rows, temperature, bias), _view(mixed, temperature, bias)])
        coarse = _cluster(points, _COARSE_CELLS, rng)
        member = _nearest(points, coarse)
        fine = list[Floats]()
        parts: list[Floats] = [points[member == cell] for cell in range(coarse.shape[0])]
        spreads = np.array(
            [float(((part - _on_grid(part.mean(axis=0))) ** 2).sum()) * len(part) for part in parts]
        )
        shares = np.sqrt(spreads) / np.sqrt(spreads).sum()
        for part, budget in zip(
            parts, (shares * (MOST_CELLS - len(parts))).astype(int).tolist(), strict=True
        ):
            fine.append(_cluster(part, 1 + budget, rng))
        return cls(temperature, bias, coarse, tuple(fine))

    def cells(self, logits: Logits) -> Integers:
        """Cell of each row, shape (N,), 0..MOST_CELLS - 1."""
        starts = np.cumsum([0, *(centres.shape[0] for centres in self.fine)])
        cells = np.empty(logits.shape[0], dtype=np.int64)
        for begin in range(0, logits.shape[0], _CHUNK):
            points = _view(centre_rows(logits[begin : begin + _CHUNK]), self.temperature, self.bias)
            coarse = _nearest(points, self.coarse)
            for cell, start in enumerate(starts[:-1].tolist()):
                rows = np.flatnonzero(coarse == cell)
                cells[begin + rows] = start + _nearest(points[rows], self.fine[cell])
        return cells


def _view(rows: Floats, temperature: float, bias: Floats) -> Floats:
    """Points of the cells' space: an affine map of centred logits at several scales, shape (N, D)."""
    scores = rows / temperature + bias
    return _on_grid(np.hstack([weight * np.sqrt(softmax(scores * scale)) for scale, weight in _SCALES]))


def _on_grid(values: Floats) -> Floats:
    return np.round(values * _GRID) / _GRID


def _rounded(values: Floats) -> Floats:
    """Round to this many significant digits of the largest value."""
    largest = float(np.abs(values).max(initial=0))
    digits = _PARAMETER_DIGITS - 1 - int(np.floor(np.log10(largest))) if largest > 0 else 0
    return np.round(values, digits)


def _nearest(points: Floats, centres: Floats) -> Integers:
    """Index of the nearest centre, shape (N,)."""
    return (points @ (-2 * centres.T) + (centres**2).sum(axis=1)).argmin(axis=1).astype(np.int64)


def _cluster(points: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Means of at most this many clusters (Lloyd 1982), shape (K, D)."""
    number = min(number, points.shape[0])
    centres = points[np.sort(rng.choice(points.shape[0], number, replace=False))]
    for _ in range(_ITERATIONS):
        # Centres that are nearest to no point are dropped.
        _, member, counts = np.unique(_nearest(points, centres), return_inverse=True, return_counts=True)
        centres = _on_grid(member_sums(points, member) / counts[:, np.newaxis])
    return centres


@dataclass(frozen=True, eq=False)
class LogitScale:
    """Log norms of a calibration set."""

    lowest: float
    highest: float
    """bounds of the log norms that count"""
    means: Floats
    """shape (C,), mean log norm of each class"""
    variances: Floats
    """shape (C,), variance within each class"""

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Compute the scale of a calibration set with samples of every class."""
        norms = np.linalg.norm(centre_rows(calibration.logits), axis=1)
        positive = norms[norms > 0]
        lowest, highest = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 1.0)
        blank = cls(
            float(np.log(lowest) - np.log(_FACTOR)),
            float(np.log(highest) + np.log(_FACTOR)),
            np.zeros(0),
            np.zeros(0),
        )
        values = blank.log_norms(calibration.logits)
        means = class_means(values[:, np.newaxis], calibration)[0]
        deviations = (values - means[calibration.labels]) ** 2
        variances = class_means(deviations[:, np.newaxis], calibration)[0]
        return cls(blank.lowest, blank.highest, means, variances)

    def log_norms(self, logits: Logits) -> Floats:
        """Logarithm of the norm of each row's centred logits, within the bounds, shape (N,)."""
        norms = np.linalg.norm(centre_rows(logits), axis=1)
        return np.log(np.clip(norms, np.exp(self.lowest), np.exp(self.highest)))

    def sums(self, logits: Logits) -> Floats:
        """Sum of the log norms and of their squares, shape (2,); sums of batches add up."""
        values = self.log_norms(logits)
        return np.array([values.sum(), (values**2).sum()])
