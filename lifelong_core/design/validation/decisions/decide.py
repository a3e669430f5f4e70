"""The decisions that a validation judges."""

from dataclasses import dataclass, replace

import numpy as np

from lifelong_core.arrays import Floats, Integers
from lifelong_core.design.validation.decisions.answered_rule import AnsweredRule, StatedRule
from lifelong_core.design.validation.decisions.cut_off_choice import CutOffChoice
from lifelong_core.design.validation.decisions.document import ChosenCutOff, DecisionSource
from lifelong_core.design.validation.outputs import INVALID, Samples
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.design.validation.values.parts import finite


@dataclass(frozen=True, eq=False)
class DecidedSamples:
    """Samples with the decisions to judge."""

    samples: Samples
    judged: Integers | None
    """rows whose decisions are judged, as the rule was fixed on the others; None: all"""
    source: DecisionSource
    rule: AnsweredRule | None
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
        if self.choice is None or self.split is None or self.rule is None:
            return None
        sign = -1.0 if self.rule.metric == "EC" else 1.0
        return ChosenCutOff(
            class_index=self.choice.positive_class,
            threshold=finite(self.choice.threshold),
            metric=self.rule.metric or "",
            chosen_on="half_of_the_data" if self.split.is_half else "other_data",
            samples=self.choice.labels.size,
            value=finite(sign * self.choice.value),
            is_reachable=self.choice.is_reachable,
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
    if rule.kind == "argmax":
        return DecidedSamples(samples, None, "rule", rule, None)
    if rule.needs_other_cases and split is None:
        why = "one case is too few to choose a cut-off on some and judge it on others."
        return DecidedSamples(samples, None, "likeliest", rule, why)
    in_use = None if mix is None else mix.in_use
    choice = None
    if rule.is_searched and split is not None:
        choice = CutOffChoice.of(rule, split, in_use)
        if isinstance(choice, str):
            return DecidedSamples(samples, judged, "likeliest", rule, choice)
        decisions = choice.decide(samples.probabilities)
    else:
        decisions = _by_probabilities(rule, samples.probabilities, mix, _shares(split, score_prevalence))
        if decisions is None:
            why = "a class that occurs in use has no share from which the probabilities could be corrected."
            return DecidedSamples(samples, judged, "likeliest", rule, why)
    decided = replace(samples, decisions=decisions)
    return DecidedSamples(decided, judged, "rule", rule, None, choice, split, in_use)


def _by_probabilities(
    rule: AnsweredRule, probabilities: Floats, mix: ClassMix | None, shares: Floats | None
) -> Integers | None:
    """Decisions of a rule that takes probabilities at their word; None: they cannot be corrected."""
    costs = None if rule.costs is None else np.array(rule.costs, dtype=np.float64)
    if rule.metric == "BA":
        weights = np.ones(probabilities.shape[1]) if shares is None else shares
        # A class without any case has no share in the balanced accuracy.
        inverse = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)
        return _least_cost(probabilities, (1 - np.eye(weights.size)) * inverse[:, np.newaxis])
    corrected = probabilities if mix is None else mix.corrected(probabilities)
    if np.isnan(corrected).any():
        return None
    if rule.kind == "risk_threshold":
        k = rule.positive_class
        is_above = corrected[:, k] >= (rule.value or 0.0)
        return np.where(is_above, k, 1 - k).astype(np.int64)
    return _least_cost(corrected, np.zeros((corrected.shape[1],) * 2) if costs is None else costs)


def _least_cost(probabilities: Floats, costs: Floats) -> Integers:
    """The decision of least expected cost (thesis Def. 6.9)."""
    # Costs less the largest of their row change no decision; 0-1 costs become minus the identity: exact sums.
    relative = costs - costs.max(axis=1, keepdims=True)
    return (probabilities @ relative).argmin(axis=1).astype(np.int64)


def _shares(split: Split | None, score_prevalence: Floats | None) -> Floats | None:
    """Class shares for which the probabilities hold: those stated, else those of other samples."""
    if score_prevalence is not None or split is None:
        return score_prevalence
    labels, scores = split.labelled
    return np.bincount(labels, minlength=scores.shape[1]) / labels.size
