"""Comparison of several models on the same samples, with the uncertainty of their ranks."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.recommendation.stated_rule import recommended_rule
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.comparison import (
    ModelComparison,
    headline_of,
)
from lifelong_core.design.validation.decisions.decide import needs_other_cases
from lifelong_core.design.validation.ranking import (
    Measure,
    mean_then_rank,
    rank_by,
    rank_then_mean,
)
from lifelong_core.design.validation.result import Aggregation
from lifelong_core.design.validation.uncertainty.document import UncertaintySettings
from lifelong_core.design.validation.validate import ResampledValidation, validate_one
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.samples import ModelOutputs
from lifelong_core.metrics import CustomMetric
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
    validations = {
        name: _named(setting, outputs, name, judges_half=judges_half) for name, outputs in models.items()
    }
    measures = _measures(validations)
    return ModelComparison(
        results={name: one.result for name, one in validations.items()},
        level=level,
        replicates=replicates,
        seed=setting.seed,
        rankings=tuple(rank_by(measure, list(models), level) for measure in measures),
        rank_then_mean=rank_then_mean(measures, recommendation, list(models), level),
        mean_then_rank=mean_then_rank(measures, recommendation, list(models), level),
        headline=headline_of(recommendation),
        warnings=tuple(_warnings(validations)),
    )


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


def _measures(validations: Mapping[str, ResampledValidation]) -> list[Measure]:
    first = next(iter(validations.values()))
    measures: list[Measure] = []
    for label in first.result.labels:
        summaries = [one.summaries[label] for one in validations.values()]
        measures.append(
            Measure(
                value=first.result.value(label),
                observed=np.array([float(summary.estimate) for summary in summaries]),
                resampled=np.stack([summary.replicates for summary in summaries], axis=1),
                basis="value" if first.evaluated[label].parts[0].chance is None else "excess",
            )
        )
    return measures


def _warnings(validations: Mapping[str, ResampledValidation]) -> Iterator[str]:
    """Warnings about the models: once if all models have them."""
    results = [one.result for one in validations.values()]
    for text in dict.fromkeys(text for result in results for text in result.warnings):
        having = [result.name for result in results if text in result.warnings]
        yield text if len(having) == len(results) else f"{', '.join(having)}: {text}"
