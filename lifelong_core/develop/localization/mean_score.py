"""The mean of a stability score over images, with its interval."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lifelong_core.values.scientific import t_quantile

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
