"""Bets against "the mean score lies in the zone": what a bucket pays for them, and which bets to place.

A bet is a vector w of C numbers, its toll h(w) the most that w.(mean score - expectation) can be in the zone. Let
Y = w.(score - expectation) - h(w). While the truth lies in the zone, E[Y | past] <= 0 for every bet that was chosen
before the bucket was seen. Scores lie on the simplex, so that Y >= -r with r = w.expectation + h(w) - min(w). By the
inequality of Fan, Grama and Liu (2015, lemma 4.1), for l = r in [0, 1),

    exp(Y - k(l) Y^2) <= 1 + Y,    k(l) = (-log(1 - l) - l) / l^2,

so that the product of the left sides over samples is a test supermartingale: bounded by fair bets, it grows by no more
than a factor 1 on average (Howard et al. 2021; Waudby-Smith and Ramdas 2024 bet likewise). Its logarithm is
sum Y - k(l) sum Y^2: it needs only the first two moments of a bucket's scores, whatever the bucket's size.

Samples of one group may depend on each other: the summed Y of a group of m samples still has E <= 0, and is at least
-m r, so that with l = (largest m) r the same holds with sums over groups in place of samples. Nothing is assumed about
the dependence within a group.

The optimal length of a bet (Kelly 1956) is its gain over the second moment of Y that comes with the gain, not over the
assumed one: where a class with a tiny assumed prevalence returns, its samples score a hundred times farther off than
the assumed spread. That distance is unknown in advance; but scores lie on the simplex, and where they are sharp, a
gain of w.(mean score - expectation) = g comes with a second moment greater by g times max(w) + min(w) - 2
w.expectation. A head that assumes exactly none of a class gives it scores of zero, whose mean has no information: this
class shows only in the lower scores of the others.
"""

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.deploy.shift.sequential.reference import ScoreReference
from lifelong_core.deploy.shift.sequential.scores import BucketScores

LARGEST_STAKE = 0.5
"""Largest share of the capital that one sample or group can cost; larger bets are scaled down."""

SHIFTS = (0.015, 0.04, 0.1, 0.25)
"""Changes of a class's mean score, beyond the zone's edge, that the fixed bets target."""

_SMALLEST_SPREAD = 1e-3
"""Lower bound of the scores' spread in a direction, relative to the mean over directions."""

_ROUNDING = 1e-12
"""Scores with a smaller difference are equal."""


def log_growth(
    bets: Floats, tolls: Floats, expectation: Floats, bucket: BucketScores, dispersion: float = 1.0
) -> Floats:
    """Logarithm of the factor by which a bucket multiplies the capital of each bet, shape (J,).

    Args:
        bets: shape (J, C), chosen without looking at the bucket's scores.
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
    """Bets on each class's mean score leaving the zone upwards or downwards by each of SHIFTS, shape (J, C).

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

    The direction that grows fastest leads from the zone's nearest point to the recent deviation, nearest in units of
    the scores' covariance; a bet as long as that distance is the (approximate) optimum of Kelly while scores spread as
    assumed, a shorter one where the deviation makes them spread more. Deviations inside the zone are not worth a bet:
    all zeros.

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
