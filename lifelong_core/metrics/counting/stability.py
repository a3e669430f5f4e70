"""Agreement of two models on the instances of one image, without labels.

Instances are the parts of an image that a model decides on, such as patches. The first functions take four counts:
`n10` is the number of instances of the image with decision 1 of the first model and 0 of the second, and so on. The
correlations take two vectors of scores, one for each instance. Count and correlate each image by itself and then take
the mean over the images (`lifelong_core.develop.localization.classifier_stability`): counts of several images together
mix the sizes of their findings into the agreement. All follow R. Romanova, Localization stability of weakly
supervised deep neural networks (2020), with its misprints corrected.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import as_confusions, confusion_matrix, ratio
from lifelong_core.metrics.counting.multiclass import accuracy, cohen_kappa
from lifelong_core.metrics.counting.one_versus_rest import f_beta, jaccard
from lifelong_core.metrics.declaration import Function, metric
from lifelong_core.metrics.scores.samples import as_values
from lifelong_core.values.arrays import Floats, as_confusion, as_labels
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import kendall_tau_b, mean_ranks


def _stability(
    what: str,
    meaning: str,
    *,
    formula: str,
    undefined: str,
    bounds: tuple[float, float] = (-1, 1),
    shown: str | None = None,
) -> Callable[[Function], Function]:
    return metric(
        f"S_{what}",
        f"stability S_{what}",
        meaning,
        definition="Romanova 2020, sec. II-III",
        formula=formula,
        undefined=undefined,
        bounds=bounds,
        shown=shown,
        scope="pair of predictions, no labels",
        prevalence_dependent=None,
        invalid="n/a",
        family="stability",
    )


class Agreement(NamedTuple):
    """Counts of the decisions 0 and 1 of two models; the first digit is that of the first model."""

    n00: float
    n01: float
    n10: float
    n11: float


def agreement(first: ArrayLike, second: ArrayLike) -> Agreement:
    """Count the decisions 0 and 1 of two models for the instances of one image, for the functions of this module.

    Args:
        first: shape (N,), decisions 0 and 1 of a model.
        second: shape (N,), decisions of the other model.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> agreement([0, 1, 1, 1], [0, 0, 1, 1])
        Agreement(n00=1.0, n01=0.0, n10=1.0, n11=2.0)
        >>> positive_overlap(*agreement([0, 1, 1, 1], [0, 0, 1, 1]))
        1.0
    """
    rows, columns = as_labels(first, classes=2, field="first"), as_labels(second, classes=2, field="second")
    _check_same_size(rows.size, columns.size)
    counts = confusion_matrix(rows, columns, classes=2).astype(np.float64)
    return Agreement(*counts.ravel().tolist())


@_stability(
    "J",
    "Of the instances that any of two models calls positive, how many both do.",
    formula="n11/(n01+n10+n11)",
    undefined="neither model calls any instance positive",
    bounds=(0, 1),
)
def positive_jaccard(n00: float, n01: float, n10: float, n11: float) -> float:
    """Share of the instances positive for both models among those positive for any, n11 / (n01 + n10 + n11) (S_J;
    eq. 7).

    In [0, 1], high is stable; nan if neither model calls any instance positive.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> positive_jaccard(20, 20, 20, 40)
        0.5
    """
    return float(jaccard(_table(n00, n01, n10, n11))[1])


@_stability(
    "PO",
    "Of the positives of the model with fewer, how many the other shares.",
    formula="n11/(min(n10,n01)+n11)",
    undefined="a model calls no instance positive",
    bounds=(0, 1),
)
def positive_overlap(n00: float, n01: float, n10: float, n11: float) -> float:
    """Share of the instances positive for both models among those of the model with fewer (S_PO; eq. 15).

    In [0, 1], high is stable, but 1 as soon as one model's positives contain the other's; nan if a model calls no
    instance positive.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> positive_overlap(40, 10, 10, 40)
        0.8
    """
    (_, n01), (n10, n11) = as_confusions(_table(n00, n01, n10, n11))
    return float(ratio(n11, min(n01, n10) + n11))


@_stability(
    "APO",
    "S_PO beyond what chance would give.",
    formula="(n11-E)/(min(n1*,n*1)-E)",
    undefined="a model calls no instance positive, or all",
    bounds=(-inf, 1),
    shown="[1-N,1]",
)
def adjusted_positive_overlap(n00: float, n01: float, n10: float, n11: float) -> float:
    """`positive_overlap` beyond what chance would give, relative to the most possible (S_APO; eq. 16).

    (n11 - E) / (min(n10, n01) + n11 - E), where E = (n10 + n11) (n01 + n11) / N. In [1 - N, 1], high is stable, 0 for
    independent models; nan if a model calls no instance positive, or all.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> round(adjusted_positive_overlap(40, 10, 10, 40), 12)
        0.6
    """
    (n00, n01), (n10, n11) = as_confusions(_table(n00, n01, n10, n11))
    # Both terms of the fraction times N: nothing that cancels is left.
    most = min((n10 + n11) * (n00 + n10), (n01 + n11) * (n00 + n01))
    return float(ratio(n11 * n00 - n01 * n10, most))


@_stability(
    "HAPJ",
    "S_J of the rarer of both agreements.",
    formula="min(n11,n00)/(n10+n01+min(n11,n00))",
    undefined="both models give all instances the same decision",
    bounds=(0, 1),
)
def heuristically_adjusted_positive_jaccard(n00: float, n01: float, n10: float, n11: float) -> float:
    """`positive_jaccard` without the overlap that large numbers of positives cause by themselves (S_HAPJ; eq. 17).

    min(n11, n00) / (n10 + n01 + min(n11, n00)), in [0, 1], high is stable; nan if both models give all instances the
    same decision.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> heuristically_adjusted_positive_jaccard(3, 2, 1, 9)
        0.5
    """
    (n00, n01), (n10, n11) = as_confusions(_table(n00, n01, n10, n11))
    avoidable = min(n00, n11)
    return float(ratio(avoidable, n01 + n10 + avoidable))


@_stability(
    "APJ",
    "S_J beyond what chance would give.",
    formula="(n11-E11)/(n10+n01+n11-E11)",
    undefined="both models give all instances the same decision",
    bounds=(-1 / 3, 1),
    shown="[-1/3,1]",
)
def adjusted_positive_jaccard(n00: float, n01: float, n10: float, n11: float) -> float:
    """`positive_jaccard` beyond what chance would give (S_APJ; eq. 18).

    (n11 - E) / (n10 + n01 + n11 - E), where E = (n10 + n11) (n01 + n11) / N. In [-1/3, 1], high is stable, 0 for
    independent models; nan if both models give all instances the same decision.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> round(adjusted_positive_jaccard(40, 10, 10, 40), 2)
        0.43
    """
    (n00, n01), (n10, n11) = as_confusions(_table(n00, n01, n10, n11))
    beyond_chance, total = n11 * n00 - n01 * n10, n00 + n01 + n10 + n11
    return float(ratio(beyond_chance, (n01 + n10) * total + beyond_chance))


@_stability(
    "AJ",
    "Agreement of two models beyond what chance would give.",
    formula="Cohen kappa",
    undefined="both models give all instances the same decision",
)
def adjusted_jaccard(n00: float, n01: float, n10: float, n11: float) -> float:
    """Agreement beyond what chance would give, which is Cohen's kappa of the two models (S_AJ; eq. 19).

    In [-1, 1], high is stable, 0 for independent models; nan if both models give all instances the same decision.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> round(adjusted_jaccard(40, 10, 10, 40), 12)
        0.6
    """
    return cohen_kappa(_table(n00, n01, n10, n11))


def total_agreement_ratio(n00: float, n01: float, n10: float, n11: float) -> float:
    """Share of the instances with the same decision of both models, (n00 + n11) / N (TAR; eq. 20, which omits n00).

    In [0, 1], high is stable; nan without any instance.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> total_agreement_ratio(40, 10, 10, 40)
        0.8
    """
    return accuracy(_table(n00, n01, n10, n11))


def positive_agreement_ratio(n00: float, n01: float, n10: float, n11: float) -> float:
    """Share of all positive decisions that both models have in common (PAR; eq. 21).

    2 n11 / (2 n11 + n01 + n10), in [0, 1], high is stable; nan if neither model calls any instance positive.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> positive_agreement_ratio(20, 15, 5, 30)
        0.75
    """
    return float(f_beta(_table(n00, n01, n10, n11))[1])


def negative_agreement_ratio(n00: float, n01: float, n10: float, n11: float) -> float:
    """Share of all negative decisions that both models have in common (NAR; eq. 22).

    2 n00 / (2 n00 + n01 + n10), in [0, 1], high is stable; nan if both models call every instance positive.

    Raises:
        InvalidInputError: a count is negative or not finite.

    Examples:
        >>> negative_agreement_ratio(30, 15, 5, 20)
        0.75
    """
    return float(f_beta(_table(n00, n01, n10, n11))[0])


@_stability(
    "Pearson",
    "Linear correlation of two models' scores.",
    formula="product moment",
    undefined="a model gives all instances the same score",
)
def pearson_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Linear correlation of two models' scores for the same instances (S_Pearson).

    Args:
        first: shape (N,), scores of a model.
        second: shape (N,), scores of the other model.

    Returns:
        A number in [-1, 1], high is stable; nan if a model gives all instances the same score.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> pearson_correlation([0.1, 0.2, 0.3], [0.4, 0.2, 0.0])
        -1.0
    """
    return _correlation(*_scores(first, second))


