"""Features of the test of "only the prevalence changed": bounded, so that the test needs only their mean over a
window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.calibration.affine import fit_weighted
from lifelong_core.deploy.labeled import LabeledLogits, class_means, stratified_folds
from lifelong_core.values.arrays import Floats, Integers, Logits, centre_rows

FREQUENCIES = 48
"""Random directions of the kernel test; each gives a cosine and a sine."""

FOLDS = 10

CELLS_PER_SCORE = 6
MOST_CUTS = 200
"""Largest number of cuts of all classes' scores; with more than 40 classes each has fewer cells, beyond 200 none."""

LARGEST_SCALED_LOGIT = 8.0
"""Centred logits are clipped at this many robust standard deviations from their median."""

_LEAST_GAP = 1e-6
"""Scores with a smaller difference count as equal: rounding must not move a sample to another cell."""

_PAIRS_FROM = 400
_SEED = 20_110_607
_MAD_TO_DEVIATION = 1.4826
_FAR_SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.98)
_FEWEST_DISTANCES = 30
_SHARPNESS = 5
_LARGEST_RATIO = 1e6


@dataclass(frozen=True)
class Score:
    """One number per sample, divided into cells."""

    columns: slice
    """columns of its cuts among the features, in ascending order"""
    class_index: int | None
    """class of the log odds; None: the score belongs to no class"""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features of a sample: steps of its scores at the cuts (0 to 1), then random waves of its logits (-1 to 1).

    The scores are the log odds of each class against all others, after temperature scaling, the log odds of the most
    probable class, and the distance to the nearest class centre. The waves use the centred logits themselves, each in
    units of its robust spread, because a moved logit hardly changes probabilities. The map is a deterministic function
    of the calibration set: the random frequencies come from a fixed seed, and their order over the classes (by mean
    logit) does not depend on the numbers of the classes.
    """

    temperature: float
    """temperature of the calibrated softmax"""
    middle: Floats
    """shape (C,), median of the centred logits"""
    spread: Floats
    """shape (C,), robust standard deviation of the centred logits"""
    centres: Floats
    """shape (C, C), mean scaled logits of each class"""
    cuts: tuple[Floats, ...]
    """cuts of each class's log odds and of the largest log odds, ascending"""
    far: Floats
    """cuts of the squared distance to the nearest centre, ascending"""
    frequencies: Floats
    """shape (C, FREQUENCIES)"""

    @classmethod
    def of(cls, data: LabeledLogits) -> Self:
        """Fit scale, centres, cuts and frequencies to a calibration set with samples of every class."""
        rows = centre_rows(data.logits)
        middle: Floats = np.median(rows, axis=0)
        spread = _robust_spread(rows, middle)
        scaled = _scaled(rows, middle, spread)
        centres = class_means(scaled, data).T
        # Only one parameter, to avoid overfitting to the calibration samples.
        fitted = fit_weighted(data.logits, data.labels, np.ones(data.samples), bias=False)
        temperature = float(np.mean(fitted.temperature))
        balanced = 1 / data.counts[data.labels]
        return cls(
            temperature=temperature,
            middle=middle,
            spread=spread,
            centres=centres,
            cuts=_score_cuts(_scores(rows, temperature), data),
            far=_far_cuts(_nearest(scaled, centres), balanced),
            frequencies=_frequencies(scaled, data, column_order(rows)),
        )

    @property
    def steps(self) -> int:
        """Number of step features."""
        return sum(cut.size for cut in (*self.cuts, self.far))

    @property
    def score_columns(self) -> tuple[Score, ...]:
        """Columns of the cuts of each score: the classes' log odds, the largest one, the distance."""
        cuts = (*self.cuts, self.far)
        ends = np.cumsum([cut.size for cut in cuts]).tolist()
        classes = self.middle.size
        return tuple(
            Score(slice(end - cut.size, end), index if index < classes else None)
            for index, (cut, end) in enumerate(zip(cuts, ends, strict=True))
        )

    def of_calibration(self, data: LabeledLogits) -> Floats:
        """Features of the calibration samples as for new samples, shape (N, M).

        Distances of each fold are to class centres that are fitted without it, because a sample is nearer to a centre
        that includes it. With many classes of few samples, this effect is larger than random error.
        """
        features = self(data.logits)
        scaled = _scaled(centre_rows(data.logits), self.middle, self.spread)
        folds = stratified_folds(data, FOLDS)
        for fold in range(1 + int(folds.max()) if folds.any() else 0):
            held = folds == fold
            centres = class_means(scaled[~held], data.select(~held)).T
            distances = _nearest(scaled[held], centres)
            features[held, self.steps - self.far.size : self.steps] = _far_beyond(distances, self.far)
        return features

    def __call__(self, logits: Logits) -> Floats:
        """Features, shape (N, M), in -1..1."""
        rows = centre_rows(logits)
        scaled = _scaled(rows, self.middle, self.spread)
        scores = _scores(rows, self.temperature)
        above = [(scores[:, [index]] > cut).astype(np.float64) for index, cut in enumerate(self.cuts)]
        beyond = _far_beyond(_nearest(scaled, self.centres), self.far)
        phases = scaled @ self.frequencies
        return np.hstack([*above, beyond, np.cos(phases), np.sin(phases)])


