"""Rankings of models by one metric or by several, on the data and on resampled data, with ties."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.comparison import (
    Basis,
    MetricRanking,
    ModelRank,
    OverallRanking,
    Scheme,
    out_of_ranking,
)
from lifelong_core.design.validation.values.metric_value import MetricValue, Number
from lifelong_core.values.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class Measure:
    """One metric of all models."""

    value: MetricValue
    """value of the first model; label, orientation and range are the same for all models"""
    observed: Floats
    """shape (M,)"""
    resampled: Floats
    """shape (R, M)"""
    basis: Basis = "value"

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is."""
        return 1.0 if self.value.orientation == "up" else -1.0

    @property
    def reason(self) -> str | None:
        """Why there is no ranking; None if the metric is defined for some model, on the data and on resampled data."""
        if np.isnan(self.observed).all():
            return f"undefined for every model: {self.value.reason}"
        return "undefined in every resampled data set" if np.isnan(self.resampled).all() else None

    @property
    def has_scale(self) -> bool:
        """Whether the metric has a worst and a best value."""
        low, high = self.value.range
        return low is not None and high is not None and low != high

    def ranks(self, values: Floats) -> Floats:
        """The rank of each model, shape (..., M), 1 the best; nan where the metric is undefined for all."""
        places = RankShares.of(self.sign * values).ranks
        return np.where(np.isnan(values).all(axis=-1, keepdims=True), np.nan, places)

    def rescale(self, values: Floats) -> Floats:
        """Values scaled from 0, the worst, to 1, the best, if the range is bounded."""
        low, high = (math.nan if end is None else end for end in self.value.range)
        share = (values - low) / (high - low)
        return share if self.value.orientation == "up" else 1 - share


def rank_by(measure: Measure, models: list[str], level: float) -> MetricRanking:
    """The ranking of models, given by their names, by one metric; `level` is the coverage of the intervals of ranks."""
    value = measure.value
    resampled = measure.resampled[~np.isnan(measure.resampled).all(axis=1)]
    scores = [number if math.isfinite(number) else None for number in measure.observed.tolist()]
    return MetricRanking(
        label=value.label,
        metric=value.metric,
        class_index=value.class_index,
        orientation=value.orientation,
        basis=measure.basis,
        replicates=len(resampled),
        models=rank_models(
            models, scores, measure.sign * measure.observed, measure.sign * resampled, level=level
        )
        if measure.reason is None
        else (),
        reason=measure.reason,
    )


def rank_then_mean(
    measures: Sequence[Measure], recommendation: Recommendation, models: list[str], level: float
) -> OverallRanking:
    """The ranking by the mean of a model's ranks over all metrics that count (thesis Def. 5.21)."""
    left_out = out_of_ranking(recommendation, _undefined(measures))
    counted = [measure for measure in measures if measure.value.label not in left_out]
    observed = [measure.ranks(measure.observed) for measure in counted]
    resampled = [measure.ranks(measure.resampled) for measure in counted]
    return _overall("rank_then_mean", counted, left_out, models, observed, resampled, level)


def mean_then_rank(
    measures: Sequence[Measure], recommendation: Recommendation, models: list[str], level: float
) -> OverallRanking:
    """The ranking by the mean of a model's values, each between 0, its worst, and 1, its best (thesis Def. 5.21)."""
    unusable = {
        measure.value.label: "it has no worst or no best value, so that no scale fits the others"
        for measure in measures
        if not measure.has_scale
    }
    left_out = out_of_ranking(recommendation, unusable | _undefined(measures))
    counted = [measure for measure in measures if measure.value.label not in left_out]
    observed = [measure.rescale(measure.observed) for measure in counted]
    resampled = [measure.rescale(measure.resampled) for measure in counted]
    return _overall("mean_then_rank", counted, left_out, models, observed, resampled, level)


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


def _undefined(measures: Sequence[Measure]) -> dict[str, str]:
    """Label -> why a metric ranks no model."""
    return {one.value.label: f"it is {one.reason}" for one in measures if one.reason is not None}


def _overall(
    scheme: Scheme,
    counted: Sequence[Measure],
    left_out: Mapping[str, str],
    models: list[str],
    observed: Sequence[Floats],
    resampled: Sequence[Floats],
    level: float,
) -> OverallRanking:
    """Ranking by the mean over the metrics, of the data, shape (M,), and of the common resampled data, shape (R, M)."""
    resampled_means = _means(resampled)
    ranking = OverallRanking(
        scheme=scheme,
        labels=tuple(measure.value.label for measure in counted),
        left_out=left_out,
        replicates=len(resampled_means),
        models=(),
    )
    if not len(resampled_means):
        return ranking
    means = np.mean(observed, axis=0)
    sign = -1.0 if scheme == "rank_then_mean" else 1.0
    scores = [number if math.isfinite(number) else None for number in means.tolist()]
    order = rank_models(models, scores, sign * means, sign * resampled_means, level=level)
    return ranking.model_copy(update={"models": order})


def _means(resampled: Sequence[Floats]) -> Floats:
    """Means over the metrics that are defined for some model, of each resampled data set, shape (R, M)."""
    if not resampled:
        return np.empty((0, 0))
    replicates = min(map(len, resampled))
    values = np.array([of_metric[:replicates] for of_metric in resampled])
    is_undefined = np.isnan(values).all(axis=2, keepdims=True)
    counts = (~is_undefined).sum(axis=0)
    says_something = counts[:, 0] > 0
    sums = np.where(is_undefined, 0.0, values).sum(axis=0)
    return sums[says_something] / counts[says_something]
