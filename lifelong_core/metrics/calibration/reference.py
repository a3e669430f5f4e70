"""The calibration error that perfectly calibrated predictions have by chance, as a reference for a measured one.

The labels are drawn many times; bins and kernels are computed once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration.binned import as_norm, bin_edges
from lifelong_core.metrics.calibration.density import Smoothing, evaluated_rows
from lifelong_core.metrics.calibration.kernel import (
    PAIRED_SAMPLES,
    as_subsample,
    draw_subsample,
    kernel_calibration_error,
    median_pairwise_distance,
)
from lifelong_core.metrics.inputs import Parameters
from lifelong_core.metrics.scores.samples import as_labelled_probabilities
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.values.arrays import Floats, Integers, as_groups, read_only
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import distances, weighted_counts

CALIBRATION_ERRORS = ("ECE", "CWCE", "TCE", "MCE", "CE", "KCE", "ECE_KDE")
"""Metrics that are not 0 for perfectly calibrated predictions of few cases, but for the unbiased KCE."""

DEFAULT_DRAWS = 200
SHARED_NUMBERS = 50
"""Random numbers, evenly spaced, by which the dependence of labels with one random number is computed"""

ErrorOfLabels: TypeAlias = Callable[[Integers], Any]
"""function of the labels (N,), with one number, or shape (C,) for MCE and CWCE"""


@dataclass(frozen=True, eq=False)
class CalibratedReference:
    """A calibration error of the same probabilities, with labels that were drawn from them."""

    draws: Floats
    """shape (R,), or (R, C) for MCE and CWCE: the error with each set of labels"""
    correlation: float
    """of the labels within a group, beyond what the probabilities tell; 0 without groups"""

    @property
    def mean(self) -> Floats:
        """Mean error of perfectly calibrated predictions, shape () or (C,)."""
        return self.draws.mean(axis=0)

    def quantile(self, share: float = 0.95) -> Floats:
        """The error that this share of calibrated data sets does not exceed, shape () or (C,)."""
        return np.quantile(self.draws, share, axis=0)


def calibrated_reference(
    acronym: str,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    draws: int = DEFAULT_DRAWS,
    rng: int = 0,
    **parameters: Any,
) -> CalibratedReference:
    """Calibration error of perfectly calibrated predictions of the same size, probabilities and groups.

    Of few cases, every calibration error but the unbiased KCE is positive by chance alone. So the labels are drawn
    anew from the predicted probabilities, which makes these calibrated, and the error is computed with them (the
    consistency resampling of Bröcker and Smith, 2007). What a model's error exceeds the mean by is evidence of
    miscalibration; an error below the 95 % quantile is no evidence of any.

    Labels of a group, such as the images of a patient, are drawn together so often that the products of their errors
    e_y - p are as large as those of the given labels. Bandwidths and subsamples are those of the given labels.

    Args:
        acronym: ECE, CWCE (the error of each class), TCE, MCE, CE, KCE or ECE_KDE.
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        groups: shape (N,), e.g. patients; None: all samples are independent.
        draws: number of sets of labels, 1 or more.
        rng: seed of the labels and of subsamples.
        parameters: those of the metric, as `compute_metrics` takes them.

    Raises:
        InvalidInputError: there is no such calibration error or parameter, a shape or a value does not fit, or there
            are fewer than two samples.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> probabilities = rng.dirichlet([1, 1, 1], 200)
        >>> labels = (rng.random((200, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
        >>> found = calibrated_reference("ECE", labels, probabilities)
        >>> round(float(found.mean), 3), round(float(found.quantile()), 3)
        (0.075, 0.108)
    """
    if acronym not in CALIBRATION_ERRORS:
        raise InvalidInputError(
            f"{str(acronym)[:80]!r} is no calibration error.",
            field="acronym",
            hint=f"Calibration errors: {', '.join(CALIBRATION_ERRORS)}.",
        )
    if draws < 1:
        raise InvalidInputError(f"expected at least one, got {draws}.", field="draws")
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    if reference.size < 2:
        raise InvalidInputError("expected at least two samples.", field="labels")
    keys = as_groups(groups, samples=reference.size)
    unit = np.arange(reference.size) if keys is None else np.unique(keys, return_inverse=True)[1]
    return reference_of(
        acronym, reference, predicted, unit.astype(np.int64), Parameters.of(parameters), draws=draws, seed=rng
    )


def reference_of(
    acronym: str,
    labels: Integers,
    probabilities: Floats,
    unit: Integers,
    chosen: Parameters,
    *,
    draws: int,
    seed: int,
) -> CalibratedReference:
    """`calibrated_reference` of checked arrays; samples of one unit, shape (N,), are a group."""
    error = error_of_labels(acronym, labels, probabilities, chosen, seed=seed)
    correlation = within_group_correlation(labels, probabilities, unit)
    generator = np.random.default_rng([seed, 2])
    found = [
        np.asarray(error(draw_labels(probabilities, unit, correlation, generator)), dtype=np.float64)
        for _ in range(draws)
    ]
    return CalibratedReference(read_only(np.stack(found)), correlation)


def within_group_correlation(labels: Integers, probabilities: Floats, unit: Integers) -> float:
    """Mean product of the errors e_y - p of two samples of a group, relative to that of labels that are drawn with one
    random number; 0..1.

    The product of two samples of different groups is taken off: that is what miscalibration makes of it.

    Examples:
        >>> labels, unit = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
        >>> round(within_group_correlation(labels, np.full((4, 2), 0.5), unit), 6)
        1.0
        >>> within_group_correlation(labels, np.full((4, 2), 0.5), np.arange(4))
        0.0
    """
    unit = np.unique(unit, return_inverse=True)[1]
    if int(unit.max()) + 1 == labels.size:
        return 0.0
    gaps = truth_gaps(labels, probabilities)
    spread = np.sqrt(np.maximum(1 - np.square(probabilities).sum(axis=1), 0))
    groups = int(unit.max()) + 1
    sums, spreads = np.zeros((groups, gaps.shape[1])), np.zeros(groups)
    np.add.at(sums, unit, gaps)
    np.add.at(spreads, unit, spread)
    within = np.square(sums).sum() - np.square(gaps).sum()
    within_scale = np.square(spreads).sum() - np.square(spread).sum()
    between = np.square(sums.sum(axis=0)).sum() - np.square(sums).sum()
    between_scale = spreads.sum() ** 2 - np.square(spreads).sum()
    shared = _products_of_shared_numbers(probabilities, unit)
    if not shared > 0:
        return 0.0
    bias = max(between / between_scale, 0.0) if between_scale > 0 else 0.0
    return float(np.clip((within - bias * within_scale) / shared, 0.0, 1.0))


def _products_of_shared_numbers(probabilities: Floats, unit: Integers) -> float:
    """Expected sum of the products of errors over all pairs of a unit, if one random number draws all their labels."""
    classes, groups = probabilities.shape[1], int(unit.max()) + 1
    bounds = probabilities.cumsum(axis=1)[:, :-1]
    means: Floats = np.zeros((groups, classes))
    np.add.at(means, unit, probabilities)
    squares = float(np.square(probabilities).sum())
    total = 0.0
    for number in (np.arange(SHARED_NUMBERS) + 0.5) / SHARED_NUMBERS:
        drawn = (number >= bounds).sum(axis=1)
        counts = np.bincount(classes * unit + drawn, minlength=groups * classes).reshape(groups, classes)
        at_drawn = np.take_along_axis(probabilities, drawn[:, np.newaxis], axis=1)
        own = drawn.size - 2 * at_drawn.sum() + squares
        total += float(np.square(counts - means).sum() - own)
    return total / SHARED_NUMBERS


def draw_labels(
    probabilities: Floats, unit: Integers, correlation: float, generator: np.random.Generator
) -> Integers:
    """Labels from probabilities (N, C), shape (N,); those of one unit depend on each other.

    A sample takes the random number of its unit with probability sqrt(correlation), so that two samples of a unit
    have the same one with probability `correlation`; otherwise its own.
    """
    numbers = generator.random(len(probabilities))
    if correlation > 0:
        is_shared = generator.random(len(probabilities)) < math.sqrt(correlation)
        numbers = np.where(is_shared, generator.random(int(unit.max()) + 1)[unit], numbers)
    found = np.zeros(len(probabilities), np.int64)
    bound = np.zeros(len(probabilities))
    for column in probabilities.T[:-1]:
        bound += column
        found += numbers >= bound
    return found


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
                [cells.error((drawn == k).astype(np.float64), norm) for k, cells in enumerate(of_class)]
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


def _canonical_error(of_class: Sequence[_Cells], drawn: Integers, *, norm: float) -> float:
    return sum(cells.error((drawn == k).astype(np.float64), norm) for k, cells in enumerate(of_class))


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