@_stability(
    "Spearman",
    "Linear correlation of the ranks of two models' scores.",
    formula="Pearson on mid-ranks",
    undefined="a model gives all instances the same score",
)
def spearman_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Linear correlation of the ranks of two models' scores; equal scores share their mean rank (S_Spearman).

    Args:
        first: shape (N,), scores of a model.
        second: shape (N,), scores of the other model.

    Returns:
        A number in [-1, 1], high is stable; nan if a model gives all instances the same score.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> spearman_correlation([0.1, 0.2, 0.3], [0.01, 0.5, 0.51])
        1.0
    """
    return _correlation(*(mean_ranks(scores) for scores in _scores(first, second)))


@_stability(
    "Kendall",
    "Pairs of instances that two models order alike, less those that they do not.",
    formula="tau-b",
    undefined="a model gives all instances the same score",
)
def kendall_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b: pairs of instances in the same order for both models minus pairs in opposite order (S_Kendall).

    It is relative to the ordered pairs. The publication prints tau-a, which cannot reach 1 with equal scores.

    Args:
        first: shape (N,), scores of a model.
        second: shape (N,), scores of the other model.

    Returns:
        A number in [-1, 1], high is stable; nan if a model gives all instances the same score.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> round(kendall_correlation([0.1, 0.4, 0.35, 0.8, 0.7], [0.2, 0.3, 0.5, 0.9, 0.6]), 12)
        0.8
    """
    rows, columns = _scores(first, second)
    if _is_constant(rows) or _is_constant(columns):
        return float("nan")
    return kendall_tau_b(rows, columns)


def _table(n00: float, n01: float, n10: float, n11: float) -> Floats:
    return as_confusion([[n00, n01], [n10, n11]], field="counts")


def _check_same_size(first: int, second: int) -> None:
    if first != second:
        raise InvalidInputError(
            f"expected as many values as the first ({first}), got {second}.", field="second"
        )


def _scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    rows, columns = (
        as_values(values, field=field) for values, field in ((first, "first"), (second, "second"))
    )
    _check_same_size(rows.size, columns.size)
    return rows, columns


def _is_constant(values: Floats) -> bool:
    return values.size == 0 or bool(values.min() == values.max())


def _correlation(rows: Floats, columns: Floats) -> float:
    if _is_constant(rows) or _is_constant(columns):
        return float("nan")
    x, y = ((values - values.mean()) / np.ptp(values) for values in (rows, columns))
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))
