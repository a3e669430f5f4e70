"""Validation of a model: recommended metrics with intervals, curves and warnings, on labelled samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Integers, as_labels
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric
from lifelong_core.design.recommendation.labels import label_metrics
from lifelong_core.design.recommendation.parameters import as_matrix
from lifelong_core.design.validation.acceptance import AcceptanceThreshold, apply_thresholds, check_thresholds
from lifelong_core.design.validation.curves import (
    confusion_table,
    decision_curve_points,
    precision_recall_points,
    reliability_bins,
    roc_points,
)
from lifelong_core.design.validation.displays import AdjustedCost
from lifelong_core.design.validation.outputs import ModelOutputs, Samples, units_of
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.subgroup_results import ResampledSubgroup, resample_subgroups
from lifelong_core.design.validation.uncertainty.document import UncertaintyAwareScores
from lifelong_core.design.validation.uncertainty.predicted import (
    check_binary,
    predicted_uncertainties,
    with_mean_of_members,
)
from lifelong_core.design.validation.uncertainty.scores import uncertainty_aware_scores
from lifelong_core.design.validation.uncertainty.settings import UncertaintySettings
from lifelong_core.design.validation.values.evaluation import Recipe, Split, class_weights_of
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.design.validation.values.metric_values import EvaluatedMetric, evaluate_metric
from lifelong_core.design.validation.values.resamples import Resamples
from lifelong_core.design.validation.warnings import validation_warnings
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import Bootstrap, zero_one_costs

FEWEST_REPLICATES = 10
MOST_REPLICATES = 100_000


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
    uncertainties: ArrayLike | None = None,
    members: Sequence[ArrayLike] | None = None,
    uncertainty_settings: UncertaintySettings | None = None,
    name: str = "model",
    replicates: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> ValidationResult:
    """Return the recommended metrics of a model with intervals, its curves, and the verdict of acceptance thresholds.

    Args:
        recommendation: the metrics to compute; metrics of open guides are missing, with a warning.
        labels: shape (N,), true classes 0..C-1.
        probabilities: shape (N, C).
        logits: shape (N, C), in place of probabilities, which are their softmax.
        decisions: shape (N,): classes, C to abstain, -1 where the model gave no valid output; such a sample counts as
            the worst value (FP5.3), and its probabilities may be anything. None: the likeliest class (ties: the lowest
            index).
        groups: shape (N,), the group of each sample, such as its patient; whole groups are resampled (FP4.3).
        metadata: attribute -> value of each sample, shape (N,), for values by subgroup.
        class_names: C names; None: those of the recommendation, else class 0, class 1, ...
        thresholds: acceptance thresholds.
        cut_off_data: labels (M,) and the model's probabilities (M, C) of other samples, on which the cut-offs of
            metrics at a target are chosen; None: a random half of the cases, and these metrics are those of the other
            half.
        uncertainties: shape (N,), predicted uncertainty of each sample, not negative, for uncertainty-aware scores of
            two classes (Sperling et al.).
        members: in place of uncertainties, probabilities (N, C) of the same samples by 2 to 100 models, dropout draws
            or augmentations: their spread is the uncertainty. Without probabilities and logits, the model's
            probabilities are their mean.
        uncertainty_settings: sigmas, dampings, threshold and the kind of the uncertainties; None: the defaults.
        name: name of the model.
        replicates: number of resampled data sets for the intervals.
        level: nominal coverage of the intervals.
        rng: seed or generator.

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
    )
    outputs = ModelOutputs(
        probabilities=probabilities,
        logits=logits,
        decisions=decisions,
        cut_off_data=cut_off_data,
        uncertainties=uncertainties,
        members=members,
    )
    return validate_one(setting, outputs, name=name).result


