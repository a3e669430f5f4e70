"""Validation of a model: recommended metrics with intervals, curves and warnings, on labelled samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.method.conditions import as_matrix
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold, apply_thresholds
from lifelong_core.design.validation.curves import (
    confusion_table,
    decision_curve_points,
    precision_recall_points,
    reliability_bins,
    roc_points,
)
from lifelong_core.design.validation.decisions.decide import DecidedSamples
from lifelong_core.design.validation.decisions.targets import judged_decisions
from lifelong_core.design.validation.result import AdjustedCost, Aggregation, ValidationResult
from lifelong_core.design.validation.subgroup_results import ResampledSubgroup, resample_subgroups
from lifelong_core.design.validation.uncertainty.document import (
    UncertaintyAwareScores,
    UncertaintySettings,
    check_binary,
    predicted_uncertainties,
    with_mean_of_members,
)
from lifelong_core.design.validation.uncertainty.scores import uncertainty_aware_scores
from lifelong_core.design.validation.validation_settings import (
    ValidationSettings,
    decided_samples,
    recipes_of,
)
from lifelong_core.design.validation.values.calibration import calibration_agreement
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.metric_value import CustomValue, MetricValue
from lifelong_core.design.validation.values.metric_values import (
    EvaluatedMetric,
    custom_value,
    evaluate_metric,
)
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples
from lifelong_core.design.validation.warnings import validation_warnings
from lifelong_core.metrics import Bootstrap, CustomMetric, zero_one_costs
from lifelong_core.values.errors import InvalidInputError


def validate(
    recommendation: Recommendation,
    labels: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metadata: Mapping[str, ArrayLike] | None = None,
    class_names: Sequence[str] | None = None,
    thresholds: Sequence[AcceptanceThreshold] = (),
    cut_off_data: tuple[ArrayLike, ArrayLike] | None = None,
    score_prevalence: ArrayLike | None = None,
    uncertainties: ArrayLike | None = None,
    members: Sequence[ArrayLike] | None = None,
    uncertainty_settings: UncertaintySettings | None = None,
    custom: Sequence[CustomMetric] = (),
    name: str = "model",
    replicates: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    aggregation: Aggregation = "pooled",
) -> ValidationResult:
    """Return the recommended metrics of a model with intervals, its curves, and the verdict of acceptance thresholds.

    Args:
        recommendation: the metrics to compute; metrics of open guides are missing, with a warning.
        labels: shape (N,), true classes 0..C-1.
        probabilities: shape (N, C).
        logits: shape (N, C), in place of probabilities, which are their softmax.
        decisions: shape (N,): classes, C to abstain, -1 where the model gave no valid output; such a sample counts as
            the worst value (FP5.3), and its probabilities may be anything. None: those of the decision rule that was
            answered (FP2.6), of the probabilities; the likeliest class (ties: the lowest index) without such a rule.
        groups: shape (N,), the group of each sample, such as its patient; whole groups are resampled (FP4.3).
        metadata: attribute -> value of each sample, shape (N,), for values by subgroup.
        class_names: C names; None: those of the recommendation, else class 0, class 1, ...
        thresholds: acceptance thresholds.
        cut_off_data: labels (M,) and the model's probabilities (M, C) of other samples, on which the cut-offs of a
            decision rule with a target or an optimised metric, and of metrics at a target, are chosen; None: a random
            half of the cases, with whole groups, and these metrics are those of the other half.
        score_prevalence: shape (C,), class shares for which the probabilities hold, such as those of the calibration
            data or those that a head assumes; None: those of the labels. From them, net benefit corrects the
            probabilities to stated target prevalences.
        uncertainties: shape (N,), predicted uncertainty of each sample, not negative, for uncertainty-aware scores of
            two classes (Sperling et al.).
        members: in place of uncertainties, probabilities (N, C) of the same samples by 2 to 100 models, dropout draws
            or augmentations: their spread is the uncertainty. Without probabilities and logits, the model's
            probabilities are their mean.
        uncertainty_settings: sigmas, dampings, threshold and the kind of the uncertainties; None: the defaults.
        custom: metrics of the caller, shown beside the recommended ones; they are neither ranked nor judged by
            thresholds. Their intervals come from at most 200 resampled data sets.
        name: name of the model.
        replicates: number of resampled data sets for the intervals.
        level: nominal coverage of the intervals.
        rng: seed or generator.
        aggregation: "pooled": metrics of all samples. "by_group": metrics of each group, such as a patient's images,
            and their mean over the groups in which they are defined, so that each group counts the same (FP4.3).
            Calibration errors stay pooled. A target of the decision rule is that of all samples.

    Raises:
        InvalidInputError: a shape or a value does not fit, a metric needs what was not given, or a threshold is for a
            metric that is not recommended.

    Examples:
        >>> from lifelong_core.design import ProblemFingerprint, recommend
        >>> answers = {
        ...     "number_of_classes": 2, "class_scores_available": False, "unequal_severity": False,
        ...     "unequal_interest": False, "prevalences_representative": False, "class_contribution": "equal",
        ...     "dependent_cases": False, "invalid_outputs": False,
        ... }
        >>> found = recommend(ProblemFingerprint(**answers))
        >>> result = validate(
        ...     found, [0] * 50 + [1] * 50, decisions=[0] * 45 + [1] * 55,
        ...     thresholds=[AcceptanceThreshold(metric="BA", value=0.85)],
        ... )
        >>> value = result.value("BA")
        >>> value.estimate, 0.85 < value.low < 0.95 < value.high <= 1, result.accepted
        (0.95, True, True)
    """
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
    outputs = ModelOutputs(
        probabilities=probabilities,
        logits=logits,
        decisions=decisions,
        cut_off_data=cut_off_data,
        score_prevalence=score_prevalence,
        uncertainties=uncertainties,
        members=members,
    )
    return validate_one(setting, outputs, name=name).result


@dataclass(frozen=True, eq=False)
class ResampledValidation:
    """A result with the resampled values by which models are compared."""

    result: ValidationResult
    evaluated: Mapping[str, EvaluatedMetric]
    """label of the metric -> its values"""
    subgroups: tuple[ResampledSubgroup, ...]
    samples: Samples

    @property
    def summaries(self) -> Mapping[str, Bootstrap]:
        """By label, the resampled summary of the metric."""
        return {label: one.summary for label, one in self.evaluated.items()}


def validate_one(
    setting: ValidationSettings, outputs: ModelOutputs, *, name: str, judges_half: bool = False
) -> ResampledValidation:
    """Validate one model.

    Args:
        setting: common settings of all models.
        outputs: of the model.
        name: of the model.
        judges_half: whether given decisions are judged on half of the cases, as those of other models are, whose
            cut-offs are chosen on the other half.

    Raises:
        InvalidInputError: as for `validate`.
    """
    recommendation, fingerprint = setting.recommendation, setting.recommendation.fingerprint
    classes = len(setting.class_names)
    for field in ("uncertainties", "members"):
        if getattr(outputs, field) is not None:
            check_binary(classes, field=field)
    outputs = with_mean_of_members(outputs, samples=setting.labels.size, classes=classes)
    samples = Samples.of(setting.labels, outputs, classes=classes, groups=setting.groups)
    mix = ClassMix.of(fingerprint, samples.labels, outputs.score_prevalence)
    decided, split = decided_samples(setting, samples, outputs, mix, judges_half=judges_half)
    samples = decided.samples
    recipes = recipes_of(setting, decided, mix, split)
    found = {
        recipe.label: evaluate_metric(
            recipe,
            samples,
            setting.resamples,
            level=setting.level,
            subprocesses=tuple(
                step.subprocess for step in recommendation.steps if recipe.metric in step.metrics
            ),
        )
        for recipe in recipes
    }
    values = tuple(value for one in found.values() for value in one.values)
    subgroups = resample_subgroups(recipes, samples, setting.metadata, setting.resamples, level=setting.level)
    result = ValidationResult(
        name=name,
        recommendation=recommendation,
        class_names=setting.class_names,
        samples=samples.size,
        invalid_samples=int((~samples.is_valid).sum()),
        cases=samples.cases,
        groups=setting.groups is not None,
        aggregation=setting.aggregation,
        level=setting.level,
        replicates=setting.replicates,
        seed=setting.seed,
        prevalence=tuple((np.bincount(samples.labels, minlength=samples.classes) / samples.size).tolist()),
        target_prevalences=fingerprint.target_prevalences,
        values=values,
        confusion=confusion_table(samples.part(decided.rows)),
        **_curves(samples, recommendation, mix),
        adjusted_expected_cost=_adjusted_cost(setting, decided),
        subgroups=tuple(one.result for one in subgroups),
        warnings=validation_warnings(recommendation, decided, recipes, has_groups=setting.groups is not None),
        acceptance=apply_thresholds(setting.thresholds, values),
        uncertainty_aware=_uncertainty_aware(setting, samples, outputs),
        decisions=judged_decisions(
            decided, recipes, setting.resamples, mix, setting.class_names, level=setting.level
        ),
        calibration_agreement=calibration_agreement(samples, level=setting.level)
        if fingerprint.calibration_assessment
        else (),
        custom=_custom_values(setting, decided),
    )
    return ResampledValidation(result, found, subgroups, samples)


def _curves(samples: Samples, recommendation: Recommendation, mix: ClassMix | None) -> dict[str, Any]:
    """The curves of a result, by field; none without valid probabilities."""
    if samples.probabilities is None or not samples.is_valid.any():
        return {"roc_curves": (), "precision_recall_curves": (), "reliability": (), "decision_curves": ()}
    scored = samples.part(samples.is_valid)
    return {
        "roc_curves": roc_points(scored),
        "precision_recall_curves": precision_recall_points(scored),
        "reliability": reliability_bins(scored),
        "decision_curves": decision_curve_points(scored, recommendation, mix),
    }


def _custom_values(setting: ValidationSettings, decided: DecidedSamples) -> tuple[CustomValue, ...]:
    """The metrics of the caller; metrics of decisions use the samples whose decisions are judged."""
    found: list[CustomValue] = []
    for metric in setting.custom:
        samples, resamples = decided.samples, setting.resamples
        if "decisions" in metric.needs:
            samples, resamples = samples.part(decided.rows), resamples.part(decided.rows)
        found.append(custom_value(metric, samples, resamples, level=setting.level))
    return tuple(found)


def _uncertainty_aware(
    setting: ValidationSettings, samples: Samples, outputs: ModelOutputs
) -> UncertaintyAwareScores | None:
    """The uncertainty-aware scores; None without uncertainties."""
    target = setting.recommendation.fingerprint.target_class
    positive = 1 if target is None else target
    given = predicted_uncertainties(
        outputs, samples.is_valid, kind=setting.uncertainty.kind, positive=positive
    )
    if given is None:
        return None
    if samples.probabilities is None:
        raise InvalidInputError(
            "uncertainty-aware scores need the probabilities of the samples.",
            field="probabilities",
            hint="Give probabilities or logits beside the uncertainties.",
        )
    return uncertainty_aware_scores(
        samples,
        given,
        setting.resamples,
        settings=setting.uncertainty,
        positive=positive,
        level=setting.level,
    )


def _adjusted_cost(setting: ValidationSettings, decided: DecidedSamples) -> AdjustedCost | None:
    """Expected cost at the stated class shares; with 0-1 costs if no others are agreed on."""
    samples = decided.samples
    fingerprint = setting.recommendation.fingerprint
    prevalence = fingerprint.target_prevalences
    if prevalence is None:
        return None
    decisions = samples.classes + samples.can_abstain
    costs = fingerprint.costs or as_matrix(zero_one_costs(samples.classes, decisions))

    def value(parameters: dict[str, Any]) -> MetricValue:
        metric = RecommendedMetric(metric="EC", per_class=False, parameters=parameters)
        recipe = Recipe.of("EC", metric, weights=None, split=None, seed=setting.seed, judged=decided.judged)
        return evaluate_metric(
            recipe, samples, setting.resamples, level=setting.level, subprocesses=()
        ).values[0]

    return AdjustedCost(
        prevalence=prevalence,
        costs=costs,
        adjusted=value({"costs": costs, "prevalence": prevalence}),
        observed=value({"costs": costs}),
    )
