"""Covariance of an estimate from the influences of single samples."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.numerics.simplex import PSEUDO_SAMPLES
from lifelong_core.values.arrays import Floats, Integers


def pseudo_weights(calibration: LabeledLogits) -> Floats:
    """Weight of each calibration sample in the window, shape (M,): PSEUDO_SAMPLES per class."""
    return PSEUDO_SAMPLES / calibration.counts[calibration.labels]


@dataclass(frozen=True)
class Influence:
    """First-order effect of each sample on an estimate with C components."""

    window: Floats
    """shape (U, C), one row for each distinct row of the window: the estimate moves by the mean over the window's
    samples"""
    pseudo: Floats
    """shape (M, C): the same for the M calibration samples as part of the window"""
    calibration: Floats
    """shape (M, C): the estimate moves by the sum over classes of the mean over the class's calibration samples"""


@dataclass(frozen=True)
class Clusters:
    """Groups of a window's samples: entries with the number of samples of each group at each row.

    If only some of the groups are known, they are a random sample of all.
    """

    row: Integers
    """shape (E,), index of a distinct row of the window"""
    group: Integers
    """shape (E,), 0..G-1, each at least once"""
    counts: Floats
    """shape (E,), samples"""

    @classmethod
    def of(cls, groups: NDArray[np.generic]) -> Self:
        """Groups of a window whose rows are single samples, from their keys, shape (N,)."""
        member = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        return cls(np.arange(member.size), member, np.ones(member.size))

    @property
    def sizes(self) -> Floats:
        """Samples of each group, shape (G,)."""
        return np.bincount(self.group, self.counts).astype(np.float64)

    @property
    def number(self) -> float:
        """Equivalent number of groups of equal size, (sum m)^2 / sum m^2 (Kish 1965)."""
        sizes = self.sizes
        return float(sizes.sum() ** 2 / (sizes**2).sum())


def label_doubt(prevalence: Floats, rates: Floats) -> Floats:
    """Covariance, shape (C, C), of an estimate whose calibration labels may be wrong.

    If a share e_k of the samples labelled k are of other classes, in shares r_kj, then the labelled class k has the
    density (1 - e_k) f_k + e_k sum_j r_kj f_j. A mix of the labelled classes with the weights p is the mix of the true
    classes with p_j - w_j + sum_{k != j} w_k r_kj, where w_k = e_k p_k. The truth is therefore between p_j - w_j and
    p_j + sum_{k != j} w_k. One pattern of errors is the worst for class j: all wrong labels are of class j. The result
    is the sum over these patterns of the squared bias. Its interval covers at least as often as without a bias, also
    under the worst pattern, because |b + s Z| < 1.96 sqrt(s^2 + b^2) with a probability of 0.95 or more for any b.

    Args:
        prevalence: estimate from the labels as they are, (C,).
        rates: e, the largest share of wrong labels of each class, (C,).
    """
    wrong = rates * prevalence
    moves = wrong.sum() * np.eye(wrong.size) - wrong
    return moves.T @ moves


@dataclass(frozen=True)
class Spread:
    """Covariance of an estimate."""

    covariance: Floats
    """shape (C, C)"""
    degrees_of_freedom: Floats
    """shape (C,), by Welch and Satterthwaite; 0 where the spread is unknown"""
    effective_n: float


