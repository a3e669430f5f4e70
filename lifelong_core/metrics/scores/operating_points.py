"""The cut-offs of one class's score, with true and false positives at each."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.metrics.scores.ranking import Ranking
from lifelong_core.metrics.scores.samples import as_class
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError


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
