"""Calibration errors of the same probabilities with many sets of labels; bins and kernels are computed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np

from lifelong_core.metrics.calibration.binned import as_norm, bin_edges
from lifelong_core.metrics.calibration.density import Smoothing, evaluated_rows
from lifelong_core.metrics.calibration.kernel import (
    PAIRED_SAMPLES,
    as_subsample,
    draw_subsample,
    kernel_calibration_error,
    median_pairwise_distance,
)
from lifelong_core.metrics.catalogue.parameters import Parameters
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import distances, weighted_counts

CALIBRATION_ERRORS = ("ECE", "CWCE", "TCE", "MCE", "CE", "KCE", "ECE_KDE")
"""Metrics that are not 0 for perfectly calibrated predictions of few cases, but for the unbiased KCE."""

ErrorOfLabels: TypeAlias = Callable[[Integers], Any]
"""function of the labels (N,), with one number, or shape (C,) for MCE and CWCE"""


def error_of_labels(
    acronym: str, labels: Integers, probabilities: Floats, chosen: Parameters, *, seed: int
) -> ErrorOfLabels:
    """Return a calibration error of these probabilities as a function of the labels.

    Bandwidths and subsamples are those of the given labels.

    Args:
        acronym: one of `CALIBRATION_ERRORS`; CWCE gives the error of each class.
        labels: shape (N,), N of 2 or more.
        probabilities: shape (N, C).
        chosen: parameters of the metric.
        seed: of the subsamples.
    """
    norm = as_norm(chosen.norm)
    match acronym:
        case "ECE" | "TCE":
            bins = chosen.bins_or_default if acronym == "ECE" else chosen.bins
            decisions = probabilities.argmax(axis=1)
            confidence = np.take_along_axis(probabilities, decisions[:, np.newaxis], axis=1)[:, 0]
            cells = _Cells.of(confidence, bins, right_closed=chosen.right_closed)
            return lambda drawn: cells.error((decisions == drawn).astype(np.float64), norm)
        case "CWCE" | "MCE":
            bins = chosen.bins_or_default if acronym == "CWCE" else chosen.bins
            of_class = [_Cells.of(p, bins, right_closed=chosen.right_closed) for p in probabilities.T]
            return lambda drawn: np.array(
                [one.error((drawn == k).astype(np.float64), norm) for k, one in enumerate(of_class)]
            )
        case "CE":
            return partial(_canonical_error, _equal_rows(probabilities), norm=norm)
        case "KCE" if chosen.estimator == "unbiased":
            return _kernel_error(probabilities, chosen, seed)
        case "KCE":
            return lambda drawn: (
                kernel_calibration_error(
                    drawn,
                    probabilities,
                    estimator=chosen.estimator,
                    bandwidth=chosen.bandwidth,
                    subsample=chosen.subsample,
                    rng=seed,
                ).value
            )
        case _:
            return _density_error(labels, probabilities, chosen, norm, seed)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cases in bins, or with equal scores."""

    place: Integers
    """shape (N,), 0..G-1"""
    sizes: Floats
    """shape (G,)"""
    sums: Floats
    """shape (G,), of the scores"""

    @classmethod
    def of(cls, scores: Floats, bins: int | None, *, right_closed: bool) -> Self:
        """Bins as in `reliability`; None: exactly equal scores."""
        if bins is None:
            places = np.unique(scores, return_inverse=True)[1]
        else:
            side = "left" if right_closed else "right"
            places = np.searchsorted(bin_edges(bins)[1:-1], scores, side=side)
        place = np.unique(places, return_inverse=True)[1].astype(np.int64)
        size = int(place.max(initial=-1)) + 1
        return cls(
            place,
            np.bincount(place, minlength=size).astype(np.float64),
            weighted_counts(place, scores, size=size),
        )

    def error(self, hits: Floats, norm: float) -> float:
        """Mean over the cases of |mean score - share of hits|**norm of their cell."""
        gaps = np.abs(self.sums - weighted_counts(self.place, hits, size=self.sizes.size)) / self.sizes
        return float(self.sizes @ gaps**norm) / self.place.size


def _equal_rows(probabilities: Floats) -> Sequence[_Cells]:
    """For each class, the cases with equal probabilities of all classes."""
    place = np.unique(probabilities, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    sizes = np.bincount(place).astype(np.float64)
    return [_Cells(place, sizes, weighted_counts(place, p, size=sizes.size)) for p in probabilities.T]


def _canonical_error(cells: Sequence[_Cells], drawn: Integers, *, norm: float) -> float:
    return sum(one.error((drawn == k).astype(np.float64), norm) for k, one in enumerate(cells))


def _kernel_error(probabilities: Floats, chosen: Parameters, seed: int) -> ErrorOfLabels:
    generator = np.random.default_rng(seed)
    rows = draw_subsample(len(probabilities), as_subsample(chosen.subsample, PAIRED_SAMPLES), generator)
    points = probabilities[rows]
    width = chosen.bandwidth
    if width is None:
        width = median_pairwise_distance(points, rng=generator)
    if rows.size < 2 or not width > 0:
        return lambda _: float("nan")
    kernel = np.exp(distances(points, points) / -width)
    np.fill_diagonal(kernel, 0)

    def error(drawn: Integers) -> float:
        gaps = truth_gaps(drawn[rows], points)
        return float(np.vdot(kernel @ gaps, gaps)) / (rows.size * (rows.size - 1))

    return error


def _density_error(
    labels: Integers, probabilities: Floats, chosen: Parameters, norm: float, seed: int
) -> ErrorOfLabels:
    rows = evaluated_rows(labels.size, chosen.subsample, seed)
    smoothing = Smoothing.of(labels, probabilities, chosen.bandwidth, rng=seed)
    kernel = smoothing.weights_at(rows)
    totals = kernel.sum(axis=1, keepdims=True)
    shares = (kernel / np.where(totals > 0, totals, np.nan)).astype(np.float32)
    offsets = smoothing.offsets[rows]

    def error(drawn: Integers) -> float:
        nearby = shares @ smoothing.targets(drawn).astype(np.float32)
        return float((np.abs(nearby - offsets) ** norm).sum(axis=1).mean())

    return error
