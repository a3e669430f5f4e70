"""The decisions that a validation judges."""

from dataclasses import dataclass, replace

import numpy as np

from lifelong_core.decision_rules.executed import executed_rule
from lifelong_core.decision_rules.rules import Argmax, BayesRule, DecisionRule, OptimisedMetric, TargetValue
from lifelong_core.design.stated_rule import StatedRule
from lifelong_core.design.validation.decisions.cut_off_choice import (
    CutOffChoice,
    costs_of,
    is_searched,
    needs_other_cases,
)
from lifelong_core.design.validation.decisions.document import ChosenCutOff, DecisionSource
from lifelong_core.design.validation.outputs import INVALID, Samples
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.design.validation.values.parts import finite
from lifelong_core.values.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class DecidedSamples:
    """Samples with the decisions to judge."""

    samples: Samples
    judged: Integers | None
    """rows whose decisions are judged, as the rule was fixed on the others; None: all"""
    source: DecisionSource
    rule: DecisionRule | None
    """the rule that was answered"""
    reason: str | None
    """why decisions are not those of the rule"""
    choice: CutOffChoice | None = None
    split: Split | None = None
    """of the choice"""
    prevalence: Floats | None = None
    """shape (C,), stated class shares of use for which the cut-off was chosen"""

    @property
    def rows(self) -> Integers:
        """The rows whose decisions are judged."""
        return np.arange(self.samples.size) if self.judged is None else self.judged

    @property
    def likeliest(self) -> Samples | None:
        """The samples with the likeliest class as the decision; None without probabilities."""
        if self.samples.probabilities is None:
            return None
        decisions = np.where(self.samples.is_valid, self.samples.probabilities.argmax(axis=1), INVALID)
        return replace(self.samples, decisions=decisions.astype(np.int64))

    def cut_off(self) -> ChosenCutOff | None:
        """The chosen cut-off as a document."""
        rule, choice, split = self.rule, self.choice, self.split
        if choice is None or split is None or not isinstance(rule, TargetValue | OptimisedMetric):
            return None
        return ChosenCutOff(
            class_index=choice.executed.positive_class,
            threshold=finite(choice.executed.threshold),
            metric=rule.metric,
            chosen_on="half_of_the_data" if split.is_half else "other_data",
            samples=choice.samples,
            value=finite(choice.value),
            is_reachable=choice.is_reachable,
            prevalence=None if self.prevalence is None else tuple(self.prevalence.tolist()),
        )


def decide(
    stated: StatedRule,
    samples: Samples,
    mix: ClassMix | None,
    split: Split | None,
    *,
    score_prevalence: Floats | None,
) -> DecidedSamples:
    """Decide by the rule that was answered.

    Args:
        stated: the rule.
        samples: with given decisions, which stay, or with the likeliest classes.
        mix: class mix of use; None: that of the data.
        split: other samples to choose a cut-off on; None: the rule needs none, or there are none.
        score_prevalence: shape (C,), class shares for which the probabilities hold; None: not stated.
    """
    rule = stated.rule
    judged = split.rows if split is not None and split.is_half else None
    if samples.is_decided or samples.probabilities is None:
        return DecidedSamples(samples, judged, "given", rule, None)
    if rule is None:
        return DecidedSamples(samples, None, "likeliest", None, stated.reason)
    if isinstance(rule, Argmax):
        return DecidedSamples(samples, None, "rule", rule, None)
    if isinstance(rule, BayesRule) and stated.costs is None:
        return DecidedSamples(samples, None, "likeliest", rule, "the costs of errors are not stated.")
    if split is None and needs_other_cases(stated, samples.classes):
        why = "one case is too few to choose a cut-off on some and judge it on others."
        return DecidedSamples(samples, None, "likeliest", rule, why)
    in_use = None if mix is None else mix.in_use
    costs, choice = costs_of(stated, samples.classes), None
    if split is not None and is_searched(rule, costs):
        choice = CutOffChoice.of(rule, costs, split, in_use)
        if isinstance(choice, str):
            return DecidedSamples(samples, judged, "likeliest", rule, choice)
        decisions = choice.executed.decide(samples.probabilities)
    else:
        shares = _shares(split, score_prevalence)
        decisions = _by_probabilities(rule, costs, samples.probabilities, mix, shares)
        if decisions is None:
            why = "a class that occurs in use has no share from which the probabilities could be corrected."
            return DecidedSamples(samples, judged, "likeliest", rule, why)
    decided = replace(samples, decisions=decisions)
    return DecidedSamples(decided, judged, "rule", rule, None, choice, split, in_use)


def _by_probabilities(
    rule: DecisionRule, costs: Floats, probabilities: Floats, mix: ClassMix | None, shares: Floats | None
) -> Integers | None:
    """Decisions of a rule that takes probabilities at their word; None: they cannot be corrected.

    Best BA weighs the classes by the shares for which the given probabilities hold; all others decide by probabilities
    for the class mix of use.
    """
    is_balanced = isinstance(rule, OptimisedMetric) and rule.metric == "BA"
    if is_balanced and shares is not None:
        return executed_rule(rule, costs, shares, None).decide(probabilities)
    corrected = probabilities if mix is None else mix.corrected(probabilities)
    if np.isnan(corrected).any():
        return None
    alike = np.full(len(costs), 1 / len(costs))
    return executed_rule(rule, costs, alike, None).decide(corrected)


def _shares(split: Split | None, score_prevalence: Floats | None) -> Floats | None:
    """Class shares for which the probabilities hold: those stated, else those of other samples."""
    if score_prevalence is not None or split is None:
        return score_prevalence
    labels, scores = split.labelled
    return np.bincount(labels, minlength=scores.shape[1]) / labels.size
