"""Metrics of the order of scores: ROC and precision-recall curves of one class against the rest."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_class, as_labelled_probabilities, columns_of
from lifelong_core.values.arrays import Floats, Integers, Mask, read_only
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Ranking:
    """Numbers of positive and negative cases with a score at or above each distinct score.

    One sort of the scores gives curves, areas, cut-offs and exactly conditioned calibration.
    """

    thresholds: Floats
    """shape (T,), the distinct scores, descending; a case is positive where its score >= the threshold"""
    true_positives: Integers
    """shape (T,), ascending up to `positives`"""
    false_positives: Integers
    """shape (T,), ascending up to `negatives`"""

    @property
    def positives(self) -> int:
        """Number of cases of the positive class."""
        return int(self.true_positives[-1]) if self.true_positives.size else 0

    @property
    def negatives(self) -> int:
        """Number of cases of all other classes."""
        return int(self.false_positives[-1]) if self.false_positives.size else 0

    @property
    def roc_area(self) -> float:
        """Share of the pairs (positive, negative) in which the positive scores higher; ties count half."""
        if self.positives == 0 or self.negatives == 0:
            return float("nan")
        tied = np.diff(self.true_positives, prepend=0)
        # Whole numbers up to here, hence no rounding, whatever the order of the cases.
        twice = np.diff(self.false_positives, prepend=0) @ (2 * self.true_positives - tied)
        return float(twice) / (2.0 * self.positives * self.negatives)

    @property
    def average_precision(self) -> float:
        """Mean over the positives of the precision at their score."""
        if self.positives == 0:
            return float("nan")
        precision = self.true_positives / (self.true_positives + self.false_positives)
        return float(np.diff(self.true_positives, prepend=0) @ precision) / self.positives


def rank(scores: Floats, is_positive: Mask) -> Ranking:
    """Sort finite scores, shape (N,), of positive and negative cases, shape (N,).

    Examples:
        >>> ranking = rank(np.array([0.1, 0.4, 0.4]), np.array([False, True, False]))
        >>> ranking.thresholds.tolist(), ranking.true_positives.tolist(), ranking.false_positives.tolist()
        ([0.4, 0.1], [1, 1], [1, 2])
    """
    descending = np.sort(scores)[::-1]
    is_last = np.ones(descending.size, dtype=np.bool_)
    is_last[:-1] = descending[1:] != descending[:-1]
    last = np.flatnonzero(is_last)
    thresholds = descending[last]
    # Looking up sorted thresholds among the few positives costs less than sorting the cases' indices.
    of_positives = np.sort(scores[is_positive])
    true_positives = of_positives.size - np.searchsorted(of_positives, thresholds).astype(np.int64)
    return Ranking(read_only(thresholds), read_only(true_positives), read_only(last + 1 - true_positives))


def class_rankings(labels: Integers, probabilities: Floats) -> tuple[Ranking, ...]:
    """Rankings of all classes, each by its probability, against the rest."""
    return tuple(rank(column, labels == k) for k, column in enumerate(columns_of(probabilities)))


@metric(
    "AUROC",
    "Area under ROC",
    "How often a sample of the class scores higher than one of another class; 0.5 is guessing.",
    definition="2.55",
    formula="P(s+>s-)+0.5P(s+=s-)",
    undefined="no reference sample of the class, or none of another",
    scope="per class",
    prevalence_dependent=False,
    family="multi-threshold",
)
def auroc(labels: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Area under the ROC curve of each class against the rest (thesis Def. 2.55), in [0, 1], more is better.

    The probability that a random case of the class gets a higher probability for it than a random case of
    the rest, where ties count half.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        Shape (C,); nan where it is undefined: no case of the class, or none of the rest.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> auroc([0, 0, 1], [[0.8, 0.2], [0.4, 0.6], [0.4, 0.6]]).tolist()
        [0.75, 0.75]
    """
    rankings = class_rankings(*as_labelled_probabilities(labels, probabilities))
    return np.array([ranking.roc_area for ranking in rankings])


@metric(
    "AP",
    "Average precision",
    "Mean precision over the thresholds, weighted by the sensitivity that each adds.",
    definition="2.56",
    formula="sum (R_n-R_{n-1})P_n, thresholds DEscending, R_0=0",
    undefined="no reference sample of the class",
    scope="per class",
    family="multi-threshold",
)
def average_precision(labels: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Average precision of each class against the rest (thesis Def. 2.56), in [0, 1], more is better.

    The sum over descending thresholds of the increase in sensitivity times the precision. Nothing is
    interpolated between thresholds: a constant score gets the prevalence of the class.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        Shape (C,); nan where it is undefined: no case of the class.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> average_precision([1, 0, 1, 1], [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]]).round(3).tolist()
        [0.5, 0.917]
    """
    rankings = class_rankings(*as_labelled_probabilities(labels, probabilities))
    return np.array([ranking.average_precision for ranking in rankings])


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Points of a ROC curve (thesis Def. 2.55), from (0, 0) at the threshold inf to (1, 1)."""

    thresholds: Floats
    """shape (T,), descending; the first is inf, where no case is positive"""
    false_positive_rate: Floats
    """shape (T,), ascending; nan without a negative case"""
    true_positive_rate: Floats
    """shape (T,), ascending; nan without a positive case"""
    area: float
    """under the straight lines between the points; nan without a positive or without a negative case"""


