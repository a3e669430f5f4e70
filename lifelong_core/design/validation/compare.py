"""Comparison of several models on the same samples, with the uncertainty of their ranks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.stated_rule import recommended_rule
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.comparison import (
    Basis,
    MetricRanking,
    ModelComparison,
    OverallRanking,
    Scheme,
)
from lifelong_core.design.validation.decisions.cut_off_choice import needs_other_cases
from lifelong_core.design.validation.model_ranks import RankShares, rank_models
from lifelong_core.design.validation.outputs import ModelOutputs
from lifelong_core.design.validation.ranked_metrics import headline_of, out_of_ranking
from lifelong_core.design.validation.result import Aggregation
from lifelong_core.design.validation.uncertainty.settings import UncertaintySettings
from lifelong_core.design.validation.validate_one import ResampledValidation, validate_one
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.metrics import CustomMetric
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


def compare(
    recommendation: Recommendation,
    labels: ArrayLike,
    models: Mapping[str, ModelOutputs],
    *,
    groups: ArrayLike | None = None,
    metadata: Mapping[str, ArrayLike] | None = None,
    class_names: Sequence[str] | None = None,
    thresholds: Sequence[AcceptanceThreshold] = (),
    replicates: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    uncertainty_settings: UncertaintySettings | None = None,
    aggregation: Aggregation = "pooled",
    custom: Sequence[CustomMetric] = (),
) -> ModelComparison:
    """Validate several models on the same samples, and rank them by each metric and by all together.

    Every model is validated on the same resampled data sets, and ranked in each of them. A metric ranks models by its
    summary: for a metric per class the mean over the classes. All metrics together rank models in two ways (thesis
    Def. 5.21, with the metrics as its nodes):

    - rank then mean: by the mean of a model's ranks. Every metric counts the same, differences in size do not matter.
    - mean then rank: by the mean of a model's values, each brought to 0 at the metric's worst value and 1 at its best.
      A metric without both bounds has no such scale and does not count.

    Calibration errors rank models by their excess over perfectly calibrated predictions (`calibrated_reference`): what
    chance adds to the error depends on the probabilities, and would decide between models.

    Only metrics of S2 to S4 and of the first step of S5 count in these: those of the second step describe a given model
    (U4). Of metrics that say much the same (thesis table 4.2) the first one counts (thesis table 4.3).

    The headline is the ranking that the interview asked for: that of the calibration metric where classifiers or
    re-calibrations are compared by it (U1 to U3), else the one by all metrics.

    Models that are equally good share their places. A model for which a metric is undefined shares the last places;
    resampled data sets in which it is undefined for all say nothing about this metric, and are left out there.

    Args:
        recommendation: the metrics to compare by.
        labels: shape (N,), true classes 0..C-1.
        models: at least two, by name.
        groups: this and all further arguments as for `validate`.
        metadata: attribute -> value of each sample.
        class_names: C names; None: those of the recommendation, else class 0, class 1, ...
        thresholds: acceptance thresholds.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals, including those of ranks.
        rng: seed or generator.
        uncertainty_settings: of uncertainty-aware scores, for models with uncertainties or members.
        aggregation: over all samples, or first within each group.
        custom: metrics of the caller, in the result of each model; models are not ranked by them.

    Raises:
        InvalidInputError: there are fewer than two models, or as for `validate`.

    Examples:
        >>> from lifelong_core.design import ProblemFingerprint, recommend
        >>> answers = {
        ...     "number_of_classes": 2, "class_scores_available": False, "unequal_severity": False,
        ...     "unequal_interest": False, "prevalences_representative": False, "class_contribution": "equal",
        ...     "dependent_cases": False, "invalid_outputs": False,
        ... }
        >>> models = {
        ...     "old": ModelOutputs(decisions=[0] * 40 + [1] * 60),
        ...     "new": ModelOutputs(decisions=[0] * 48 + [1] * 52),
        ... }
        >>> found = compare(recommend(ProblemFingerprint(**answers)), [0] * 50 + [1] * 50, models)
        >>> best = found.rank_then_mean.models[0]
        >>> best.model, best.best > 0.95
        ('new', True)
    """
    if len(models) < 2:
        raise InvalidInputError(f"expected at least two models, got {len(models)}.", field="models")
    if len({outputs.cut_off_data is None for outputs in models.values()}) > 1:
        raise InvalidInputError(
            "cut-off data were given for some of the models only, which would be judged on other samples.",
            field="models",
            hint="Give them for all or for none.",
        )
    setting = ValidationSettings.of(
        recommendation,
        labels,
        groups=groups,
        metadata=metadata,
        class_names=class_names,
        thresholds=thresholds,
        replicates=replicates,
        level=level,
        rng=rng,
        uncertainty=uncertainty_settings,
        aggregation=aggregation,
        custom=custom,
    )
    judges_half = _judges_half(recommendation, models)
    found = {
        name: _named(setting, outputs, name, judges_half=judges_half) for name, outputs in models.items()
    }
    measures = _measures(found)
    return ModelComparison(
        results={name: one.result for name, one in found.items()},
        level=level,
        replicates=replicates,
        seed=setting.seed,
        rankings=tuple(_ranking(measure, list(models), level) for measure in measures),
        rank_then_mean=_rank_then_mean(measures, recommendation, list(models), level),
        mean_then_rank=_mean_then_rank(measures, recommendation, list(models), level),
        headline=headline_of(recommendation),
        warnings=tuple(_warnings(found)),
    )


@dataclass(frozen=True, eq=False)
class Measure:
    """One metric of all models."""

    value: MetricValue
    """of the first model: label, orientation and range, which are the same for all"""
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


def _judges_half(recommendation: Recommendation, models: Mapping[str, ModelOutputs]) -> bool:
    """Whether a model's cut-off is chosen on half of the cases, so that all are judged on the other half."""
    classes = recommendation.fingerprint.number_of_classes or 2
    if not needs_other_cases(recommended_rule(recommendation), classes):
        return False
    return any(one.decisions is None and one.cut_off_data is None for one in models.values())