@dataclass(frozen=True, kw_only=True, eq=False)
class ValidationSettings:
    """The common settings of all models that are validated together."""

    recommendation: Recommendation
    labels: Integers
    """shape (N,)"""
    groups: ArrayLike | None
    metadata: Mapping[str, ArrayLike]
    class_names: tuple[str, ...]
    thresholds: tuple[AcceptanceThreshold, ...]
    replicates: int
    level: float
    seed: int
    resamples: Resamples
    uncertainty: UncertaintySettings

    @classmethod
    def of(
        cls,
        recommendation: Recommendation,
        labels: ArrayLike,
        *,
        groups: ArrayLike | None,
        metadata: Mapping[str, ArrayLike] | None,
        class_names: Sequence[str] | None,
        thresholds: Sequence[AcceptanceThreshold],
        replicates: int,
        level: float,
        rng: int | np.random.Generator,
        uncertainty: UncertaintySettings | None = None,
    ) -> Self:
        """Check the arguments, and draw the resamples.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        classes = recommendation.fingerprint.number_of_classes or 2
        reference = as_labels(labels, classes=classes)
        if reference.size == 0:
            raise InvalidInputError("expected at least one sample.", field="labels")
        if not FEWEST_REPLICATES <= replicates <= MOST_REPLICATES:
            raise InvalidInputError(
                f"expected {FEWEST_REPLICATES}..{MOST_REPLICATES}, got {replicates}.", field="replicates"
            )
        if not 0 < level < 1:
            raise InvalidInputError(f"expected a number between 0 and 1, got {level}.", field="level")
        check_thresholds(recommendation, thresholds)
        seed = int(rng.integers(2**32)) if isinstance(rng, np.random.Generator) else int(rng)
        if seed < 0:
            raise InvalidInputError(f"expected a seed of 0 or more, got {seed}.", field="rng")
        return cls(
            recommendation=recommendation,
            labels=reference,
            groups=groups,
            metadata=metadata or {},
            class_names=_class_names(class_names, recommendation, classes),
            thresholds=tuple(thresholds),
            replicates=replicates,
            level=level,
            seed=seed,
            resamples=Resamples.draw(
                units_of(groups, samples=reference.size), replicates=replicates, seed=seed
            ),
            uncertainty=uncertainty or UncertaintySettings(),
        )


@dataclass(frozen=True, eq=False)
class ResampledValidation:
    """A result with the resampled values by which models are compared."""

    result: ValidationResult
    evaluated: Mapping[str, EvaluatedMetric]
    """by label"""
    subgroups: tuple[ResampledSubgroup, ...]
    samples: Samples

    @property
    def summaries(self) -> Mapping[str, Bootstrap]:
        """By label, the resampled summary of the metric."""
        return {label: one.summary for label, one in self.evaluated.items()}


def validate_one(setting: ValidationSettings, outputs: ModelOutputs, *, name: str) -> ResampledValidation:
    """Validate one model.

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
    recipes = _recipes(setting, samples, outputs)
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
    has_scores = samples.probabilities is not None and bool(samples.is_valid.any())
    scored = samples.part(samples.is_valid) if has_scores else None
    subgroups = resample_subgroups(recipes, samples, setting.metadata, setting.resamples, level=setting.level)
    result = ValidationResult(
        name=name,
        recommendation=recommendation,
        class_names=setting.class_names,
        samples=samples.size,
        invalid_samples=int((~samples.is_valid).sum()),
        cases=samples.cases,
        groups=setting.groups is not None,
        level=setting.level,
        replicates=setting.replicates,
        seed=setting.seed,
        prevalence=tuple((np.bincount(samples.labels, minlength=samples.classes) / samples.size).tolist()),
        target_prevalences=fingerprint.target_prevalences,
        values=values,
        confusion=confusion_table(samples),
        roc_curves=() if scored is None else roc_points(scored),
        precision_recall_curves=() if scored is None else precision_recall_points(scored),
        reliability=() if scored is None else reliability_bins(scored),
        decision_curves=() if scored is None else decision_curve_points(scored, recommendation),
        adjusted_expected_cost=_adjusted_cost(setting, samples),
        subgroups=tuple(one.result for one in subgroups),
        warnings=validation_warnings(recommendation, samples, recipes, has_groups=setting.groups is not None),
        acceptance=apply_thresholds(setting.thresholds, values),
        uncertainty_aware=_uncertainty_aware(setting, samples, outputs),
    )
    return ResampledValidation(result, found, subgroups, samples)


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


def _recipes(setting: ValidationSettings, samples: Samples, outputs: ModelOutputs) -> list[Recipe]:
    metrics = label_metrics(setting.recommendation)
    split = None
    if any("target" in metric.parameters for _, metric in metrics):
        split = _split(samples, outputs.cut_off_data, setting.seed)
    return [
        Recipe.of(
            label,
            metric,
            weights=class_weights_of(metric, setting.recommendation.fingerprint),
            split=split,
            seed=setting.seed,
        )
        for label, metric in metrics
    ]


def _split(samples: Samples, cut_off_data: tuple[ArrayLike, ArrayLike] | None, seed: int) -> Split:
    if cut_off_data is None:
        return Split.halves(samples, seed=seed)
    labels, probabilities = cut_off_data
    try:
        chosen_on = Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=samples.classes)
    except InvalidInputError as error:
        raise InvalidInputError(
            error.message, field=f"cut_off_data.{error.field}", hint=error.hint
        ) from error
    return Split.other(samples, chosen_on)


def _adjusted_cost(setting: ValidationSettings, samples: Samples) -> AdjustedCost | None:
    """Expected cost at the stated class shares; with 0-1 costs if no others are agreed on."""
    fingerprint = setting.recommendation.fingerprint
    prevalence = fingerprint.target_prevalences
    if prevalence is None:
        return None
    decisions = samples.classes + samples.can_abstain
    costs = fingerprint.costs or as_matrix(zero_one_costs(samples.classes, decisions))

    def value(parameters: dict[str, Any]) -> MetricValue:
        metric = RecommendedMetric(metric="EC", per_class=False, parameters=parameters)
        recipe = Recipe.of("EC", metric, weights=None, split=None, seed=setting.seed)
        return evaluate_metric(
            recipe, samples, setting.resamples, level=setting.level, subprocesses=()
        ).values[0]

    return AdjustedCost(
        prevalence=prevalence,
        costs=costs,
        adjusted=value({"costs": costs, "prevalence": prevalence}),
        observed=value({"costs": costs}),
    )


def _class_names(
    given: Sequence[str] | None, recommendation: Recommendation, classes: int
) -> tuple[str, ...]:
    given = recommendation.class_names if given is None else given
    if given is None:
        return tuple(f"class {k}" for k in range(classes))
    names = tuple(given)
    if len(names) != classes or len(set(names)) != classes:
        raise InvalidInputError(
            f"expected {classes} different names, as many as the fingerprint has classes, got {len(set(names))}.",
            field="class_names",
        )
    return names
