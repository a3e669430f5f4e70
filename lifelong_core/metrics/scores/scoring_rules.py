"""Strictly proper scoring rules: Brier score and negative log likelihood."""

import math
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import (
    EqualPredictions,
    as_labelled_probabilities,
    blocks,
    equal_predictions,
)
from lifelong_core.values.arrays import Floats, Integers


@metric(
    "BS",
    "Brier score",
    "Mean squared distance of the probabilities to the truth: discrimination and calibration in one.",
    definition="2.74",
    formula="mean_i sum_k (1[y_i=k]-p_ik)^2",
    undefined="no sample",
    bounds=(0, 2),
    orientation="down",
    family="calibration",
)
def brier_score(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean squared distance of the probabilities from the one-hot label (thesis Def. 2.74), in [0, 2], less is better.

    The sum is over all classes, also for two classes, where some libraries halve it.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        The score; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> brier_score([1, 0], [[0.5, 0.5], [1.0, 0.0]])
        0.25
    """
    return mean_squared_distance(*as_labelled_probabilities(labels, probabilities))


@metric(
    "RBS",
    "Root Brier score",
    "An upper bound of the calibration error of all class probabilities together, as a root mean square.",
    definition="2.74",
    formula="sqrt(BS)",
    undefined="no sample",
    bounds=(0, sqrt(2)),
    shown="[0,sqrt2]",
    orientation="down",
    invalid="sqrt 2",
    family="calibration",
)
def root_brier_score(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Root of the Brier score (thesis Def. 2.74), in [0, sqrt(2)], less is better.

    It bounds the root of the canonical calibration error of norm 2 from above, but not that of norm 1, and
    is no unbiased estimate of either.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        The score; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> root_brier_score([1, 0], [[0.5, 0.5], [1.0, 0.0]])
        0.5
    """
    return float(np.sqrt(brier_score(labels, probabilities)))


@metric(
    "BSS",
    "Brier skill score",
    "The part of the naive classifier's Brier score that is saved; 0 is no better than the prevalences.",
    definition="2.74",
    formula="1-BS/BS(prevalences)",
    undefined="no sample; 0/0 where the reference holds one class only and BS is 0 (else -inf)",
    bounds=(-inf, 1),
    shown="(-inf,1]",
    invalid="naive classifier value (0)",
    family="calibration",
)
def brier_skill_score(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """1 - Brier score / that of always predicting the class shares (thesis Def. 2.74), in [-inf, 1].

    More is better; 0 is as good as the naive prediction.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        The score; -inf where all cases are of one class, which the naive prediction gets right, but the
        probabilities do not; nan where both do (0/0) and where there is no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> brier_skill_score([1, 0], [[0.5, 0.5], [1.0, 0.0]])
        0.5
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    return skill(
        mean_squared_distance(reference, predicted), naive_brier_score(reference, predicted.shape[1])
    )


@metric(
    "NLL",
    "Negative log likelihood",
    "Mean surprise at the true class; infinite if a true class had probability 0.",
    definition="2.73",
    formula="-mean ln p_i,y",
    undefined="no sample",
    bounds=(0, inf),
    orientation="down",
    invalid="naive classifier value (entropy of prevalences)",
    family="calibration",
)
def negative_log_likelihood(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean of -ln of the true class's probability (thesis Def. 2.73), in [0, inf], less is better.

    Probabilities are not clipped: one true class of probability 0 makes it inf.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        The score; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> round(negative_log_likelihood([1, 0], [[0.5, 0.5], [1.0, 0.0]]), 4)
        0.3466
        >>> negative_log_likelihood([1], [[1.0, 0.0]])
        inf
    """
    return mean_log_loss(*as_labelled_probabilities(labels, probabilities))


@dataclass(frozen=True)
class BrierDecomposition:
    """Brier score = uncertainty - resolution + reliability (thesis Theorem 2.72)."""

    uncertainty: float
    """score of always predicting the class shares, in [0, 1]; depends on the data only"""
    resolution: float
    """distance of the class shares among equal predictions from those of all cases; more is better"""
    reliability: float
    """distance of predictions from the class shares among them, the squared canonical calibration error"""


def brier_decomposition(labels: ArrayLike, probabilities: ArrayLike) -> BrierDecomposition:
    """Parts of the Brier score, conditioned on exactly equal predictions (thesis Theorem 2.72 and Def. 2.74).

    Where no two predictions are equal, as is usual for a network's outputs, resolution equals uncertainty
    and reliability equals the score itself: round or bin the probabilities first to learn more.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        The three parts; nan where they are undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> parts = brier_decomposition([0, 1, 0, 1], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
        >>> parts.uncertainty, parts.resolution, parts.reliability
        (0.5, 0.0, 0.25)
    """
    return decompose(equal_predictions(*as_labelled_probabilities(labels, probabilities)))


def mean_squared_distance(labels: Integers, probabilities: Floats) -> float:
    """`brier_score` of checked arrays."""
    if labels.size == 0:
        return float("nan")
    gaps = (truth_gaps(labels[part], probabilities[part]) for part in blocks(*probabilities.shape))
    return math.fsum(float(np.vdot(part, part)) for part in gaps) / labels.size


def mean_log_loss(labels: Integers, probabilities: Floats) -> float:
    """`negative_log_likelihood` of checked arrays."""
    if labels.size == 0:
        return float("nan")
    likelihoods = probabilities[np.arange(labels.size), labels]
    if (likelihoods == 0).any():
        return float("inf")
    return 0.0 - float(np.log(likelihoods).mean())  # 0.0, not -0.0, if all are certain and right


def naive_brier_score(labels: Integers, classes: int) -> float:
    """Brier score of always predicting the class shares, 1 - sum of their squares; nan without any case."""
    if labels.size == 0:
        return float("nan")
    shares = np.bincount(labels, minlength=classes) / labels.size
    return float((shares * (1 - shares)).sum())


def skill(score: float, naive: float) -> float:
    """Skill 1 - score / naive; -inf for x/0 and nan for 0/0."""
    if naive == 0:
        return float("nan") if score == 0 else float("-inf")
    return 1 - score / naive


def truth_gaps(labels: Integers, probabilities: Floats) -> Floats:
    """One-hot labels less the probabilities, shape (N, C)."""
    gaps = -probabilities
    gaps[np.arange(labels.size), labels] += 1
    return gaps


def decompose(groups: EqualPredictions) -> BrierDecomposition:
    """`brier_decomposition` of grouped cases."""
    if groups.weights.size == 0:
        return BrierDecomposition(float("nan"), float("nan"), float("nan"))
    overall = groups.weights @ groups.class_shares
    return BrierDecomposition(
        uncertainty=float((overall * (1 - overall)).sum()),
        resolution=float(groups.weights @ np.square(groups.class_shares - overall).sum(axis=1)),
        reliability=float(groups.weights @ np.square(groups.class_shares - groups.probabilities).sum(axis=1)),
    )
