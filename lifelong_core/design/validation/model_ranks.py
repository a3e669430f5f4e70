"""Ranks of models on the data and on resampled data, with ties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.design.validation.comparison import ModelRank
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.values.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class RankShares:
    """Shared ranks of models by goodness; undefined values are worse than all defined ones."""

    first: Floats
    """shape (..., M), the best of the places that each shares with the models that are as good"""
    shared_by: Floats
    """shape (..., M), how many models share these places"""

    @classmethod
    def of(cls, goodness: Floats) -> Self:
        """Ranks of goodness of shape (..., M); larger values are better.

        Examples:
            >>> RankShares.of(np.array([0.5, np.nan, 0.9, 0.5])).ranks.tolist()
            [2.5, 4.0, 1.0, 2.5]
        """
        own, other = goodness[..., :, np.newaxis], goodness[..., np.newaxis, :]
        is_undefined, other_undefined = np.isnan(own), np.isnan(other)
        is_beaten: Mask = (other > own) | (is_undefined & ~other_undefined)
        is_equalled: Mask = (other == own) | (is_undefined & other_undefined)
        return cls(
            first=1 + is_beaten.sum(axis=-1).astype(np.float64),
            shared_by=is_equalled.sum(axis=-1).astype(np.float64),
        )

    @property
    def ranks(self) -> Floats:
        """Mean ranks, shape (..., M)."""
        return self.first + (self.shared_by - 1) / 2

    def shares(self) -> Floats:
        """Share of the resampled data sets in which each model takes each place, shape (M, M)."""
        places = 1 + np.arange(len(self.first.T))
        first, shared_by = self.first[..., np.newaxis], self.shared_by[..., np.newaxis]
        is_taken = (first <= places) & (places < first + shared_by)
        return (is_taken / shared_by).mean(axis=0)


def rank_models(
    models: Sequence[str],
    scores: Sequence[Number],
    goodness: Floats,
    resampled: Floats,
    *,
    level: float,
) -> tuple[ModelRank, ...]:
    """The models, best first.

    Args:
        models: M names.
        scores: M numbers, as they are shown.
        goodness: shape (M,), on the data; more is better.
        resampled: shape (R, M), on resampled data.
        level: nominal coverage of the intervals of ranks.

    Examples:
        >>> twins = np.array([[0.9, 0.9], [0.8, 0.8]])
        >>> [one.best for one in rank_models(["a", "b"], [0.85, 0.85], np.array([0.85, 0.85]), twins, level=0.95)]
        [0.5, 0.5]
    """
    observed, places = RankShares.of(goodness).ranks, RankShares.of(resampled)
    ranks, shares = places.ranks, places.shares()
    ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    order: list[int] = np.argsort(observed, kind="stable").tolist()
    return tuple(
        ModelRank(
            model=models[m],
            score=scores[m],
            rank=float(observed[m]),
            mean_rank=float(ranks[:, m].mean()),
            low=float(ends[0, m]),
            high=float(ends[1, m]),
            shares=tuple(shares[m].tolist()),
            best=float(shares[m, 0]),
        )
        for m in order
    )
