"""What is evaluated: the decisions to judge, and the metrics with their checked parameters and cut-offs."""

from dataclasses import replace

from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import TargetValue
from lifelong_core.design.recommendation.labels import label_metrics
from lifelong_core.design.stated_rule import recommended_rule
from lifelong_core.design.validation.decisions.cut_off_choice import needs_other_cases
from lifelong_core.design.validation.decisions.decide import DecidedSamples, decide
from lifelong_core.design.validation.outputs import ModelOutputs, Samples
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Recipe, Split, class_weights_of
from lifelong_core.values.arrays import as_prevalence
from lifelong_core.values.errors import InvalidInputError


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
