"""The result of a comparison of models as a document that can be stored, sent and printed."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import Field, model_validator

from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.values.documents import Frozen, FrozenDocument

SCHEMA_VERSION = 2

Basis: TypeAlias = Literal["value", "excess"]
"""`excess`: of a calibration error over that of perfectly calibrated predictions"""
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
    basis: Basis = Field(default="value", description="What the scores of the models are.")
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


class Headline(Frozen):
    """The ranking that answers the question of the interview."""

    label: str | None = Field(
        description="The metric whose ranking it is; null: the ranking by all metrics, rank then mean."
    )
    why: str


class ModelComparison(FrozenDocument):
    """Several models on the same samples, by the recommended metrics."""

    schema_version: Literal[2] = SCHEMA_VERSION
    results: Mapping[str, ValidationResult] = Field(
        description="By model, in the order in which they were given."
    )
    level: float
    replicates: int
    seed: int
    rankings: tuple[MetricRanking, ...] = Field(description="By metric, in the order of the recommendation.")
    rank_then_mean: OverallRanking
    mean_then_rank: OverallRanking
    headline: Headline | None = Field(
        default=None, description="The ranking to show first; null in documents of earlier versions."
    )
    warnings: tuple[str, ...]

    @model_validator(mode="before")
    @classmethod
    def _from_older_version(cls, document: Any) -> Any:
        """Read version 1, whose calibration errors rank models by their value."""
        if not isinstance(document, dict):
            return document
        given = cast("dict[str, Any]", document)
        return {**given, "schema_version": SCHEMA_VERSION} if given.get("schema_version") == 1 else given