def combine(
    influence: Influence, calibration: LabeledLogits, counts: Floats, clusters: Clusters | None
) -> Spread:
    """Add up the covariances due to the window and to the calibration set, which is sampled class by class.

    Args:
        influence: influence of the samples.
        calibration: the calibration set.
        counts: shape (U,), samples at each distinct row of the window.
        clusters: groups of the window's samples; None: all are independent.
    """
    window, window_degrees, effective = _window_part(influence, calibration, counts, clusters)
    fixed, variances, degrees = _calibration_part(influence.calibration, calibration)
    covariance = window + fixed
    own: Floats = np.diag(window)
    if window_degrees == 0 or not degrees.all():
        return Spread(covariance, np.zeros_like(own), effective)
    squares = own**2 / window_degrees + (variances**2 / degrees[:, np.newaxis]).sum(axis=0)
    total = (own + variances.sum(axis=0)) ** 2
    freedom = np.full(own.size, float(window_degrees))
    np.divide(total, squares, out=freedom, where=squares > 0)
    if clusters is not None:
        # A few groups that happen to agree show next to no spread: the calibration set's certainty is not theirs.
        freedom = np.minimum(freedom, window_degrees)
    return Spread(covariance, freedom, effective)


def _window_part(
    influence: Influence, calibration: LabeledLogits, counts: Floats, clusters: Clusters | None
) -> tuple[Floats, int, float]:
    """Covariance, degrees of freedom (groups - 1) and effective sample size of the window."""
    samples = round(float(counts.sum()))
    scores = influence.window - counts @ influence.window / samples
    added = (influence.pseudo * pseudo_weights(calibration)[:, np.newaxis]).T @ influence.pseudo
    total = (samples + PSEUDO_SAMPLES * calibration.classes) ** 2
    alone = (scores.T @ (scores * counts[:, np.newaxis]) + added) / total
    if clusters is None:
        return alone * _correction(samples), samples - 1, float(samples)
    sizes = clusters.sizes
    sums = member_sums(scores[clusters.row] * clusters.counts[:, np.newaxis], clusters.group)
    known = samples / float(sizes.sum())
    clustered = (sums.T @ sums * known + added) / total
    spread = float(clusters.counts @ (scores[clusters.row] ** 2).sum(axis=1))
    design_effect = float((sums**2).sum()) / spread if spread > 0 else sizes.mean()
    # A group's samples can at most say all the same.
    effective = samples / min(max(design_effect, 1.0), float(sizes.max()))
    return clustered * _correction(sizes.size), sizes.size - 1, effective


def _calibration_part(scores: Floats, calibration: LabeledLogits) -> tuple[Floats, Floats, Floats]:
    """Covariance (C, C), with the variances (P, C) and degrees of freedom (P,) of its independent parts.

    The parts are the classes, or all together where groups may contain several classes.
    """
    labels, counts = calibration.labels, calibration.counts
    residuals = scores - (member_sums(scores, labels) / counts[:, np.newaxis])[labels]
    if calibration.groups is None:
        return _class_parts(residuals, labels, counts)
    _, member = np.unique(calibration.groups, return_inverse=True)
    sums = member_sums(residuals / counts[labels][:, np.newaxis], member)
    covariance = sums.T @ sums * _correction(sums.shape[0])
    # A class is known no better than its own groups allow; one group shows no spread between groups at all.
    sparsest = independent_cases(calibration).min()
    return covariance, np.diag(covariance)[np.newaxis, :], np.array([sparsest - 1.0])


def _class_parts(residuals: Floats, labels: Integers, counts: Integers) -> tuple[Floats, Floats, Floats]:
    corrections = np.array([_correction(count) for count in counts.tolist()])
    weighted = residuals * (np.sqrt(corrections) / counts)[labels][:, np.newaxis]
    covariance: Floats = weighted.T @ weighted
    variances, degrees = member_sums(weighted**2, labels), counts.astype(np.float64) - 1
    single = counts == 1
    freedom = labels.size - counts.size
    if single.any() and freedom > 0:
        # One sample shows no spread: it is taken to be that within the other classes, and to be badly known.
        pooled = residuals.T @ residuals / freedom
        covariance += single.sum() * pooled
        variances[single] = np.diag(pooled)
        degrees[single] = 1.0
    return covariance, variances, degrees


def _correction(count: int) -> float:
    """Bessel's correction n / (n - 1); 1 for a single unit, which shows no spread."""
    return count / (count - 1) if count > 1 else 1.0
