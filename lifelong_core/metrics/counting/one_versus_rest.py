"""Metrics of one class against the rest, for every class at once.

Each function takes one confusion matrix, (C, D), and gives one value per class, (C,); an array of them, (..., C, D),
such as resampled ones, gives shape (..., C). Rows are true classes, columns decisions. Where abstaining is a decision,
the last column, it counts as a decision against every class.
"""

from collections.abc import Callable
from functools import wraps
from math import inf
from typing import Concatenate, ParamSpec

from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio
from lifelong_core.metrics.declaration import Orientation, metric
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError

Parameters = ParamSpec("Parameters")


def _per_class(
    acronym: str,
    name: str,
    meaning: str,
    *,
    definition: str,
    formula: str,
    undefined: str,
    bounds: tuple[float, float] = (0, 1),
    orientation: Orientation = "up",
    prevalence_dependent: bool = True,
    invalid: str | None = None,
) -> Callable[
    [Callable[Concatenate[OneVersusRest, Parameters], Floats]],
    Callable[Concatenate[ArrayLike, Parameters], Floats],
]:
    """Declare a function of counts as a metric of confusion matrices. The arguments are those of `metric`."""
    card = metric(
        acronym,
        name,
        meaning,
        definition=definition,
        formula=formula,
        undefined=undefined,
        bounds=bounds,
        orientation=orientation,
        scope="per class",
        prevalence_dependent=prevalence_dependent,
        invalid=invalid,
    )

    def declare(
        of_counts: Callable[Concatenate[OneVersusRest, Parameters], Floats],
    ) -> Callable[Concatenate[ArrayLike, Parameters], Floats]:
        @wraps(of_counts)
        def of_confusion(
            confusion: ArrayLike, *arguments: Parameters.args, **options: Parameters.kwargs
        ) -> Floats:
            return of_counts(OneVersusRest.of(as_confusions(confusion)), *arguments, **options)

        better = "high" if orientation == "up" else "low"
        of_confusion.__doc__ = f"""{of_counts.__doc__}

    Args:
        confusion: shape (C, D), or (..., C, D) for several matrices.

    Returns:
        Shape (C,), or (..., C), in [{bounds[0]:g}, {bounds[1]:g}], {better} is good. nan: {undefined}.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
        return card(of_confusion)

    return declare


@_per_class(
    "TPR",
    "Sensitivity",
    "How often the class is found where it is present.",
    definition="2.16",
    formula="TP/(TP+FN)",
    undefined="no reference sample of the class",
    prevalence_dependent=False,
)
def sensitivity(counts: OneVersusRest) -> Floats:
    """Share of the samples of a class with the right decision, TP / (TP + FN) (TPR, recall; thesis Def. 2.16)."""
    return ratio(counts.true_positives, counts.positives)


@_per_class(
    "FNR",
    "Miss rate",
    "How often the class is missed where it is present.",
    definition="2.16",
    formula="FN/(TP+FN)",
    undefined="no reference sample of the class",
    orientation="down",
    prevalence_dependent=False,
)
def miss_rate(counts: OneVersusRest) -> Floats:
    """Share of the samples of a class with a wrong decision, FN / (TP + FN) (FNR; thesis Def. 2.16)."""
    return ratio(counts.false_negatives, counts.positives)


@_per_class(
    "TNR",
    "Specificity",
    "How often the class is ruled out where it is absent.",
    definition="2.16",
    formula="TN/(TN+FP)",
    undefined="no reference sample of another class",
    prevalence_dependent=False,
)
def specificity(counts: OneVersusRest) -> Floats:
    """Share of the samples of other classes that were not decided as this, TN / (TN + FP) (TNR; thesis Def. 2.16)."""
    return ratio(counts.true_negatives, counts.negatives)


@_per_class(
    "FPR",
    "Fall-out",
    "How often there is a false alarm where the class is absent.",
    definition="2.16",
    formula="FP/(FP+TN)",
    undefined="no reference sample of another class",
    orientation="down",
    prevalence_dependent=False,
)
def fall_out(counts: OneVersusRest) -> Floats:
    """Share of the samples of other classes that were decided as this, FP / (TN + FP) (FPR; thesis Def. 2.16)."""
    return ratio(counts.false_positives, counts.negatives)


@_per_class(
    "PPV",
    "Precision",
    "How often a decision for the class is right.",
    definition="2.35",
    formula="TP/(TP+FP)",
    undefined="the class is never decided",
)
def precision(counts: OneVersusRest) -> Floats:
    """Share of the decisions for a class that are right, TP / (TP + FP) (PPV; thesis Def. 2.35)."""
    return ratio(counts.true_positives, counts.decided_positive)


@_per_class(
    "FDR",
    "False discovery rate",
    "How often a decision for the class is a false alarm.",
    definition="2.35",
    formula="FP/(TP+FP)",
    undefined="the class is never decided",
    orientation="down",
)
def false_discovery_rate(counts: OneVersusRest) -> Floats:
    """Share of the decisions for a class that are wrong, FP / (TP + FP) (FDR; thesis Def. 2.35)."""
    return ratio(counts.false_positives, counts.decided_positive)


@_per_class(
    "NPV",
    "Negative predictive value",
    "How often a decision against the class is right.",
    definition="2.35",
    formula="TN/(TN+FN)",
    undefined="the class is always decided",
)
def negative_predictive_value(counts: OneVersusRest) -> Floats:
    """Share of the decisions against a class that are right, TN / (TN + FN) (NPV; thesis Def. 2.35)."""
    return ratio(counts.true_negatives, counts.decided_negative)


def positive_share(confusion: ArrayLike) -> Floats:
    """Share of all samples that are decided as a class, (TP + FP) / N (PPR), shape (C,); nan without any sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    counts = OneVersusRest.of(as_confusions(confusion))
    return ratio(counts.decided_positive, counts.positives + counts.negatives)


