"""The cut-off of a rule with a target or an optimised metric, chosen on cases that are not judged."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from lifelong_core.arrays import Floats, Integers
from lifelong_core.design.validation.decisions.answered_rule import AnsweredRule, objective_of
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.metrics import (
    METRICS,
    best_threshold,
    choose_threshold,
    counting_metric,
    value_at_threshold,
)
from lifelong_core.metrics.counting.one_versus_rest import positive_share
from lifelong_core.metrics.scores.at_target import PerClassMetric


@dataclass(frozen=True, eq=False)
class CutOffChoice:
    """The cut-off of one class's probability."""

    positive_class: int
    threshold: float
    """inf: no case is decided for the class"""
    is_reachable: bool
    """whether a cut-off reaches the target on these cases; if none does, the threshold is that which comes closest"""
    value: float
    """of the rule's metric on these cases"""
    labels: Integers
    """shape (M,), of the cases with a valid output on which it was chosen"""

    @classmethod
    def of(cls, rule: AnsweredRule, split: Split, prevalence: Floats | None) -> Self | str:
        """Choose it.

        Args:
            rule: one whose cut-off is searched.
            split: cases to choose on.
            prevalence: shape (C,), stated class shares of use; None: those of the cases.

        Returns:
            The choice, or the reason why there is none.
        """
        labels, scores = split.labelled
        own, k = scores[:, rule.positive_class], rule.positive_class
        counts = np.bincount(labels, minlength=scores.shape[1])
        missing = _missing_class(counts, k, prevalence)
        if missing is not None:
            return f"{missing} among the {labels.size} cases to choose the cut-off on."
        metric = target_metric(rule)
        given: dict[str, Any] = {"positive": k, "prevalence": prevalence}
        threshold = np.nan
        if rule.kind == "target_value":
            best = METRICS[objective_of(rule.metric or "")].function
            threshold = choose_threshold(
                labels, own, metric=metric, target=rule.value or 0.0, best=best, **given
            )
        is_reachable = not np.isnan(threshold)
        if not is_reachable:
            threshold = best_threshold(labels, own, metric=metric, **given)
        value = value_at_threshold(labels, own, threshold=threshold, metric=metric, **given)
        return cls(k, threshold, is_reachable or rule.kind != "target_value", value, labels)

    def decide(self, probabilities: Floats) -> Integers:
        """Decisions (N,): the class from its cut-off on, below it the likeliest other class."""
        others = probabilities.copy()
        others[:, self.positive_class] = -1.0
        is_above = probabilities[:, self.positive_class] >= self.threshold
        return np.where(is_above, self.positive_class, others.argmax(axis=1)).astype(np.int64)


def target_metric(rule: AnsweredRule) -> PerClassMetric:
    """The rule's metric, of confusion matrices (..., 2, 2) with the class first."""
    match rule.metric:
        case "PPR":
            return positive_share
        case "TPR" | "TNR" | "PPV" | "NPV":
            return METRICS[rule.metric].function
        case "F_beta":
            return partial(METRICS["F_beta"].function, beta=rule.beta)
        case _:
            return _of_both_classes(rule)


def _of_both_classes(rule: AnsweredRule) -> PerClassMetric:
    order = [rule.positive_class, 1 - rule.positive_class]
    costs = np.array(rule.costs, dtype=np.float64)[np.ix_(order, order)]
    metric = counting_metric(rule.metric or "", costs=costs)
    sign = 1.0 if METRICS[rule.metric or ""].orientation == "up" else -1.0

    def of_confusions(confusions: Floats) -> Floats:
        return np.repeat(sign * metric(confusions)[..., np.newaxis], 2, axis=-1)

    return of_confusions


def _missing_class(counts: Integers, k: int, prevalence: Floats | None) -> str | None:
    """What is missing to choose a cut-off."""
    if prevalence is not None:
        absent = np.flatnonzero((prevalence > 0) & (counts == 0))
        if absent.size:
            return f"class {absent[0]}, which occurs in use, does not occur"
    if counts[k] == 0:
        return f"class {k} does not occur"
    return "no other class occurs" if counts[k] == counts.sum() else None
