"""The result of a comparison of models as a document; the metrics that rank models, and the headline."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric, label_metrics
from lifelong_core.design.recommendation.explanation import same_information
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.values.documents import Frozen, FrozenDocument

SCHEMA_VERSION = 2


RANKING_STEPS = ("S2", "S3", "S4", "S5_step1")
"""Subprocesses whose metrics compare models; the second step of S5 describes one model (thesis section 4.2.1)."""


DESCRIBES_ONE_MODEL = "it was recommended to describe a given model (U4), not to compare models"


HEADLINES: Mapping[str, str] = MappingProxyType(
    {
        "U1": "Re-calibrations of one classifier are compared (U1).",
        "U2": "Classifiers are compared by their calibration (U2). Read the ranking by all metrics beside it: "
        "a model that discriminates poorly may be calibrated best.",
        "U3": "One joint score of discrimination and calibration was asked for (U3).",
    }
)

BY_ALL = "No comparison by calibration was asked for, so all metrics that compare models count."


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
    headline: Headline = Field(description="The ranking to show first.")
    warnings: tuple[str, ...]


def out_of_ranking(recommendation: Recommendation, unusable: Mapping[str, str]) -> dict[str, str]:
    """The labels of the metrics that do not count in an overall ranking, with the reason.

    Of related metrics the first usable one counts, in the order of the recommendation.

    Args:
        recommendation: the metrics.
        unusable: label -> why a metric cannot count: it is undefined, for instance.
    """
    ranking = [metric for step in RANKING_STEPS for metric in _metrics_of(recommendation, step)]
    reasons: dict[str, str] = {}
    counted: list[RecommendedMetric] = []
    for label, metric in label_metrics(recommendation):
        why = unusable.get(label)
        if metric not in ranking:
            why = DESCRIBES_ONE_MODEL
        elif why is None:
            why = same_information(metric, counted, load_method().relations)
        if why is None:
            counted.append(metric)
        else:
            reasons[label] = why
    return reasons


def headline_of(recommendation: Recommendation) -> Headline:
    """The ranking that the interview asked for (thesis section 4.1.3, FP2.7)."""
    wanted = recommendation.fingerprint.calibration_comparison
    own = _metrics_of(recommendation, "S5_step1")
    if wanted is not None and wanted in HEADLINES and own:
        label = next(label for label, metric in label_metrics(recommendation) if metric == own[0])
        return Headline(label=label, why=HEADLINES[wanted])
    return Headline(label=None, why=BY_ALL)


def _metrics_of(recommendation: Recommendation, subprocess: str) -> tuple[RecommendedMetric, ...]:
    steps = (step for step in recommendation.steps if step.subprocess == subprocess)
    return tuple(metric for step in steps for metric in step.metrics)
