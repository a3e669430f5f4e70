"""The metric of a head's decision rule on labelled predictions, with its interval."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import MetricRule, OptimisedMetric, TargetValue, needs_cut_off
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.entities.performance import RealisedRuleMetric
from lifelong_core.store import LabelledPredictions
from lifelong_core.store.performance.realised import select_rows
from lifelong_core.values.arrays import Floats, Integers

ENOUGH_CASES = 30
"""Smallest number of labelled predictions in the denominators of the metric."""


def realised_rule_metric(
    labelled: LabelledPredictions,
    head: PostProcessingHead,
    head_version: int,
    *,
    error_rates: ArrayLike | None,
    confidence: float,
) -> RealisedRuleMetric | None:
    """Compute what the rule of a head reached on labelled predictions.

    Args:
        labelled: predictions that this head decided.
        head: the head.
        head_version: its version.
        error_rates: shape (C,), largest share of wrong labels of each class; None: no label is wrong.
        confidence: nominal coverage of the interval.

    Returns:
        None where the rule has no searched cut-off, or where fewer than ENOUGH_CASES predictions are in a denominator
        of the metric.
    """
    rule = head.decision_rule
    if not needs_cut_off(rule):
        return None
    chosen = select_rows(labelled, np.arange(labelled.labels.size))
    is_class = labelled.labels[chosen.rows] == rule.positive_class
    is_decided = labelled.decisions[chosen.rows] == rule.positive_class
    if _smallest_denominator(rule, is_class, is_decided) < ENOUGH_CASES:
        return None
    # The share of positive decisions is the accuracy where each label is the decision "positive".
    is_share = rule.metric == "PPR"
    name = "AC" if is_share else rule.metric
    estimates = weighted_estimate(
        is_decided.astype(np.int64),
        np.ones(is_class.size, dtype=np.int64) if is_share else is_class.astype(np.int64),
        classes=2,
        metrics=(name,),
        propensities=chosen.propensities,
        groups=None if labelled.groups is None else labelled.groups[chosen.rows],
        error_rates=None if error_rates is None or is_share else _of_two_classes(rule, error_rates),
        beta=rule.beta if isinstance(rule, OptimisedMetric) else 1.0,
        confidence=confidence,
    )
    return RealisedRuleMetric(
        head_version=head_version,
        rule=describe_rule(rule, head.class_names),
        metric=rule.metric,
        class_name="" if rule.metric == "MCC" else head.class_names[rule.positive_class],
        samples=estimates.labelled,
        value=estimates.estimates[name],
        target=rule.value if isinstance(rule, TargetValue) else None,
    )


def _smallest_denominator(rule: MetricRule, is_class: Integers, is_decided: Integers) -> int:
    """Number of predictions that the metric divides by; of F score and MCC the smaller class."""
    match rule.metric:
        case "TPR":
            return int(is_class.sum())
        case "TNR":
            return int((~is_class).sum())
        case "PPV":
            return int(is_decided.sum())
        case "NPV":
            return int((~is_decided).sum())
        case "PPR":
            return is_decided.size
        case _:
            return int(min(is_class.sum(), (~is_class).sum()))


def _of_two_classes(rule: MetricRule, error_rates: ArrayLike) -> Floats:
    """Largest shares of wrong labels of the other classes together and of the class of the rule, shape (2,)."""
    rates = np.asarray(error_rates, dtype=np.float64)
    return np.array([np.delete(rates, rule.positive_class).max(), rates[rule.positive_class]])
