"""Reference scores: mean scores of a head in a population with the prevalence that it assumes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.deploy.labeled import LabeledLogits, check_every_class, class_means
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import chi_square_quantile, t_quantile

ZONE_CONFIDENCE = 0.99
"""Probability, over calibration sets, that the zone around the expectation contains the true one."""

NEAREST_STEPS = 4
"""Steps of the search for the nearest point; more steps hardly reduce the distance."""

_TINY = np.finfo(np.float64).tiny

_LOST = 1e-12
"""Relative size of a sum below which it is rounding error."""


@dataclass(frozen=True, eq=False)
class ScoreReference(ArrayValue):
    """Moments of a head's scores in a population with its assumed prevalence, and their uncertainty."""

    expectation: Floats
    """shape (C,), mean score"""
    class_means: Floats
    """shape (C, C), column k: mean score of class k"""
    spread: Floats
    """shape (C, C), covariance of one sample's scores"""
    error: Floats
    """shape (C, C), covariance of `expectation`, due to the sampling of the calibration set"""
    degrees_of_freedom: Floats
    """shape (C,), of the diagonal of `error`"""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("expectation", "class_means", "spread", "error", "degrees_of_freedom"):
            object.__setattr__(self, name, read_only(as_parameter(getattr(self, name), field=name)))

    @classmethod
    def of(cls, calibration: LabeledLogits, head: PostProcessingHead) -> Self:
        """Compute the reference of a head from the calibration set of its model.

        Scores of a head on its own training samples are optimistic. If it was fitted on this set, each sample is scored
        by a head fitted without the sample's fold. The error includes separate sampling of the classes, and the groups
        of the calibration set.

        The error must not vanish for few equal samples: n samples can miss a share of the class, of the order of 1 / n,
        with other scores. It therefore includes one additional sample of each class, with the mean score of another
        class or with certainty for its own class, each of these C scores with equal weight. The assumption is that the
        missed share has no other scores. In particular it has no high score in a class whose own samples have low ones:
        if the head assumes a tiny prevalence of a class, all its scores and their uncertainty are low; otherwise the
        zone would include the return of the class.

        Raises:
            InvalidInputError: calibration set and head have different classes.
            UnidentifiableError: a class has no calibration sample.
        """
        if calibration.classes != head.classes:
            raise InvalidInputError(
                f"expected {head.classes} classes like the head's, got {calibration.classes}.",
                field="calibration",
            )
        check_every_class(calibration)
        labels, prevalence = calibration.labels, head.assumed_prevalence
        scores = held_out_output(calibration, head).probabilities
        means = class_means(scores, calibration)
        expectation = means @ prevalence
        weights = (prevalence * (1 / calibration.counts))[labels]
        deviations = scores - expectation
        error, freedom = _sampling_error(
            (scores - means.T[labels]) * weights[:, np.newaxis],
            means,
            prevalence,
            calibration,
        )
        return cls(expectation, means, deviations.T @ (deviations * weights[:, np.newaxis]), error, freedom)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.expectation.size

    def tolls(self, bets: Floats, tolerance: float) -> Floats:
        """Largest value of bet @ (mean score - expectation) inside the zone, shape (J,), for bets of shape (J, C).

        The zone is the sum of two convex sets. The first contains the true expectation with ZONE_CONFIDENCE: it is the
        intersection of a box (simultaneous t intervals) and an ellipsoid (Scheffe 1959), each with half of the error
        probability. The second is the effect on the mean score of moving up to `tolerance` of the population between
        classes. (Support functions of convex sets add up; that of an intersection is at most the smaller.)
        """
        moved = bets @ self.class_means
        tolerated = tolerance * (moved.max(axis=1) - moved.min(axis=1))
        lengths = np.sqrt(np.maximum(((bets @ self.error) * bets).sum(axis=1), 0))
        return tolerated + np.minimum(np.abs(bets) @ self._half_widths, lengths * self._radius)

    def nearest(self, deviations: Floats, metric: Floats, tolerance: float) -> Floats:
        """Points of the zone (its ellipsoid and its tolerated moves) near to deviations of shape (K, C), same shape.

        Each step of the method of Frank and Wolfe (1956) moves towards the zone's extreme point in the direction of the
        residual, to the best point on this line. Any point of the zone is valid; the nearest gives the best bet.
        """
        points = np.zeros_like(deviations)
        for _ in range(NEAREST_STEPS):
            direction = (deviations - points) @ metric
            moved = direction @ self.class_means
            reached = direction @ self.error
            squares = reached * direction
            # A sum that is only rounding error must not be a divisor.
            length = np.sqrt(np.maximum(squares.sum(axis=1), _LOST * np.abs(squares).sum(axis=1) + _TINY))
            gained = self.class_means.T[moved.argmax(axis=1)] - self.class_means.T[moved.argmin(axis=1)]
            step = tolerance * gained + self._radius / length[:, np.newaxis] * reached - points
            squared = np.maximum(((step @ metric) * step).sum(axis=1), _TINY)
            share = np.clip((direction * step).sum(axis=1) / squared, 0, 1)
            points = points + share[:, np.newaxis] * step
        return points

    @cached_property
    def _half_widths(self) -> Floats:
        """Half widths of the zone's box, shape (C,)."""
        return self._intervals((1 + ZONE_CONFIDENCE) / 2)

    def _intervals(self, confidence: float) -> Floats:
        """Half widths of intervals that are valid for all classes at once (Bonferroni), shape (C,)."""
        tests = 1 if self.classes == 2 else self.classes  # with two classes both intervals are equal
        quantile = t_quantile(self.degrees_of_freedom, 1 - (1 - confidence) / (2 * tests))
        return quantile * np.sqrt(np.maximum(np.diag(self.error), 0))

    @cached_property
    def _radius(self) -> float:
        """Radius of the zone's ellipsoid, in standard errors: a chi quantile times the ratio of the t to the normal
        quantile.
        """
        variances = np.diag(self.error)
        if not variances.any():
            return 0.0
        confidence = (1 + ZONE_CONFIDENCE) / 2
        freedom = float(variances @ self.degrees_of_freedom / variances.sum())
        heavier = t_quantile(freedom, (1 + confidence) / 2) / np.sqrt(chi_square_quantile(1, confidence))
        return float(np.sqrt(chi_square_quantile(self.classes - 1, confidence)) * heavier)


