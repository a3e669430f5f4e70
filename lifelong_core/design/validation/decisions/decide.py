"""The decisions that a validation judges, and the cut-off of their rule."""

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias, TypeGuard

import numpy as np
from pydantic import Field

from lifelong_core.decision_rules.decide import CutOff, executed_rule
from lifelong_core.decision_rules.operating_points import search_operating_point
from lifelong_core.decision_rules.rules import (
    Argmax,
    BayesRule,
    DecisionRule,
    MetricRule,
    OptimisedMetric,
    TargetValue,
    needs_cut_off,
)
from lifelong_core.design.recommendation.stated_rule import StatedRule
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.design.validation.values.metric_value import Number, finite
from lifelong_core.design.validation.values.samples import INVALID, Samples
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.documents import Frozen
from lifelong_core.values.errors import InvalidInputError

DecisionSource: TypeAlias = Literal["given", "rule", "likeliest"]


class ChosenCutOff(Frozen):
    """The cut-off of a rule with a target or an optimised metric."""

    class_index: int
    threshold: Number = Field(
        description="Probability of the class from which on it is decided; None: it is never decided."
    )
    metric: str = Field(description="TPR, TNR, PPV, NPV or PPR, or the optimised metric.")
    chosen_on: Literal["other_data", "half_of_the_data"] = Field(
        description="`half_of_the_data`: a random half of the cases; the decisions on the other half are judged."
    )
    samples: int = Field(description="Number of samples on which it was chosen.")
    value: Number = Field(description="Value of the metric on these samples.")
    is_reachable: bool = Field(
        description="Whether a cut-off reaches the target on these samples; else that which comes closest is used."
    )
    prevalence: tuple[float, ...] | None = Field(
        description="Stated class shares of use for which it was chosen; None: those of the samples."
    )


@dataclass(frozen=True)
class CutOffChoice:
    """The cut-off of one class's probability."""

    executed: CutOff
    is_reachable: bool
    """whether a cut-off reaches the target on these cases; otherwise the closest cut-off is used"""
    value: float
    """value of the rule's metric on these cases"""
    samples: int
    """number of samples with a valid output on which it was chosen"""

    @classmethod
    def of(cls, rule: MetricRule, costs: Floats, split: Split, prevalence: Floats | None) -> Self | str:
        """Choose it as a head does.

        Args:
            rule: one whose cut-off is searched.
            costs: shape (C, D), of errors.
            split: cases to choose on.
            prevalence: shape (C,), stated class shares of use; None: those of the cases.

        Returns:
            The choice, or the reason why there is none.
        """
        labels, scores = split.labelled
        k, counts = rule.positive_class, np.bincount(labels, minlength=scores.shape[1])
        missing = _missing_class(counts, k, prevalence)
        if missing is not None:
            return f"{missing} among the {labels.size} cases to choose the cut-off on."
        shares = counts / labels.size if prevalence is None else prevalence
        try:
            point = search_operating_point(rule, scores, labels, shares, costs=costs)
        except InvalidInputError as error:
            return error.message
        # What is minimised is searched as the best of its negative.
        value = -point.value if rule.metric == "EC" else point.value
        return cls(CutOff(k, point.threshold), point.is_reachable, value, labels.size)


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
    """samples on which the cut-off was chosen, and samples that are judged"""
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
    """Class shares for which the probabilities hold: the stated ones, else the shares of the other samples."""
    if score_prevalence is not None or split is None:
        return score_prevalence
    labels, scores = split.labelled
    return np.bincount(labels, minlength=scores.shape[1]) / labels.size


def is_searched(rule: DecisionRule, costs: Floats) -> TypeGuard[MetricRule]:
    """Whether the cut-off is chosen on labelled cases.

    These are the rules of which a head searches the cut-off, and best AC, BA and EC of a binary task. A head has a
    closed form for the latter, which holds for calibrated probabilities; those to judge may not be.

    Args:
        rule: the rule.
        costs: shape (C, D), of errors.
    """
    if needs_cut_off(rule):
        return True
    return isinstance(rule, OptimisedMetric) and costs.shape == (2, 2)


def needs_other_cases(stated: StatedRule, classes: int) -> bool:
    """Whether the rule needs labelled cases other than those that are judged."""
    rule = stated.rule
    if rule is None:
        return False
    return is_searched(rule, costs_of(stated, classes)) or (
        isinstance(rule, OptimisedMetric) and rule.metric == "BA"
    )


def costs_of(stated: StatedRule, classes: int) -> Floats:
    """The costs of errors, shape (C, D); all 1 for a rule that depends on no costs."""
    return 1 - np.eye(classes) if stated.costs is None else np.array(stated.costs, dtype=np.float64)


def _missing_class(counts: Integers, k: int, prevalence: Floats | None) -> str | None:
    """Reason why no cut-off can be chosen; None: one can."""
    if prevalence is not None:
        absent = np.flatnonzero((prevalence > 0) & (counts == 0))
        if absent.size:
            return f"class {absent[0]}, which occurs in use, does not occur"
    if counts[k] == 0:
        return f"class {k} does not occur"
    return "no other class occurs" if counts[k] == counts.sum() else None
