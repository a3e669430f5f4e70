"""Metrics of one class against the rest, for every class at once.

Each function takes one confusion matrix, (C, D), and gives one value per class, (C,); an array of them, (..., C, D),
such as resampled ones, gives shape (..., C). Rows are true classes, columns decisions. Where abstaining is a decision,
the last column, it counts as a decision against every class.
"""

from math import inf

from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio
from lifelong_core.metrics.declaration import metric
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError


@metric(
    "TPR",
    "Sensitivity",
    "How often the class is found where it is present.",
    definition="2.16",
    formula="TP/(TP+FN)",
    undefined="no reference sample of the class",
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "FNR",
    "Miss rate",
    "How often the class is missed where it is present.",
    definition="2.16",
    formula="FN/(TP+FN)",
    undefined="no reference sample of the class",
    orientation="down",
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "TNR",
    "Specificity",
    "How often the class is ruled out where it is absent.",
    definition="2.16",
    formula="TN/(TN+FP)",
    undefined="no reference sample of another class",
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "FPR",
    "Fall-out",
    "How often there is a false alarm where the class is absent.",
    definition="2.16",
    formula="FP/(FP+TN)",
    undefined="no reference sample of another class",
    orientation="down",
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "PPV",
    "Precision",
    "How often a decision for the class is right.",
    definition="2.35",
    formula="TP/(TP+FP)",
    undefined="the class is never decided",
    scope="per class",
)
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


@metric(
    "FDR",
    "False discovery rate",
    "How often a decision for the class is a false alarm.",
    definition="2.35",
    formula="FP/(TP+FP)",
    undefined="the class is never decided",
    orientation="down",
    scope="per class",
)
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


@metric(
    "NPV",
    "Negative predictive value",
    "How often a decision against the class is right.",
    definition="2.35",
    formula="TN/(TN+FN)",
    undefined="the class is always decided",
    scope="per class",
)
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


@metric(
    "FOR",
    "False omission rate",
    "How often a decision against the class misses it.",
    definition="2.35",
    formula="FN/(TN+FN)",
    undefined="the class is always decided",
    orientation="down",
    scope="per class",
)
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


@metric(
    "LR+",
    "Positive likelihood ratio",
    "By what factor a decision for the class raises its odds; above 10 is called good.",
    definition="2.32",
    formula="TPR/FPR",
    undefined="TPR or TNR is undefined; 0/0 where both TPR and FPR are 0 (inf where only FPR is)",
    bounds=(0, inf),
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "LR-",
    "Negative likelihood ratio",
    "By what factor a decision against the class changes its odds; below 0.1 is called good.",
    definition="2.32",
    formula="FNR/TNR",
    undefined="TPR or TNR is undefined; 0/0 where both FNR and TNR are 0 (inf where only TNR is)",
    bounds=(0, inf),
    orientation="down",
    scope="per class",
    prevalence_dependent=False,
    invalid="naive classifier value (1)",
)
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


@metric(
    "J",
    "Youden/Informedness",
    "Share of the way from guessing (0) to always right (1), whatever the prevalences.",
    definition="2.33",
    formula="TPR+TNR-1",
    undefined="TPR or TNR is undefined",
    bounds=(-1, 1),
    scope="per class",
    prevalence_dependent=False,
)
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


@metric(
    "MK",
    "Markedness",
    "How far decisions for and against the class can be relied on, 0 for guessing.",
    definition="2.41",
    formula="PPV+NPV-1",
    undefined="PPV or NPV is undefined",
    bounds=(-1, 1),
    scope="per class",
)
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


@metric(
    "F_beta",
    "F-beta",
    "Weighted harmonic mean of sensitivity and precision; beta times the weight on sensitivity.",
    definition="2.44/2.45",
    formula="(1+b^2)TP/((1+b^2)TP+b^2 FN+FP)",
    undefined="the class is neither present nor decided (TP = FP = FN = 0)",
    scope="per class",
)
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


@metric(
    "JAC",
    "Jaccard",
    "Of the samples that are or were decided as the class, how many are both.",
    definition="2.47",
    formula="TP/(TP+FN+FP)",
    undefined="the class is neither present nor decided (TP = FP = FN = 0)",
    scope="per class",
)
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