def _sampling_error(
    residuals: Floats, means: Floats, prevalence: Floats, calibration: LabeledLogits
) -> tuple[Floats, Floats]:
    """Covariance (C, C) of the sum of the residuals, and degrees of freedom (C,) by Welch and Satterthwaite.

    Args:
        residuals: shape (N, C), each sample's share in the error, zero mean in each class.
        means: shape (C, C), column k: mean score of class k.
        prevalence: shape (C,), weights of the classes.
        calibration: labels and groups of the samples.
    """
    classes = calibration.classes
    member, part = _independent_parts(calibration)
    _, firsts, index = np.unique(part, return_index=True, return_inverse=True)
    owner = calibration.labels[firsts]
    independent = np.bincount(owner, minlength=classes).astype(np.float64)
    shares = np.zeros((owner.size, classes))
    np.add.at(shares, index, residuals)
    shares *= np.sqrt(independent / np.maximum(independent - 1, 1))[owner][:, np.newaxis]
    # One additional sample of each class with one of C equally likely scores: the mean score of another class, or
    # certainty for its own. Mean square around the class's mean score, by class, without an array of C^3 numbers.
    weights = prevalence**2 / (independent * (independent + 1) * classes)
    certain = np.eye(classes) - means
    mixed = np.outer(means.sum(axis=1), means @ weights)
    added = weights.sum() * means @ means.T - mixed - mixed.T
    added += (classes * means * weights) @ means.T + (certain * weights) @ certain.T
    sums = np.zeros((int(member.max()) + 1, classes))
    np.add.at(sums, member[firsts], shares)
    # Row k: the variances due to class k.
    others = (means**2).sum(axis=1) - 2 * means.T * means.sum(axis=1) + classes * means.T**2
    by_class = weights[:, np.newaxis] * (others + certain.T**2)
    np.add.at(by_class, owner, shares**2)
    freedom = np.full(classes, independent.sum())
    squares = (by_class**2 / independent[:, np.newaxis]).sum(axis=0)
    np.divide(by_class.sum(axis=0) ** 2, squares, out=freedom, where=squares > 0)
    return sums.T @ sums + added, freedom


def _independent_parts(calibration: LabeledLogits) -> tuple[Integers, Integers]:
    """Group of each sample, and its part, the samples of one class in one group, as numbers of shape (N,) each."""
    if calibration.groups is None:
        member = np.arange(calibration.samples, dtype=np.int64)
    else:
        member = np.unique(calibration.groups, return_inverse=True)[1].astype(np.int64)
    return member, member * calibration.classes + calibration.labels
