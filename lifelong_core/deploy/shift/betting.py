"""Bets against "the mean score lies in the zone": their choice, and their payoff for a bucket.

A bet is a vector w of C numbers; its toll h(w) is the largest w.(mean score - expectation) in the zone. Let
Y = w.(score - expectation) - h(w). If the true mean score lies in the zone, E[Y | past] <= 0 for every bet that is
chosen before the bucket is seen. Scores lie on the simplex, so that Y >= -r with r = w.expectation + h(w) - min(w). By
the inequality of Fan, Grama and Liu (2015, lemma 4.1), for l = r in [0, 1),

    exp(Y - k(l) Y^2) <= 1 + Y,    k(l) = (-log(1 - l) - l) / l^2,

so that the product of the left sides over samples is a test supermartingale: bounded by fair bets, it grows on average
by at most a factor of 1 (Howard et al. 2021; Waudby-Smith and Ramdas 2024). Its logarithm is sum Y - k(l) sum Y^2: it
needs only the first two moments of a bucket's scores, for any size of the bucket.

Samples of one group may depend on each other: the summed Y of a group of m samples still has E <= 0, and is at least
-m r, so that with l = (largest m) r the same holds for sums over groups instead of samples. The dependence within a
group is arbitrary.

The optimal length of a bet (Kelly 1956) is its gain divided by the second moment of Y under that gain, not by the
assumed one: if a class with a tiny assumed prevalence returns, its samples deviate a hundred times more than the
assumed spread. That deviation is unknown in advance; but scores lie on the simplex, and if they are sharp, a gain of
w.(mean score - expectation) = g increases the second moment by g times max(w) + min(w) - 2 w.expectation. A head that
assumes a prevalence of exactly 0 gives scores of 0 for the class, whose mean has no information: the class is only
detectable by lower scores of the others.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.shift.reference import ScoreReference
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_groups, as_logits, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError

LARGEST_STAKE = 0.5
"""Largest share of the capital that a bet can lose by one sample or group; larger bets are scaled down."""

SHIFTS = (0.015, 0.04, 0.1, 0.25)
"""Changes of a class's mean score, beyond the zone's edge, that the fixed bets target."""

_SMALLEST_SPREAD = 1e-3
"""Lower bound of the scores' spread in a direction, relative to the mean over directions."""

_ROUNDING = 1e-12
"""Scores with a smaller difference count as equal."""