def _scores(rows: Floats, temperature: float) -> Floats:
    """Log odds of each class against all others, then those of the likeliest class, shape (N, C + 1)."""
    odds = log_odds(rows / temperature)
    return np.column_stack([odds, odds.max(axis=1)])


def _nearest(scaled: Floats, centres: Floats) -> Floats:
    """Squared distance to the nearest class centre, shape (N,)."""
    own = (scaled**2).sum(axis=1)
    squares = own[:, np.newaxis] - 2 * scaled @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(squares.min(axis=1), 0.0)


def _far_beyond(squares: Floats, cuts: Floats) -> Floats:
    """Soft steps at the cuts, shape (N, K): 1 / (1 + (cut / distance)^10).

    With hard steps, all samples of equal logits would change their cell when a fold moves the centres slightly.
    """
    ratios = np.minimum(squares[:, np.newaxis] / cuts, _LARGEST_RATIO) ** _SHARPNESS
    return ratios / (1 + ratios)


def log_odds(scores: Floats) -> Floats:
    """Log odds log p / (1 - p) of each class for p = softmax(scores), exact for p within rounding of 0 or 1, (N, C)."""
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
    """Rank of each column by its mean, shape (C,), which follows a renumbering of the classes."""
    return np.argsort(np.argsort(rows.mean(axis=0), kind="stable"), kind="stable").astype(np.int64)


def _scaled(rows: Floats, middle: Floats, spread: Floats) -> Floats:
    return np.clip((rows - middle) / spread, -LARGEST_SCALED_LOGIT, LARGEST_SCALED_LOGIT)


def _robust_spread(rows: Floats, middle: Floats) -> Floats:
    """Median absolute deviation in units of a standard deviation; where it is 0, the standard deviation, or 1."""
    deviations = _MAD_TO_DEVIATION * np.median(np.abs(rows - middle), axis=0)
    deviations = np.where(deviations > 0, deviations, rows.std(axis=0))
    return np.where(deviations > 0, deviations, 1.0)


def _frequencies(scaled: Floats, data: LabeledLogits, order: Integers) -> Floats:
    """Frequencies of a Gaussian kernel with the median distance of two samples as width (Rahimi and Recht 2007)."""
    each = -(-_PAIRS_FROM // data.classes)
    some = np.vstack([scaled[data.labels == k][:each] for k in range(data.classes)])
    squares = (some**2).sum(axis=1)
    distances = squares[:, np.newaxis] + squares - 2 * some @ some.T
    width = np.sqrt(max(float(np.median(distances[np.triu_indices(len(some), 1)])), 0.0)) or 1.0
    drawn = np.random.default_rng(_SEED).normal(size=(data.classes, FREQUENCIES))
    return drawn[order] / width


def _score_cuts(scores: Floats, data: LabeledLogits) -> tuple[Floats, ...]:
    """Cuts of each score: half of a class's cells are for its own samples; otherwise all classes have equal weight."""
    classes, balanced = data.classes, 1 / data.counts[data.labels]
    each = min(CELLS_PER_SCORE - 1, MOST_CUTS // classes)
    cuts: list[Floats] = []
    for k in range(classes):
        weights = np.where(data.labels == k, balanced * (classes - 1), balanced)
        cuts.append(cut_points(scores[:, k], weights, [i / (each + 1) for i in range(1, each + 1)]))
    shares = [i / CELLS_PER_SCORE for i in range(1, CELLS_PER_SCORE)]
    return (*cuts, cut_points(scores[:, classes], balanced, shares))


def _far_cuts(squares: Floats, weights: Floats) -> Floats:
    """Cuts of the distance; none if it has few values, as with logits that encode only the decision.

    Such values depend on the centres only, so that cross-fitting would show a difference between the folds.
    """
    distinct = 1 + int((np.diff(np.sort(squares)) > _LEAST_GAP).sum())
    return cut_points(squares, weights, _FAR_SHARES if distinct >= _FEWEST_DISTANCES else ())


def cut_points(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """Midpoints between distinct values that divide the weight most nearly in these shares.

    At a cut equal to the value of many samples, rounding would determine their cell.
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