def _named(
    setting: ValidationSettings, outputs: ModelOutputs, name: str, *, judges_half: bool
) -> ResampledValidation:
    try:
        return validate_one(setting, outputs, name=name, judges_half=judges_half)
    except InvalidInputError as error:
        raise InvalidInputError(
            error.message, field=f"models.{name}.{error.field}", hint=error.hint
        ) from error


def _measures(found: Mapping[str, ResampledValidation]) -> list[Measure]:
    first = next(iter(found.values()))
    measures: list[Measure] = []
    for label in first.result.labels:
        summaries = [one.summaries[label] for one in found.values()]
        measures.append(
            Measure(
                value=first.result.value(label),
                observed=np.array([float(summary.estimate) for summary in summaries]),
                resampled=np.stack([summary.replicates for summary in summaries], axis=1),
                basis="value" if first.evaluated[label].parts[0].chance is None else "excess",
            )
        )
    return measures


def _ranking(measure: Measure, models: list[str], level: float) -> MetricRanking:
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


def _rank_then_mean(
    measures: Sequence[Measure], recommendation: Recommendation, models: list[str], level: float
) -> OverallRanking:
    left_out = out_of_ranking(recommendation, _undefined(measures))
    counted = [measure for measure in measures if measure.value.label not in left_out]
    observed = [measure.ranks(measure.observed) for measure in counted]
    resampled = [measure.ranks(measure.resampled) for measure in counted]
    return _overall("rank_then_mean", counted, left_out, models, observed, resampled, level)


def _mean_then_rank(
    measures: Sequence[Measure], recommendation: Recommendation, models: list[str], level: float
) -> OverallRanking:
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
    found = OverallRanking(
        scheme=scheme,
        labels=tuple(measure.value.label for measure in counted),
        left_out=left_out,
        replicates=len(resampled_means),
        models=(),
    )
    if not len(resampled_means):
        return found
    means = np.mean(observed, axis=0)
    sign = -1.0 if scheme == "rank_then_mean" else 1.0
    scores = [number if math.isfinite(number) else None for number in means.tolist()]
    order = rank_models(models, scores, sign * means, sign * resampled_means, level=level)
    return found.model_copy(update={"models": order})


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


def _warnings(found: Mapping[str, ResampledValidation]) -> Iterator[str]:
    """Warnings about the models: once if all models have them."""
    results = [one.result for one in found.values()]
    for text in dict.fromkeys(text for result in results for text in result.warnings):
        having = [result.name for result in results if text in result.warnings]
        yield text if len(having) == len(results) else f"{', '.join(having)}: {text}"
