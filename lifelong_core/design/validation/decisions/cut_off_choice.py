"""The cut-off of a rule with a target or an optimised metric, chosen on cases that are not judged."""

from dataclasses import dataclass
from typing import Self, TypeGuard

import numpy as np

from lifelong_core.decision_rules.executed import CutOff
from lifelong_core.decision_rules.operating_points import search_operating_point
from lifelong_core.decision_rules.rules import DecisionRule, MetricRule, OptimisedMetric, needs_cut_off
from lifelong_core.design.stated_rule import StatedRule
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True)
class CutOffChoice:
    """The cut-off of one class's probability."""

    executed: CutOff
    is_reachable: bool
    """whether a cut-off reaches the target on these cases; if none does, it is that which comes closest"""
    value: float
    """of the rule's metric on these cases"""
    samples: int
    """with a valid output, on which it was chosen"""

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
    """The costs of errors, shape (C, D); those of a rule that depends on none are all 1."""
    return 1 - np.eye(classes) if stated.costs is None else np.array(stated.costs, dtype=np.float64)


def _missing_class(counts: Integers, k: int, prevalence: Floats | None) -> str | None:
    """What is missing to choose a cut-off."""
    if prevalence is not None:
        absent = np.flatnonzero((prevalence > 0) & (counts == 0))
        if absent.size:
            return f"class {absent[0]}, which occurs in use, does not occur"
    if counts[k] == 0:
        return f"class {k} does not occur"
    return "no other class occurs" if counts[k] == counts.sum() else None
