"""What the test of "only the prevalence changed" looks at: bounded features whose mean over a window says it all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats, Integers, Logits, centred
from lifelong_core.deploy.calibration import AffineCalibration, fit_weighted
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.softmax import affine_scores

FREQUENCIES = 48
"""Random directions in which the kernel test compares; each gives a cosine and a sine."""

CELLS_PER_SCORE = 6
MOST_CUTS = 200
"""Of all classes' scores together; with more classes than 40 each gets fewer cells, beyond 200 none."""

LARGEST_SCALED_LOGIT = 8.0
"""Centred logits are clipped at so many robust standard deviations from their median."""

_LEAST_GAP = 1e-6
"""Scores that differ by less are taken for equal: rounding alone must not move a sample to another cell."""

_PAIRS_FROM = 400
_SEED = 20_110_607
_MAD_TO_DEVIATION = 1.4826
_FAR_SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.98)


@dataclass(frozen=True)
class Score:
    """One number per sample, cut into cells."""

    columns: slice
    """of its cuts among the features, in ascending order"""
    class_index: int | None
    """whose log odds these are; None: it belongs to no class"""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features of a sample: above which cuts its scores lie (0 or 1), then random waves of its logits (-1 to 1).

    The scores are the calibrated log odds of each class against all others, the log odds of the likeliest class, and
    the distance to the nearest class centre. Softmax probabilities alone hardly show a constant added to one logit;
    the waves see the centred logits themselves, each in units of its robust spread. All is a deterministic function
    of the calibration set: the random frequencies come from a fixed seed, and go to the classes in an order (that of
    their mean logit) which does not depend on how the classes are numbered.
    """

    calibration: AffineCalibration
    middle: Floats
    """shape (C,), median of the centred logits"""
    spread: Floats
    """shape (C,), their robust standard deviation"""
    centres: Floats
    """shape (C, C), mean scaled logits of each class"""
    cuts: tuple[Floats, ...]
    """between the cells of each score, ascending"""
    frequencies: Floats
    """shape (C, FREQUENCIES)"""

    @classmethod
    def of(cls, data: LabeledLogits) -> Self:
        """Fit scale, centres, cuts and frequencies to a calibration set that holds every class."""
        rows = centred(data.logits)
        middle: Floats = np.median(rows, axis=0)
        spread = _robust_spread(rows, middle)
        scaled = _scaled(rows, middle, spread)
        centres = np.stack([scaled[data.labels == k].mean(axis=0) for k in range(data.classes)])
        bare = cls(
            calibration=fit_weighted(data.logits, data.labels, np.ones(data.samples)),
            middle=middle,
            spread=spread,
            centres=centres,
            cuts=(),
            frequencies=_frequencies(scaled, data, column_order(rows)),
        )
        return replace(bare, cuts=_all_cuts(bare.scores(data.logits, scaled), data))

    @property
    def steps(self) -> int:
        """Number of features that are 0 or 1."""
        return sum(cut.size for cut in self.cuts)

    @property
    def score_columns(self) -> tuple[Score, ...]:
        """Where the cells of each score are."""
        ends = np.cumsum([cut.size for cut in self.cuts]).tolist()
        classes = self.middle.size
        return tuple(
            Score(slice(end - cut.size, end), index if index < classes else None)
            for index, (cut, end) in enumerate(zip(self.cuts, ends, strict=True))
        )

    def __call__(self, logits: Logits) -> Floats:
        """Features, shape (N, M), in -1..1."""
        scaled = _scaled(centred(logits), self.middle, self.spread)
        scores = self.scores(logits, scaled)
        above = [(scores[:, [index]] > cut).astype(np.float64) for index, cut in enumerate(self.cuts)]
        phases = scaled @ self.frequencies
        return np.hstack([*above, np.cos(phases), np.sin(phases)])

    def scores(self, logits: Logits, scaled: Floats) -> Floats:
        """Log odds of each class, of the likeliest, and the squared distance to the nearest centre, (N, C + 2)."""
        odds = log_odds(affine_scores(logits, self.calibration.temperature, self.calibration.bias))
        squares = (scaled**2).sum(axis=1)[:, np.newaxis] - 2 * scaled @ self.centres.T
        nearest = (squares + (self.centres**2).sum(axis=1)).min(axis=1)
        return np.column_stack([odds, odds.max(axis=1), nearest])


def log_odds(scores: Floats) -> Floats:
    """log p / (1 - p) of each class for p = softmax(scores), exact where p is within rounding of 0 or 1, (N, C)."""
    rows: Integers = np.arange(scores.shape[0], dtype=np.int64)
    best = scores.argmax(axis=1)
    top = scores[rows, best]
    exponentials = np.exp(scores - top[:, np.newaxis])
    exponentials[rows, best] = 0
    others = exponentials.sum(axis=1)
    odds = scores - top[:, np.newaxis] - np.log1p(np.maximum(others[:, np.newaxis] - exponentials, 0))
    rest = scores.copy()
    rest[rows, best] = -np.inf
    second = rest.max(axis=1)
    odds[rows, best] = top - second - np.log(np.exp(rest - second[:, np.newaxis]).sum(axis=1))
    return odds


def column_order(rows: Floats) -> Integers:
    """Rank of each column by its mean, shape (C,): renumbering the classes renumbers it likewise."""
    return np.argsort(np.argsort(rows.mean(axis=0), kind="stable"), kind="stable").astype(np.int64)


def _scaled(rows: Floats, middle: Floats, spread: Floats) -> Floats:
    return np.clip((rows - middle) / spread, -LARGEST_SCALED_LOGIT, LARGEST_SCALED_LOGIT)


def _robust_spread(rows: Floats, middle: Floats) -> Floats:
    """Median absolute deviation in units of a standard deviation; where that is 0, the standard deviation, or 1."""
    deviations = _MAD_TO_DEVIATION * np.median(np.abs(rows - middle), axis=0)
    deviations = np.where(deviations > 0, deviations, rows.std(axis=0))
    return np.where(deviations > 0, deviations, 1.0)


def _frequencies(scaled: Floats, data: LabeledLogits, order: Integers) -> Floats:
    """Frequencies of a Gaussian kernel as wide as the median distance of two samples (Rahimi and Recht 2007)."""
    each = -(-_PAIRS_FROM // data.classes)
    some = np.vstack([scaled[data.labels == k][:each] for k in range(data.classes)])
    squares = (some**2).sum(axis=1)
    distances = squares[:, np.newaxis] + squares - 2 * some @ some.T
    width = np.sqrt(max(float(np.median(distances[np.triu_indices(len(some), 1)])), 0.0)) or 1.0
    drawn = np.random.default_rng(_SEED).normal(size=(data.classes, FREQUENCIES))
    return drawn[order] / width


def _all_cuts(scores: Floats, data: LabeledLogits) -> tuple[Floats, ...]:
    """Cuts of each score: half of a class's cells are for its own samples; otherwise all classes count alike."""
    classes, balanced = data.classes, 1 / data.counts[data.labels]
    each = min(CELLS_PER_SCORE - 1, MOST_CUTS // classes)
    cuts: list[Floats] = []
    for k in range(classes):
        weights = np.where(data.labels == k, balanced * (classes - 1), balanced)
        cuts.append(cut_points(scores[:, k], weights, [i / (each + 1) for i in range(1, each + 1)]))
    shares = [i / CELLS_PER_SCORE for i in range(1, CELLS_PER_SCORE)]
    cuts.append(cut_points(scores[:, classes], balanced, shares))
    cuts.append(cut_points(scores[:, classes + 1], balanced, _FAR_SHARES))
    return tuple(cuts)


def cut_points(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """Midpoints between distinct values, with as nearly as possible these shares of the weight below them.

    A cut on a value that many samples share would let rounding decide in which cell they fall.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    below = np.cumsum(weights[order])[:-1] / weights.sum()
    gaps = np.flatnonzero(np.diff(ascending) > _LEAST_GAP)
    if gaps.size == 0 or not shares:
        return np.empty(0)
    nearest = np.abs(below[gaps][:, np.newaxis] - np.asarray(shares)).argmin(axis=0)
    chosen = gaps[np.unique(nearest)]
    return (ascending[chosen] + ascending[chosen + 1]) / 2