@_per_class(
    "FOR",
    "False omission rate",
    "How often a decision against the class misses it.",
    definition="2.35",
    formula="FN/(TN+FN)",
    undefined="the class is always decided",
    orientation="down",
)
def false_omission_rate(counts: OneVersusRest) -> Floats:
    """Share of the decisions against a class that are wrong, FN / (TN + FN) (FOR; thesis Def. 2.35)."""
    return ratio(counts.false_negatives, counts.decided_negative)


@_per_class(
    "LR+",
    "Positive likelihood ratio",
    "By what factor a decision for the class raises its odds; above 10 is called good.",
    definition="2.32",
    formula="TPR/FPR",
    undefined="TPR or TNR is undefined; 0/0 where both TPR and FPR are 0 (inf where only FPR is)",
    bounds=(0, inf),
    prevalence_dependent=False,
)
def positive_likelihood_ratio(counts: OneVersusRest) -> Floats:
    """How much more frequent a decision for a class is if it is right, TPR / FPR (LR+; thesis Def. 2.32)."""
    return ratio(
        ratio(counts.true_positives, counts.positives), ratio(counts.false_positives, counts.negatives)
    )


@_per_class(
    "LR-",
    "Negative likelihood ratio",
    "By what factor a decision against the class changes its odds; below 0.1 is called good.",
    definition="2.32",
    formula="FNR/TNR",
    undefined="TPR or TNR is undefined; 0/0 where both FNR and TNR are 0 (inf where only TNR is)",
    bounds=(0, inf),
    orientation="down",
    prevalence_dependent=False,
    invalid="naive classifier value (1)",
)
def negative_likelihood_ratio(counts: OneVersusRest) -> Floats:
    """How much more frequent a decision against a class is if it is wrong, FNR / TNR (LR-; thesis Def. 2.32)."""
    return ratio(
        ratio(counts.false_negatives, counts.positives), ratio(counts.true_negatives, counts.negatives)
    )


@_per_class(
    "J",
    "Youden/Informedness",
    "Share of the way from guessing (0) to always right (1), whatever the prevalences.",
    definition="2.33",
    formula="TPR+TNR-1",
    undefined="TPR or TNR is undefined",
    bounds=(-1, 1),
    prevalence_dependent=False,
)
def youden_index(counts: OneVersusRest) -> Floats:
    """Sensitivity plus specificity minus 1, also called informedness (J; thesis Def. 2.33)."""
    return ratio(counts.determinant, counts.positives * counts.negatives)


@_per_class(
    "MK",
    "Markedness",
    "How far decisions for and against the class can be relied on, 0 for guessing.",
    definition="2.41",
    formula="PPV+NPV-1",
    undefined="PPV or NPV is undefined",
    bounds=(-1, 1),
)
def markedness(counts: OneVersusRest) -> Floats:
    """Positive plus negative predictive value minus 1 (MK; thesis Def. 2.41)."""
    return ratio(counts.determinant, counts.decided_positive * counts.decided_negative)


@_per_class(
    "F_beta",
    "F-beta",
    "Weighted harmonic mean of sensitivity and precision; beta times the weight on sensitivity.",
    definition="2.44/2.45",
    formula="(1+b^2)TP/((1+b^2)TP+b^2 FN+FP)",
    undefined="the class is neither present nor decided (TP = FP = FN = 0)",
)
def f_beta(counts: OneVersusRest, *, beta: float = 1.0) -> Floats:
    """Harmonic mean of precision and sensitivity, in which the latter weighs beta^2 (F_beta; thesis Prop. 2.45).

    (1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP)
    """
    if not 1 / LARGEST_NUMBER <= beta <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a positive number, got {beta}.", field="beta")
    weight = beta**2
    found = (1 + weight) * counts.true_positives
    return ratio(found, found + weight * counts.false_negatives + counts.false_positives)


@_per_class(
    "JAC",
    "Jaccard",
    "Of the samples that are or were decided as the class, how many are both.",
    definition="2.47",
    formula="TP/(TP+FN+FP)",
    undefined="the class is neither present nor decided (TP = FP = FN = 0)",
)
def jaccard(counts: OneVersusRest) -> Floats:
    """Overlap of the samples of a class and the decisions for it, TP / (TP + FN + FP) (JAC; thesis Def. 2.47)."""
    return ratio(counts.true_positives, counts.positives + counts.false_positives)
