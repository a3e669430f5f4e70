"""Calibration errors that compare probabilities with frequencies, in bins or among exactly equal predictions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.ranking import Ranking, rank
from lifelong_core.metrics.scores.samples import (
    EqualPredictions,
    as_class,
    as_labelled_probabilities,
    equal_predictions,
)
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats, Integers, Mask, read_only
from lifelong_core.values.errors import InvalidInputError

DEFAULT_BINS = 15
LARGEST_BINS = 1_000_000


@metric(
    "ECE",
    "Expected calibration error (top-label, L1, binned)",
    "Mean gap between the confidence of decisions and how often they are right, in bins of confidence.",
    definition="2.66",
    formula="sum_b n_b/N |conf_b-acc_b|",
    undefined="no sample",
    orientation="down",
    family="calibration",
)
def expected_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bins: int = DEFAULT_BINS,
    norm: float = 1,
    right_closed: bool = False,
) -> float:
    """Top-label calibration error in bins (thesis Def. 2.66), in [0, 1], less is better.

    The mean over the bins, weighted by their cases, of |mean confidence - accuracy|**norm, where the
    confidence is the highest probability and the decision its class (ties: the lowest index). No root is
    taken. Binning underestimates the top-label calibration error.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        bins: number of bins of equal width, with edges i / bins; each includes its lower edge, the last one
            both.
        norm: power of the distance, 1 or more.
        right_closed: each bin includes its upper edge instead, the first one both.

    Returns:
        The error; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> probabilities = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.0, 1.0]]
        >>> expected_calibration_error([0, 1, 1, 1], probabilities, bins=2)
        0.0625
    """
    return top_label_calibration_error(labels, probabilities, bins=bins, norm=norm, right_closed=right_closed)


@metric(
    "CWCE",
    "Class-wise calibration error",
    "Mean over the classes of the gap between a class's probability and its frequency, in bins.",
    definition="2.68",
    formula="mean_k sum_b n_kb/N |p_kb-freq_kb|",
    undefined="no sample",
    orientation="down",
    family="calibration",
)
def class_wise_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bins: int = DEFAULT_BINS,
    norm: float = 1,
    right_closed: bool = False,
) -> float:
    """Mean over the classes of their calibration error in bins (thesis Def. 2.68), in [0, 1], less is better.

    All classes have the same weight; `marginal_calibration_error` gives their single errors.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        bins: number of bins, as for `expected_calibration_error`.
        norm: power of the distance, 1 or more.
        right_closed: which edge a bin includes, as for `expected_calibration_error`.

    Returns:
        The error; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> class_wise_calibration_error([0, 1], [[0.75, 0.25], [0.75, 0.25]])
        0.25
    """
    errors = marginal_calibration_error(
        labels, probabilities, bins=bins, norm=norm, right_closed=right_closed
    )
    return float(errors.mean())


@metric(
    "TCE",
    "Top-label calibration error",
    "As ECE, but given the exact confidence: for models that give few different values.",
    definition="2.65",
    formula="E|P[Y=argmax phi(X)|max phi]-max phi|",
    undefined="no sample; means little where hardly a confidence occurs twice",
    orientation="down",
    family="calibration",
)
def top_label_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bins: int | None = None,
    norm: float = 1,
    right_closed: bool = False,
) -> float:
    """Calibration error of the highest probability (thesis Def. 2.65), in [0, 1], less is better.

    The mean of |confidence - accuracy|**norm, where the accuracy is that among the cases with exactly the
    same confidence, or in the same bin: with bins this is `expected_calibration_error`. The printed
    definition conditions one fixed class on the confidence; meant is the decided class of each case.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        bins: number of bins, as for `expected_calibration_error`; None: condition on equal confidence.
        norm: power of the distance, 1 or more.
        right_closed: which edge a bin includes, as for `expected_calibration_error`.

    Returns:
        The error; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> round(top_label_calibration_error([0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.0, 1.0]]), 4)
        0.1667
    """
    confidence, is_right = top_label(*as_labelled_probabilities(labels, probabilities))
    return reliability(confidence, is_right, bins=bins, right_closed=right_closed).error(norm)


@metric(
    "MCE",
    "Marginal calibration error (class k)",
    "Gap between a class's probability and its frequency, given the exact probability; not the maximum.",
    definition="2.65",
    formula="E|P[Y=k|phi_k]-phi_k|",
    undefined="no sample; means little where hardly a probability occurs twice",
    orientation="down",
    scope="per class",
    family="calibration",
)
def marginal_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bins: int | None = None,
    norm: float = 1,
    right_closed: bool = False,
) -> Floats:
    """Calibration error of each class's probability (thesis Def. 2.65), in [0, 1], less is better.

    The mean of |predicted probability - share of the class|**norm, where the share is that among the cases
    with exactly the same probability of this class, or in the same bin. Without bins a network's outputs,
    which hardly ever repeat, are compared with single cases: the error is then far too large. This is not
    the maximum calibration error, which has the same acronym.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        bins: number of bins, as for `expected_calibration_error`; None: condition on equal probabilities.
        norm: power of the distance, 1 or more.
        right_closed: which edge a bin includes, as for `expected_calibration_error`.

    Returns:
        Shape (C,); nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> marginal_calibration_error([0, 0, 1], [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]).tolist()
        [0.0, 0.0]
        >>> marginal_calibration_error([0, 1, 1], [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]], bins=1).round(3).tolist()
        [0.333, 0.333]
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    return np.array(
        [
            reliability(column, reference == k, bins=bins, right_closed=right_closed).error(norm)
            for k, column in enumerate(predicted.T)
        ]
    )


