"""Warnings about the numbers of a validation, in sentences."""

from collections.abc import Iterator, Sequence

import numpy as np

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.decisions.decide import DecidedSamples
from lifelong_core.design.validation.subgroup_results import subgroups_of
from lifelong_core.design.validation.values.by_group import AT_STATED_SHARES, pooled_note
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS


def validation_warnings(
    recommendation: Recommendation, decided: DecidedSamples, recipes: Sequence[Recipe], *, has_groups: bool
) -> tuple[str, ...]:
    """Warnings about missing or provisional metrics, few cases, and data that contradict the answers."""
    samples = decided.samples
    return (
        *_of_the_recommendation(recommendation),
        *_of_the_cases(recommendation, samples, has_groups=has_groups),
        *_of_the_decisions(recommendation, decided, recipes),
        *_of_the_class_mix(recommendation, recipes),
        *_of_the_groups(recipes),
    )


def _of_the_recommendation(recommendation: Recommendation) -> Iterator[str]:
    for guide in recommendation.open_choices:
        yield (
            f"{guide.guide} ({guide.title}) is still open, so its metrics are missing: "
            f"choose among {', '.join(guide.options)}."
        )
    for step in recommendation.steps:
        if step.action == "elicit_costs":
            names = ", ".join(metric.label for metric in step.metrics) or "its metrics"
            yield f"{step.subprocess}: {names} stands in until the costs of errors are agreed on."


def _of_the_cases(recommendation: Recommendation, samples: Samples, *, has_groups: bool) -> Iterator[str]:
    fingerprint = recommendation.fingerprint
    if fingerprint.dependent_cases and not has_groups:
        name = fingerprint.grouping_variable or "group"
        yield (
            "The samples depend on each other (FP4.3), but no groups were given, so the intervals are too narrow: "
            f"give the {name} of each."
        )
    if not fingerprint.dependent_cases and samples.cases < samples.size:
        yield (
            "The fingerprint says that samples are independent (FP4.3), but "
            f"{samples.size} of them belong to {samples.cases} groups."
        )
    (everything,) = subgroups_of(samples, {"all": np.zeros(samples.size, np.int64)})
    for warning in everything.warnings:
        yield warning[0].upper() + warning[1:]
    invalid = int((~samples.is_valid).sum())
    if invalid:
        yield (
            f"{invalid} of {samples.size} samples have no valid output: they count as the worst value, and are in "
            "no curve."
        )
    if invalid and fingerprint.invalid_outputs is False:
        yield "The fingerprint says that every sample gets a valid output (FP5.3)."


def _of_the_decisions(
    recommendation: Recommendation, decided: DecidedSamples, recipes: Sequence[Recipe]
) -> Iterator[str]:
    rule = recommendation.fingerprint.decision_rule
    counted = [recipe.label for recipe in recipes if recipe.judges_decisions]
    if counted and decided.source == "likeliest" and rule not in ("argmax", "none", None):
        answer = load_method().question("decision_rule").describe(rule)
        yield (
            f"No decisions were given, so the likeliest class counts as the decision in {', '.join(counted)}, and not "
            f"that of the rule that was answered (FP2.6: {answer}): {decided.reason}"
        )
    halves = [recipe.label for recipe in recipes if recipe.cut_offs and recipe.cut_offs.split.is_half]
    if decided.choice is not None and decided.split is not None and decided.split.is_half:
        halves = ["the decision rule", *halves]
    if halves:
        yield (
            f"The cut-offs of {', '.join(halves)} were chosen on a random half of the cases, without other data, "
            "and judged on the other half."
        )
    choice = decided.choice
    if choice is not None and not choice.is_reachable:
        yield (
            f"No cut-off reaches the target on the {choice.samples} samples to choose it on; the one that comes "
            "closest is judged."
        )
    if decided.split is not None and _is_judged_on_itself(decided):
        yield "The cut-off was chosen on the samples that are judged, so the values are too good: give other data."


def _is_judged_on_itself(decided: DecidedSamples) -> bool:
    """Whether the cut-off was chosen on the judged samples."""
    split, samples = decided.split, decided.samples
    if split is None or split.is_half or split.chosen_on.size != samples.size:
        return False
    return np.array_equal(split.chosen_on.labels, samples.labels) and np.array_equal(
        split.chosen_on.scores, samples.scores
    )


def _of_the_class_mix(recommendation: Recommendation, recipes: Sequence[Recipe]) -> Iterator[str]:
    if recommendation.fingerprint.prevalences_representative is not False:
        return
    dependent = [
        recipe.label
        for recipe in recipes
        if METRICS[recipe.acronym].prevalence_dependent
        and recipe.prevalence is None
        and recipe.converted is None
        and not recipe.is_refused
    ]
    if dependent:
        yield (
            f"The class mix is not that of use (FP4.2), on which {', '.join(dependent)} depend: they hold for these "
            "data, and no threshold is judged by them."
        )
    refused = [recipe.label for recipe in recipes if recipe.is_refused]
    if refused:
        yield f"{', '.join(refused)} needs the target prevalences: the class mix is not that of use (FP4.2)."
    converted = [recipe.label for recipe in recipes if recipe.converted is not None]
    if converted:
        yield f"Computed at the stated class shares of use, not at those of these data: {', '.join(converted)}."


def _of_the_groups(recipes: Sequence[Recipe]) -> Iterator[str]:
    pooled = [
        recipe.label for recipe in recipes if recipe.by_group and pooled_note(recipe) == AT_STATED_SHARES
    ]
    if pooled:
        yield (
            f"Metrics at stated class shares are pooled over all samples and no means over groups, as a group may lack "
            f"a class: {', '.join(pooled)}."
        )