@dataclass(frozen=True, eq=False)
class BucketScores(ArrayValue):
    """First two moments of the scores of one bucket; a score is a head's probabilities for one sample.

    The size does not depend on the number of samples, and buckets add up.

    Examples:
        >>> one = BucketScores(1, [0.75, 0.25], [[0.5625, 0.1875], [0.1875, 0.0625]])
        >>> (one + one).samples, (one + one).mean.tolist()
        (2, [0.75, 0.25])
    """

    samples: int
    """number of samples, not negative"""
    sums: Floats
    """shape (C,), sums of the samples' scores"""
    products: Floats
    """shape (C, C), sum over groups of the outer product of a group's summed scores; a sample without a group is its
    own group"""
    largest: float = 1.0
    """samples of the largest group, at least 1"""

    def __post_init__(self) -> None:
        """Freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        sums = as_parameter(self.sums, field="sums")
        products = as_parameter(self.products, field="products")
        if sums.ndim != 1 or sums.size < 2:
            raise InvalidInputError(f"expected shape (C,) with C >= 2, got {sums.shape}.", field="sums")
        if products.shape != sums.shape * 2:
            raise InvalidInputError(
                f"expected shape {sums.shape * 2}, got {products.shape}.", field="products"
            )
        if self.samples < 0:
            raise InvalidInputError("expected a number that is not negative.", field="samples")
        if not self.largest >= 1:
            raise InvalidInputError("expected a number of at least 1.", field="largest")
        object.__setattr__(self, "sums", read_only(sums))
        object.__setattr__(self, "products", read_only(products))

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.sums.size

    @property
    def mean(self) -> Floats:
        """Mean score, shape (C,); NaN without samples."""
        return self.sums / self.samples if self.samples else np.full(self.classes, np.nan)

    def __add__(self, other: Self) -> Self:
        """Join two buckets without a common group; associative and commutative up to rounding.

        Raises:
            InvalidInputError: the other has another number of classes.
        """
        if other.classes != self.classes:
            raise InvalidInputError(f"expected {self.classes} classes, got {other.classes}.", field="buckets")
        return type(self)(
            self.samples + other.samples,
            self.sums + other.sums,
            self.products + other.products,
            max(self.largest, other.largest),
        )

    def squares_around(self, centre: Floats) -> Floats:
        """Sum over groups of the outer product of a group's summed (score - centre), shape (C, C).

        The two moments suffice, because scores sum to 1: a group's size is the sum of its summed scores.
        """
        sized = self.products.sum(axis=1)  # summed scores of each group, times its size
        return (
            self.products
            - np.outer(sized, centre)
            - np.outer(centre, sized)
            + sized.sum() * np.outer(centre, centre)
        )


def log_growth(
    bets: Floats, tolls: Floats, expectation: Floats, bucket: BucketScores, dispersion: float = 1.0
) -> Floats:
    """Logarithm of the factor by which a bucket multiplies the capital of each bet, shape (J,).

    Args:
        bets: shape (J, C), chosen independently of the bucket's scores.
        tolls: shape (J,), of the bets.
        expectation: shape (C,).
        bucket: at least one sample.
        dispersion: variance of the buckets' means relative to that of their samples, at least 1.
    """
    offsets = bets @ expectation + tolls
    ruin = (offsets - bets.min(axis=1)) * bucket.largest
    scale = LARGEST_STAKE / np.maximum(ruin, LARGEST_STAKE)
    sized = bucket.products.sum(axis=1)
    gain = bets @ bucket.sums - bucket.samples * offsets
    squares = (
        ((bets @ bucket.products) * bets).sum(axis=1)
        - 2 * offsets * (bets @ sized)
        + sized.sum() * offsets**2
    )
    cost = dispersion * _curvature(scale * ruin) * np.maximum(squares, 0)
    return scale * gain - scale**2 * cost


def fixed_bets(reference: ScoreReference, tolerance: float) -> Floats:
    """Bets that each class's mean score is above or below the zone by each of SHIFTS, shape (J, C).

    For a calibrated head this is the most powerful direction against a class that becomes more or less prevalent at
    the expense of all others equally: its likelihood ratio is linear in the score of that class. Bets on equal scores
    are all zeros.

    Args:
        reference: reference of the head.
        tolerance: see `ScoreReference.tolls`.
    """
    classes = reference.classes
    sides = np.eye(classes) if classes == 2 else np.vstack([np.eye(classes), -np.eye(classes)])
    variances = np.abs(sides) @ np.diag(reference.spread)
    sides = np.where((variances > _ROUNDING**2)[:, np.newaxis], sides, 0)
    edges = variances + reference.tolls(sides, tolerance)
    return np.vstack([sides * (shift / (edges + shift))[:, np.newaxis] for shift in SHIFTS])


def precision(reference: ScoreReference) -> Floats:
    """Inverse of the scores' covariance on the directions that sum to zero, shape (C, C)."""
    sizes, directions = np.linalg.eigh(reference.spread)
    across = directions - directions.mean(axis=0)
    typical = max(float(sizes.sum()) / (reference.classes - 1), _ROUNDING**2)
    return across / np.maximum(sizes, _SMALLEST_SPREAD * typical) @ across.T