def roc_curve(labels: ArrayLike, probabilities: ArrayLike, *, positive: int) -> RocCurve:
    """ROC curve of one class against the rest, with a point at each distinct probability.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        positive: index of the class.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> curve = roc_curve([0, 0, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]], positive=1)
        >>> curve.thresholds.tolist()
        [inf, 0.7, 0.6, 0.2]
        >>> curve.false_positive_rate.tolist(), curve.true_positive_rate.tolist(), curve.area
        ([0.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 1.0], 1.0)
    """
    ranking = _ranking_of(labels, probabilities, positive)
    return RocCurve(
        thresholds=read_only(np.append(np.inf, ranking.thresholds)),
        false_positive_rate=read_only(_share(np.append(0, ranking.false_positives), ranking.negatives)),
        true_positive_rate=read_only(_share(np.append(0, ranking.true_positives), ranking.positives)),
        area=ranking.roc_area,
    )


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Points of a precision-recall curve (thesis Def. 2.56), by descending threshold.

    There is no point at the threshold inf, where no case is positive and the precision is 0/0.
    """

    thresholds: Floats
    """shape (T,), descending"""
    recall: Floats
    """shape (T,), ascending; nan without a positive case"""
    precision: Floats
    """shape (T,)"""
    average_precision: float
    """nan without a positive case"""


def precision_recall_curve(
    labels: ArrayLike, probabilities: ArrayLike, *, positive: int
) -> PrecisionRecallCurve:
    """Precision-recall curve of one class against the rest, with a point at each distinct probability.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        positive: index of the class.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> curve = precision_recall_curve([0, 0, 1], [[0.8, 0.2], [0.3, 0.7], [0.4, 0.6]], positive=1)
        >>> curve.thresholds.tolist(), curve.recall.tolist(), curve.precision.round(3).tolist()
        ([0.7, 0.6, 0.2], [0.0, 1.0, 1.0], [0.0, 0.5, 0.333])
    """
    ranking = _ranking_of(labels, probabilities, positive)
    return PrecisionRecallCurve(
        thresholds=ranking.thresholds,
        recall=read_only(_share(ranking.true_positives, ranking.positives)),
        precision=read_only(ranking.true_positives / (ranking.true_positives + ranking.false_positives)),
        average_precision=ranking.average_precision,
    )


def _ranking_of(labels: ArrayLike, probabilities: ArrayLike, positive: int) -> Ranking:
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    column = as_class(positive, classes=predicted.shape[1])
    return rank(predicted[:, column], reference == column)


def _share(counts: Integers, total: int) -> Floats:
    return counts / total if total else np.full(counts.shape, np.nan)


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """Cut-offs of one class's score, and how much is at or above each."""

    thresholds: Floats
    """shape (T,), descending; the first is inf"""
    true_positives: Floats
    """shape (T,), number or share of the cases of the class"""
    false_positives: Floats
    """shape (T,), of all other cases"""
    slack: float
    """rounding error of a metric, below which it counts as equal to a target"""

    @classmethod
    def of(cls, ranking: Ranking) -> Self:
        """The operating points of a ranking, with numbers of cases."""
        return cls(
            np.append(np.inf, ranking.thresholds),
            np.append(0.0, ranking.true_positives),
            np.append(0.0, ranking.false_positives),
            slack=0.0,
        )

    @classmethod
    def in_population(cls, scores: Floats, labels: Integers, positive: int, shares: Floats) -> Self:
        """The operating points of labelled scores, with shares of a population that has the rates of these cases.

        Args:
            scores: shape (N,), finite, of the class.
            labels: shape (N,), true classes.
            positive: index of the class.
            shares: shape (C,), class shares of the population.

        Raises:
            InvalidInputError: a class that occurs in the population has no case, or there are more classes than shares.
        """
        if labels.size and labels.max() >= shares.size:
            raise InvalidInputError(
                f"expected a share of each of {labels.max() + 1} classes, got {shares.size}.",
                field="prevalence",
            )
        as_class(positive, classes=shares.size)
        counts = np.bincount(labels, minlength=shares.size)
        missing = np.flatnonzero((shares > 0) & (counts == 0))
        if missing.size:
            raise InvalidInputError(
                f"there is no case of class {missing[0]}, whose share is {shares[missing[0]]:g}.",
                field="prevalence",
                hint="Give cases of every class that occurs.",
            )
        occurs = shares[labels] > 0  # Others would give cut-offs that differ in nothing.
        scores, labels = scores[occurs], labels[occurs]
        weights = (shares / np.maximum(counts, 1))[labels]
        order = np.argsort(-scores, kind="stable")
        descending = scores[order]
        last = np.flatnonzero(np.append(np.diff(descending) != 0, np.ones(min(1, scores.size), np.bool_)))
        is_positive = labels[order] == positive
        found, alarms = (
            np.append(0.0, np.cumsum(np.where(part, weights[order], 0.0))[last])
            for part in (is_positive, ~is_positive)
        )
        return cls(np.append(np.inf, descending[last]), found, alarms, slack=1e-12)

    def confusions(self, used: NDArray[np.int64] | slice = slice(None)) -> Floats:
        """Confusion matrices of some of the cut-offs, shape (..., 2, 2), the class first."""
        found, alarms = self.true_positives[used], self.false_positives[used]
        of_positives = [found, self.true_positives[-1] - found]
        of_negatives = [alarms, self.false_positives[-1] - alarms]
        # In memory each entry lies together: sums over so short rows would else take five times as long.
        return np.moveaxis(np.array([of_positives, of_negatives], dtype=np.float64), (0, 1), (-2, -1))
