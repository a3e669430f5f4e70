"""Figures of labelled predictions with intervals: accuracy, expected cost, and the metric of a head's decision rule."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import MetricRule, OptimisedMetric, TargetValue, needs_cut_off
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.entities.performance import METRICS, Realised, RealisedRuleMetric
from lifelong_core.store import LabelledPredictions
from lifelong_core.values.arrays import Floats, Integers
from lifelong_monitor.cycle.labels import select_rows

ENOUGH_CASES = 30
"""Smallest number of labelled predictions in the denominators of the metric."""


def realised_figures(
    labelled: LabelledPredictions,
    rows: Integers,
    costs: Floats,
    *,
    error_rates: ArrayLike | None,
    confidence: float,
) -> Realised | None:
    """Compute accuracy and expected cost of some labelled predictions, as they were answered.

    Args:
        labelled: the predictions.
        rows: shape (n,), indices of the predictions that count.
        costs: shape (C, D), that weigh the mistakes.
        error_rates: shape (C,), largest share of wrong labels of each class; None: no label is wrong.
        confidence: nominal coverage of the intervals.

    Returns:
        None without a row.
    """
    chosen = select_rows(labelled, rows)
    if not chosen.rows.size:
        return None
    estimates = weighted_estimate(
        labelled.decisions[chosen.rows],
        labelled.labels[chosen.rows],
        classes=costs.shape[0],
        costs=costs,
        metrics=METRICS,
        propensities=chosen.propensities,
        groups=None if labelled.groups is None else labelled.groups[chosen.rows],
        error_rates=error_rates,
        confidence=confidence,
    )
    return Realised(estimates.labelled, {name: estimates.estimates[name] for name in METRICS})


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
