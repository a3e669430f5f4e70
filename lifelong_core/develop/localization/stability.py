"""Agreement of the places that two models find positive, after R. Romanova (2020), sections II and III.

The scores of counts and of vectors are those of `lifelong_core.metrics.counting.stability`, misprints corrected; here
they are of two maps with one score for each patch of an image.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting import stability as scores
from lifelong_core.metrics.counting.stability import Agreement
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

THRESHOLD = 0.5
"""that of the publication (section IV-G)"""

SCORE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "positive_overlap": "positive overlap",
        "adjusted_positive_overlap": "adjusted positive overlap",
        "positive_jaccard": "positive Jaccard",
        "heuristically_adjusted_positive_jaccard": "positive Jaccard, heuristically adjusted",
        "adjusted_positive_jaccard": "adjusted positive Jaccard",
        "adjusted_jaccard": "adjusted Jaccard (kappa)",
        "pearson": "Pearson correlation",
        "spearman": "Spearman correlation",
        "kendall": "Kendall's tau",
    }
)
"""Names of the scores for people."""
_LOWEST: Mapping[str, float] = MappingProxyType(
    {
        "positive_overlap": 0.0,
        "adjusted_positive_overlap": -math.inf,
        "positive_jaccard": 0.0,
        "heuristically_adjusted_positive_jaccard": 0.0,
        "adjusted_positive_jaccard": -1 / 3,
    }
)
"""Lower limits of scores other than -1; upper limits are 1."""


@dataclass(frozen=True)
class Stability:
    """Stability scores of two maps of one image; nan where a score is undefined. High is stable.

    Attributes:
        agreement: numbers of patches by their decisions, from which all scores but the correlations follow.
        positive_overlap: S_PO (eq. 15), in [0, 1]; nan if one map has no positive patch.
        adjusted_positive_overlap: S_APO (eq. 16), in [1 - N, 1]; nan if one map has no or only positive patches.
        positive_jaccard: S_J (eq. 7), in [0, 1]; nan if no map has a positive patch.
        heuristically_adjusted_positive_jaccard: S_HAPJ (eq. 17), in [0, 1]; nan if all patches agree on one decision.
        adjusted_positive_jaccard: S_APJ (eq. 18), in [-1/3, 1]; nan if all patches agree on one decision.
        adjusted_jaccard: S_AJ (eq. 19), Cohen's kappa, in [-1, 1]; nan if all patches agree on one decision.
        pearson: correlation of the scores, in [-1, 1]; nan if one map is constant.
        spearman: correlation of their ranks, mean ranks for ties; likewise.
        kendall: tau-b, likewise.
    """

    agreement: Agreement
    positive_overlap: float
    adjusted_positive_overlap: float
    positive_jaccard: float
    heuristically_adjusted_positive_jaccard: float
    adjusted_positive_jaccard: float
    adjusted_jaccard: float
    pearson: float
    spearman: float
    kendall: float


SCORES: tuple[str, ...] = tuple(field.name for field in fields(Stability))[1:]
"""Names of the scores of `Stability`, in the order of the publication."""


def stability(first: ArrayLike, second: ArrayLike, *, threshold: float = THRESHOLD) -> Stability:
    """Compare two maps of one image.

    For patches that are permuted at random, the expectations of S_APO, S_AJ and the correlations are 0 exactly, since
    their denominators depend on nothing but the numbers of positives. That of S_APJ is a little above 0, since its
    denominator shrinks as the overlap grows; S_PO, S_J and S_HAPJ are not adjusted for chance.

    Args:
        first: scores of one model, of any shape, usually (rows, columns).
        second: scores of the other model for the same patches, of the same shape.
        threshold: patches with at least this score are positive (eq. 10).

    Raises:
        InvalidInputError: the shapes differ, or a score or the threshold is not finite.

    Examples:
        >>> found = stability([[0.9, 0.6], [0.2, 0.1]], [[0.8, 0.3], [0.4, 0.0]])
        >>> found.agreement
        Agreement(n00=2.0, n01=0.0, n10=1.0, n11=1.0)
        >>> found.positive_overlap, found.positive_jaccard, found.adjusted_jaccard, round(found.spearman, 12)
        (1.0, 0.5, 0.5, 0.8)
    """
    maps = _map(first, "first"), _map(second, "second")
    if maps[0].shape != maps[1].shape:
        raise InvalidInputError(
            f"expected a map of the shape of the first, {maps[0].shape}, got {maps[1].shape}.", field="second"
        )
    if not np.isfinite(threshold):
        raise InvalidInputError(f"expected a finite number, got {threshold}.", field="threshold")
    rows, columns = (values.ravel() for values in maps)
    counts = scores.agreement(rows >= threshold, columns >= threshold)
    return Stability(
        counts,
        scores.positive_overlap(*counts),
        scores.adjusted_positive_overlap(*counts),
        scores.positive_jaccard(*counts),
        scores.heuristically_adjusted_positive_jaccard(*counts),
        scores.adjusted_positive_jaccard(*counts),
        scores.adjusted_jaccard(*counts),
        scores.pearson_correlation(rows, columns),
        scores.spearman_correlation(rows, columns),
        scores.kendall_correlation(rows, columns),
    )


def _map(values: ArrayLike, field: str) -> Floats:
    """The scores as numbers; the correlations refuse those that are not finite."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected one number for each patch.", field=field) from error


@dataclass(frozen=True)
class MeanScore:
    """Mean of a score over images; None where it is undefined."""

    mean: float | None
    """None: the score is undefined in all images"""
    low: float | None
    """None: fewer than two images"""
    high: float | None
    defined: int
    """images in which the score is defined"""
    undefined: int


def mean_score(name: str, values: Iterable[float], *, level: float = 0.95) -> MeanScore:
    """Mean of a score over independent images, without those in which it is undefined.

    The interval is that of Student's t distribution, cut at the limits of the score.

    Args:
        name: one of `SCORES`.
        values: shape (N,), nan where undefined.
        level: nominal coverage of the interval.

    Examples:
        >>> found = mean_score("adjusted_jaccard", [0.25, 0.5, 0.75, float("nan")])
        >>> found.mean, round(found.low, 3), found.high, found.defined, found.undefined
        (0.5, -0.121, 1.0, 3, 1)
    """
    given = np.fromiter(values, dtype=np.float64)
    known = given[~np.isnan(given)]
    undefined = given.size - known.size
    if not known.size:
        return MeanScore(None, None, None, 0, undefined)
    mean = float(known.mean())
    if known.size == 1:
        return MeanScore(mean, None, None, 1, undefined)
    quantile = float(t_quantile(known.size - 1, (1 + level) / 2))
    margin = quantile * float(known.std(ddof=1)) / math.sqrt(known.size)
    low, high = max(_LOWEST.get(name, -1.0), mean - margin), min(1.0, mean + margin)
    return MeanScore(mean, low, high, known.size, undefined)
