"""Metrics of one class against the rest, for every class at once.

Each function takes one confusion matrix, (C, D), and gives one value per class, (C,); an array of them, (..., C, D),
such as resampled ones, gives shape (..., C). Rows are true classes, columns decisions. Where abstaining is a decision,
the last column, it counts as a decision against every class.
"""

from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError


def sensitivity(confusion: ArrayLike) -> Floats:
    """Share of the samples of a class with the right decision, TP / (TP + FN) (TPR, recall; thesis Def. 2.16).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], high is good; nan for a class without samples.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> sensitivity([[4, 1], [2, 6]]).tolist()
        [0.8, 0.75]
    """
    counts = _counts(confusion)
    return ratio(counts.true_positives, counts.positives)


def miss_rate(confusion: ArrayLike) -> Floats:
    """Share of the samples of a class with a wrong decision, FN / (TP + FN) (FNR; thesis Def. 2.16).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], low is good; nan for a class without samples.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> miss_rate([[4, 1], [2, 6]]).tolist()
        [0.2, 0.25]
    """
    counts = _counts(confusion)
    return ratio(counts.false_negatives, counts.positives)


def specificity(confusion: ArrayLike) -> Floats:
    """Share of the samples of other classes that were not decided as this, TN / (TN + FP) (TNR; thesis Def. 2.16).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], high is good; nan where there is no sample of another class.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> specificity([[4, 1], [2, 6]]).tolist()
        [0.75, 0.8]
    """
    counts = _counts(confusion)
    return ratio(counts.true_negatives, counts.negatives)


def fall_out(confusion: ArrayLike) -> Floats:
    """Share of the samples of other classes that were decided as this, FP / (TN + FP) (FPR; thesis Def. 2.16).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], low is good; nan where there is no sample of another class.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> fall_out([[4, 1], [2, 6]]).tolist()
        [0.25, 0.2]
    """
    counts = _counts(confusion)
    return ratio(counts.false_positives, counts.negatives)


def precision(confusion: ArrayLike) -> Floats:
    """Share of the decisions for a class that are right, TP / (TP + FP) (PPV; thesis Def. 2.35).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], high is good; nan for a class that was never decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> precision([[4, 2], [1, 6]]).tolist()
        [0.8, 0.75]
    """
    counts = _counts(confusion)
    return ratio(counts.true_positives, counts.decided_positive)


def false_discovery_rate(confusion: ArrayLike) -> Floats:
    """Share of the decisions for a class that are wrong, FP / (TP + FP) (FDR; thesis Def. 2.35).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], low is good; nan for a class that was never decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> false_discovery_rate([[4, 2], [1, 6]]).tolist()
        [0.2, 0.25]
    """
    counts = _counts(confusion)
    return ratio(counts.false_positives, counts.decided_positive)


def negative_predictive_value(confusion: ArrayLike) -> Floats:
    """Share of the decisions against a class that are right, TN / (TN + FN) (NPV; thesis Def. 2.35).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], high is good; nan for a class that was always decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> negative_predictive_value([[4, 2], [1, 6]]).tolist()
        [0.75, 0.8]
    """
    counts = _counts(confusion)
    return ratio(counts.true_negatives, counts.decided_negative)


def positive_share(confusion: ArrayLike) -> Floats:
    """Share of all samples that are decided as a class, (TP + FP) / N (PPR).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1]; nan without any sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> positive_share([[4, 1], [2, 3]]).tolist()
        [0.6, 0.4]
    """
    counts = _counts(confusion)
    return ratio(counts.decided_positive, counts.positives + counts.negatives)


def false_omission_rate(confusion: ArrayLike) -> Floats:
    """Share of the decisions against a class that are wrong, FN / (TN + FN) (FOR; thesis Def. 2.35).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], low is good; nan for a class that was always decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> false_omission_rate([[4, 2], [1, 6]]).tolist()
        [0.25, 0.2]
    """
    counts = _counts(confusion)
    return ratio(counts.false_negatives, counts.decided_negative)


def positive_likelihood_ratio(confusion: ArrayLike) -> Floats:
    """How much more frequent a decision for a class is if it is right, TPR / FPR (LR+; thesis Def. 2.32).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, inf], high is good, 1 for independent decisions; infinite if there is no false positive but
        a true one. nan if the class was never decided, has no sample, or all samples.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> positive_likelihood_ratio([[4, 1], [2, 6]]).tolist()
        [3.2, 3.75]
        >>> positive_likelihood_ratio([[5, 0], [0, 7]]).tolist()
        [inf, inf]
    """
    return ratio(sensitivity(confusion), fall_out(confusion))


def negative_likelihood_ratio(confusion: ArrayLike) -> Floats:
    """How much more frequent a decision against a class is if it is wrong, FNR / TNR (LR-; thesis Def. 2.32).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, inf], low is good, 1 for independent decisions; infinite if there is no true negative but a
        false one. nan if the class was always decided, has no sample, or all samples.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> negative_likelihood_ratio([[4, 1], [2, 2]]).tolist()
        [0.4, 0.625]
    """
    return ratio(miss_rate(confusion), specificity(confusion))


def youden_index(confusion: ArrayLike) -> Floats:
    """Sensitivity plus specificity minus 1, also called informedness (J; thesis Def. 2.33).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [-1, 1], high is good, 0 for independent decisions; nan for a class that has no sample, or all.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> youden_index([[4, 1], [2, 2]]).tolist()
        [0.3, 0.3]
    """
    counts = _counts(confusion)
    return ratio(counts.determinant, counts.positives * counts.negatives)


def markedness(confusion: ArrayLike) -> Floats:
    """Positive plus negative predictive value minus 1 (MK; thesis Def. 2.41).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [-1, 1], high is good, 0 for independent decisions; nan for a class that was never decided, or
        always.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> markedness([[4, 2], [1, 2]]).tolist()
        [0.3, 0.3]
    """
    counts = _counts(confusion)
    return ratio(counts.determinant, counts.decided_positive * counts.decided_negative)


def f_beta(confusion: ArrayLike, *, beta: float = 1.0) -> Floats:
    """Harmonic mean of precision and sensitivity, in which the latter weighs beta^2 (F_beta; thesis Prop. 2.45).

    (1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP)

    Args:
        confusion: shape (C, D).
        beta: positive.

    Returns:
        Shape (C,), in [0, 1], high is good; nan for a class that neither occurs nor was decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> f_beta([[6, 2], [2, 0]]).tolist()
        [0.75, 0.0]
    """
    if not 1 / LARGEST_NUMBER <= beta <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a positive number, got {beta}.", field="beta")
    counts, weight = _counts(confusion), beta**2
    found = (1 + weight) * counts.true_positives
    return ratio(found, found + weight * counts.false_negatives + counts.false_positives)


def jaccard(confusion: ArrayLike) -> Floats:
    """Overlap of the samples of a class and the decisions for it, TP / (TP + FN + FP) (JAC; thesis Def. 2.47).

    Args:
        confusion: shape (C, D).

    Returns:
        Shape (C,), in [0, 1], high is good; nan for a class that neither occurs nor was decided.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> jaccard([[6, 1], [1, 0]]).tolist()
        [0.75, 0.0]
    """
    counts = _counts(confusion)
    return ratio(counts.true_positives, counts.positives + counts.false_positives)


def _counts(confusion: ArrayLike) -> OneVersusRest:
    return OneVersusRest.of(as_confusions(confusion))