def learned_bets(
    reference: ScoreReference, metric: Floats, recent: Floats, tolerance: float
) -> tuple[Floats, Floats]:
    """Bets that the scores continue their recent deviation, and the tolls, shapes (K, C) and (K,).

    The direction of fastest growth is from the zone's nearest point to the recent deviation, nearest in units of the
    scores' covariance. The length of that distance is the (approximate) optimum of Kelly for the assumed spread of the
    scores; if the deviation increases the spread, the bet is shorter. For deviations inside the zone, bets are all
    zeros.

    Args:
        reference: reference of the head.
        metric: `precision` of the reference.
        recent: shape (K, C), mean (score - expectation) of earlier samples.
        tolerance: see `ScoreReference.tolls`.
    """
    outside = recent - reference.nearest(recent, metric, tolerance)
    bets = outside @ metric
    tolls = reference.tolls(bets, tolerance)
    moved = (bets * recent).sum(axis=1)
    most, least = bets.max(axis=1), bets.min(axis=1)
    gain = moved - tolls
    lopsided = np.maximum(most + least - 2 * bets @ reference.expectation, 0)
    squares = ((bets @ reference.spread) * bets).sum(axis=1) + moved * lopsided
    worth = (gain > _ROUNDING * (most - least)) & (squares > 0)
    length = np.minimum(np.divide(gain, squares, out=np.zeros_like(gain), where=worth), 1)
    return bets * length[:, np.newaxis], tolls * length


def _curvature(stake: Floats) -> Floats:
    """k(l) = (-log(1 - l) - l) / l^2, 1/2 at 0."""
    small = stake < 1e-4
    safe = np.where(small, 0.5, stake)
    return np.where(small, 0.5 + stake / 3, (-np.log1p(-safe) - safe) / safe**2)


def bucket_scores(
    head: PostProcessingHead,
    logits: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    design_effect: float = 1.0,
    largest: float | None = None,
) -> BucketScores:
    """Compute the scores of a bucket of samples, in any order.

    Args:
        head: head whose probabilities are the scores.
        logits: shape (N, C), N >= 0.
        counts: shape (N,), samples per row; None: one each. Rows that represent slightly different samples reduce the
            accuracy of the scores; the effect on their mean must stay far below the tolerance.
        groups: shape (N,); samples of one group may depend on each other, and all samples of a row are in its group.
            Groups should not span several buckets: if they do, use longer buckets.
        design_effect: if `groups` is None: number of dependent samples equivalent to one independent sample.
        largest: if `groups` is None: samples of the largest group, or an upper bound; at least the value from groups
            and design effect, which is the default. The bound on the loss of a bet by a bucket is strict only if no
            group is larger; a design effect is a mean over groups, so the largest group may exceed it.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> head = PostProcessingHead(1.0, [0.0, 0.0], [[0, 1], [1, 0]], [0.5, 0.5], ("benign", "malignant"))
        >>> bucket = bucket_scores(head, [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], groups=["a", "a", "b"])
        >>> bucket.samples, bucket.largest, bucket.mean.tolist()
        (3, 2.0, [0.5, 0.5])
    """
    rows = as_logits(logits, classes=head.classes)
    keys = as_groups(groups, samples=rows.shape[0])
    weights = _as_counts(counts, rows.shape[0])
    if not 1 <= design_effect < np.inf:
        raise InvalidInputError(f"expected at least 1, got {design_effect}.", field="design_effect")
    if largest is not None and not 1 <= largest < np.inf:
        raise InvalidInputError(f"expected at least 1, got {largest}.", field="largest")
    samples = int(weights.sum())
    if samples == 0:
        return BucketScores(0, np.zeros(head.classes), np.zeros((head.classes, head.classes)))
    scores = head.apply(rows).probabilities
    if keys is None:
        products, seen = scores.T @ (scores * weights[:, np.newaxis]), 1.0
    else:
        sums, sizes = _by_group(scores * weights[:, np.newaxis], weights, keys)
        products, seen = sums.T @ sums, float(sizes.max())
    known = max(design_effect * seen, largest or 1.0)
    return BucketScores(samples, weights @ scores, design_effect * products, known)


def _as_counts(values: ArrayLike | None, samples: int) -> Floats:
    if values is None:
        return np.ones(samples)
    counts = as_parameter(values, field="counts")
    if counts.shape != (samples,) or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise InvalidInputError(
            f"expected {samples} whole numbers that are not negative, one per row.", field="counts"
        )
    return counts


def _by_group(values: Floats, counts: Floats, groups: NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Summed rows (G, C) and summed counts (G,) of each group."""
    _, member = np.unique(groups, return_inverse=True)
    return member_sums(values, member), member_sums(counts, member)
