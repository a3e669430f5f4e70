"""The result of a comparison of models as a document that can be stored, sent and printed."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.documents import Frozen, FrozenDocument

SCHEMA_VERSION = 1

Scheme: TypeAlias = Literal["rank_then_mean", "mean_then_rank"]


class ModelRank(Frozen):
    """The rank of one model with its uncertainty. Ranks start at 1; tied models share their mean rank."""

    model: str
    score: Number = Field(
        description="Basis of the rank: the metric, the mean rank, or the mean of the rescaled values."
    )
    rank: float = Field(description="Rank on the data.")
    mean_rank: float = Field(description="Mean rank over the resampled data sets.")
    low: float = Field(description="Lower end of the interval of ranks.")
    high: float = Field(description="Upper end of the interval of ranks.")
    shares: tuple[float, ...] = Field(
        description="Share of the resampled data sets by place, 1..M; tied models share places evenly."
    )
    best: float = Field(description="Probability of being best: the first of the shares.")


class MetricRanking(Frozen):
    """The ranking of the models by one metric."""

    label: str
    metric: str
    class_index: int | None = Field(description="None: by the summary of the metric.")
    orientation: Literal["up", "down"]
    replicates: int = Field(description="Number of resampled data sets in which some model has a value.")
    models: tuple[ModelRank, ...] = Field(description="Best first.")
    reason: str | None = Field(default=None, description="Why there is no ranking, where `models` is empty.")


class OverallRanking(Frozen):
    """The ranking of the models by several metrics together."""

    scheme: Scheme
    labels: tuple[str, ...] = Field(description="The metrics that count.")
    left_out: Mapping[str, str] = Field(description="Metric -> why it does not count.")
    replicates: int
    models: tuple[ModelRank, ...] = Field(description="Best first; empty where no metric counts.")


class ModelComparison(FrozenDocument):
    """Several models on the same samples, by the recommended metrics."""

    schema_version: Literal[1] = SCHEMA_VERSION
    results: Mapping[str, ValidationResult] = Field(
        description="By model, in the order in which they were given."
    )
    level: float
    replicates: int
    seed: int
    rankings: tuple[MetricRanking, ...] = Field(description="By metric, in the order of the recommendation.")
    rank_then_mean: OverallRanking
    mean_then_rank: OverallRanking
    warnings: tuple[str, ...]
