"""Settings that models share in a validation; the metrics and the decisions that are evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import TargetValue
from lifelong_core.design.recommendation.document import Recommendation, label_metrics
from lifelong_core.design.recommendation.stated_rule import recommended_rule
from lifelong_core.design.validation.acceptance import AcceptanceThreshold, check_thresholds
from lifelong_core.design.validation.decisions.decide import DecidedSamples, decide, needs_other_cases
from lifelong_core.design.validation.result import Aggregation
from lifelong_core.design.validation.uncertainty.document import UncertaintySettings
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Recipe, Split, class_weights_of
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples, units_of
from lifelong_core.metrics import CustomMetric
from lifelong_core.metrics.custom_metric import custom_by_acronym
from lifelong_core.values.arrays import Integers, as_column, as_labels, as_prevalence
from lifelong_core.values.errors import InvalidInputError

FEWEST_REPLICATES = 10
MOST_REPLICATES = 100_000
MOST_SUBGROUPS = 100
"""Most subgroups of one attribute; attributes with more values are usually numbers such as ages."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ValidationSettings:
    """What all models that are validated together share: the recommendation, the samples and their resamples."""

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
    aggregation: Aggregation = "pooled"
    custom: tuple[CustomMetric, ...] = ()

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
        aggregation: Aggregation = "pooled",
        custom: Sequence[CustomMetric] = (),
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
        check_subgroups(metadata or {}, samples=reference.size)
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
            aggregation=_checked_aggregation(aggregation, groups),
            custom=tuple(custom_by_acronym(custom).values()),
        )


def check_subgroups(metadata: Mapping[str, ArrayLike], *, samples: int) -> None:
    """Check the metadata that define subgroups.

    Raises:
        InvalidInputError: an attribute does not have one value per sample, or more than MOST_SUBGROUPS different ones.
    """
    for attribute, column in metadata.items():
        field = f"metadata.{attribute}"
        different = np.unique(as_column(column, samples=samples, field=field)).size
        if different > MOST_SUBGROUPS:
            raise InvalidInputError(
                f"there are {different} different values, at most {MOST_SUBGROUPS} are subgroups.",
                field=field,
                hint="Put numbers such as ages in ranges.",
            )


def _checked_aggregation(aggregation: Aggregation, groups: ArrayLike | None) -> Aggregation:
    if aggregation not in ("pooled", "by_group"):
        raise InvalidInputError(
            f"expected pooled or by_group, got {str(aggregation)[:80]!r}.", field="aggregation"
        )
    if aggregation == "by_group" and groups is None:
        raise InvalidInputError(
            "metrics of each group need groups.",
            field="aggregation",
            hint="Give the group of each sample, such as its patient.",
        )
    return aggregation


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


def decided_samples(
    setting: ValidationSettings,
    samples: Samples,
    outputs: ModelOutputs,
    mix: ClassMix | None,
    *,
    judges_half: bool,
) -> tuple[DecidedSamples, Split | None]:
    """The decisions to judge, and other cases to choose cut-offs on."""
    stated = recommended_rule(setting.recommendation)
    has_rule = samples.probabilities is not None and not samples.is_decided
    chooses = has_rule and needs_other_cases(stated, samples.classes)
    has_targets = any("target" in metric.parameters for _, metric in label_metrics(setting.recommendation))
    is_possible = outputs.cut_off_data is not None or samples.cases > 1
    split = None
    if has_targets or ((chooses or judges_half) and is_possible):
        split = _split(samples, outputs.cut_off_data, setting.seed)
    shares = None
    if outputs.score_prevalence is not None:
        shares = as_prevalence(outputs.score_prevalence, classes=samples.classes, field="score_prevalence")
    of_rule = split if chooses or judges_half else None
    return decide(stated, samples, mix, of_rule, score_prevalence=shares), split


def recipes_of(
    setting: ValidationSettings, decided: DecidedSamples, mix: ClassMix | None, split: Split | None
) -> list[Recipe]:
    """The recommended metrics with their checked parameters and cut-offs."""
    recipes = [
        Recipe.of(
            label,
            metric,
            weights=class_weights_of(metric, setting.recommendation.fingerprint),
            split=split,
            seed=setting.seed,
            mix=mix,
            judged=decided.judged,
            by_group=setting.aggregation == "by_group",
        )
        for label, metric in label_metrics(setting.recommendation)
    ]
    return [_at_the_cut_off_of_the_rule(recipe, decided) for recipe in recipes]


def _at_the_cut_off_of_the_rule(recipe: Recipe, decided: DecidedSamples) -> Recipe:
    """A metric at the target of the rule, at the one cut-off that the rule decides by."""
    rule, choice, used = decided.rule, decided.choice, recipe.cut_offs
    if not isinstance(rule, TargetValue) or choice is None or used is None or not choice.is_reachable:
        return recipe
    if (used.target_metric, used.target_value) != (rule.metric, rule.value):
        return recipe
    thresholds = used.thresholds.copy()
    thresholds[rule.positive_class] = choice.executed.threshold
    return replace(recipe, cut_offs=replace(used, thresholds=thresholds))


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