@metric(
    "CE",
    "Canonical calibration error",
    "Canonical means of all class probabilities together: their distance from the class shares among the"
    " cases with these probabilities.",
    definition="2.64",
    formula="E d(r(phi(X)),phi(X))",
    undefined="no sample; means little where hardly a vector of probabilities occurs twice",
    bounds=(0, 2),
    shown="[0,2] for L1; [0,sqrt2] rooted L2",
    orientation="down",
    invalid="2 (L1)",
    family="calibration",
)
def canonical_calibration_error(labels: ArrayLike, probabilities: ArrayLike, *, norm: float = 1) -> float:
    """Calibration error of all probabilities at once (thesis Def. 2.64), less is better.

    The mean of ||class shares - probabilities||_norm ** norm, where the shares are those among the cases
    with exactly the same probabilities. In [0, 2]. No root is taken: with norm 2 it is the reliability of
    the Brier decomposition, and its root is at most the root Brier score. A network's outputs hardly ever
    repeat and are then compared with single cases: use `ece_kde` or `kernel_calibration_error` for those.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        norm: power of the distance, 1 or more.

    Returns:
        The error; nan where it is undefined: no case.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> canonical_calibration_error([0, 1, 0, 1], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
        0.5
    """
    return canonical_gap(equal_predictions(*as_labelled_probabilities(labels, probabilities)), norm=norm)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Data of a reliability diagram: predicted probabilities and observed frequencies in groups of cases."""

    edges: Floats | None
    """shape (G + 1,), edges of the bins; None: groups have exactly equal probabilities"""
    counts: Integers
    """shape (G,), cases"""
    confidence: Floats
    """shape (G,), mean predicted probability; nan in an empty bin"""
    frequency: Floats
    """shape (G,), observed share of correct predictions; nan in an empty bin"""

    def error(self, norm: float = 1) -> float:
        """Mean over the cases of |confidence - frequency|**norm; nan without any case.

        Raises:
            InvalidInputError: the norm is not a number of 1 or more.
        """
        power = as_norm(norm)
        used = self.counts > 0
        if not used.any():
            return float("nan")
        gaps = np.abs(self.confidence[used] - self.frequency[used]) ** power
        return float(self.counts[used] @ gaps) / int(self.counts.sum())


def reliability_diagram(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    positive: int | None = None,
    bins: int = DEFAULT_BINS,
    right_closed: bool = False,
) -> Reliability:
    """Compute the data of a reliability diagram: count, mean probability and observed frequency per bin.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        positive: class of the probability; None: the decided class of each case.
        bins: number of bins, as for `expected_calibration_error`.
        right_closed: which edge a bin includes, as for `expected_calibration_error`.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> diagram = reliability_diagram([0, 0, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]], bins=2)
        >>> diagram.counts.tolist(), diagram.confidence.tolist(), diagram.frequency.tolist()
        ([0, 3], [nan, 0.75], [nan, 1.0])
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    if positive is None:
        scores, is_hit = top_label(reference, predicted)
    else:
        column = as_class(positive, classes=predicted.shape[1])
        scores, is_hit = predicted[:, column], reference == column
    return reliability(scores, is_hit, bins=bins, right_closed=right_closed)


def bin_edges(bins: int) -> Floats:
    """Edges i / bins, shape (bins + 1,), each rounded correctly, unlike those of `numpy.linspace`.

    Raises:
        InvalidInputError: not a whole number of 1 or more.

    Examples:
        >>> float(bin_edges(10)[3])
        0.3
    """
    if not 1 <= bins <= LARGEST_BINS or int(bins) != bins:
        raise InvalidInputError(f"expected a whole number in 1..{LARGEST_BINS}, got {bins}.", field="bins")
    return np.arange(int(bins) + 1) / int(bins)


def as_norm(norm: float) -> float:
    """Check the power of a distance.

    Raises:
        InvalidInputError: not a number of 1 or more.
    """
    if not 1 <= norm <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a number of 1 or more, got {norm}.", field="norm")
    return float(norm)


def top_label(labels: Integers, probabilities: Floats) -> tuple[Floats, Mask]:
    """Highest probability of each case, shape (N,), and whether its class (ties: the lowest) is the true one."""
    decisions = probabilities.argmax(axis=1)
    return probabilities[np.arange(labels.size), decisions], decisions == labels


def reliability(scores: Floats, is_hit: Mask, *, bins: int | None, right_closed: bool = False) -> Reliability:
    """Group scores, shape (N,), in bins or by exact equality (None), and count the hits, shape (N,)."""
    if bins is None:
        return exact_reliability(rank(scores, is_hit))
    edges = bin_edges(bins)
    places = np.searchsorted(edges[1:-1], scores, side="left" if right_closed else "right")
    counts = np.bincount(places, minlength=edges.size - 1)
    sums = np.bincount(places, weights=scores, minlength=counts.size)
    hits = np.bincount(places[is_hit], minlength=counts.size)
    sizes = np.where(counts > 0, counts, np.nan)
    return Reliability(read_only(edges), read_only(counts), read_only(sums / sizes), read_only(hits / sizes))


def exact_reliability(ranking: Ranking) -> Reliability:
    """One group per distinct score of a ranking."""
    hits = np.diff(ranking.true_positives, prepend=0)
    counts = hits + np.diff(ranking.false_positives, prepend=0)
    return Reliability(None, read_only(counts), ranking.thresholds, read_only(hits / counts))


def canonical_gap(groups: EqualPredictions, *, norm: float = 1) -> float:
    """`canonical_calibration_error` of grouped cases."""
    power = as_norm(norm)
    if groups.weights.size == 0:
        return float("nan")
    gaps = np.abs(groups.class_shares - groups.probabilities) ** power
    return float(groups.weights @ gaps.sum(axis=1))
