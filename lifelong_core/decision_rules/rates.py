"""Metrics of one class against the rest, as functions of the shares of true and false positives."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.decision_rules.rules import MetricRule, OptimisedMetric
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

Numbers: TypeAlias = NDArray[Any]
"""real or complex numbers"""
RateMetric: TypeAlias = Callable[[Numbers, Numbers, Numbers], Numbers]
"""from shares of all cases (broadcast together): true positives, false positives, and the class; nan where undefined.
Rational functions and roots only, so that a complex step gives their derivatives"""
_ROUNDING = 1e-13
"""of sums of shares: where all cases are called positive, 1 - tp - fp need not be exactly 0"""


def metric_of(rule: MetricRule, costs: Floats | None = None) -> RateMetric:
    """The metric of a rule, of its class against the rest; more of it is better, but for a share of positives.

    Args:
        rule: a target value, or an optimised metric; best AC, BA and EC are those of a binary task.
        costs: shape (2, 2), of a rule that optimises the expected cost, whose metric is minus this cost.

    Raises:
        InvalidInputError: the costs of errors are missing.

    Examples:
        >>> from lifelong_core.decision_rules.rules import TargetValue
        >>> precision = metric_of(TargetValue("PPV", 0.8))
        >>> float(precision(np.array(0.4), np.array(0.1), np.array(0.5)))
        0.8
        >>> saving = metric_of(OptimisedMetric("EC"), np.array([[0.0, 1.0], [10.0, 0.0]]))
        >>> round(float(saving(np.array(0.4), np.array(0.1), np.array(0.5))), 2)
        -1.1
    """
    if isinstance(rule, OptimisedMetric) and rule.metric == "F_beta":
        return _f_beta(rule.beta)
    if isinstance(rule, OptimisedMetric) and rule.metric == "EC":
        if costs is None:
            raise InvalidInputError("the expected cost needs the costs of errors.", field="costs")
        return _saving(costs, rule.positive_class)
    return METRICS[rule.metric]


def _ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(denominator) > _ROUNDING, numerator / denominator, np.nan)


def _mcc(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    positive = tp + fp
    variance = positive * (1 - positive) * share * (1 - share)
    return _ratio(tp - positive * share, np.sqrt(np.where(np.real(variance) > _ROUNDING, variance, 0)))


def _saving(costs: Floats, k: int) -> RateMetric:
    own, other = costs[k], costs[1 - k]

    def saving(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
        of_own = own[k] * tp + own[1 - k] * (share - tp)
        return -(of_own + other[k] * fp + other[1 - k] * (1 - share - fp))

    return saving


def _f_beta(beta: float) -> RateMetric:
    def f_beta(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
        return _ratio((1 + beta**2) * tp, tp + fp + beta**2 * share)

    return f_beta


METRICS: dict[str, RateMetric] = {
    "TPR": lambda tp, fp, share: _ratio(tp, share + 0 * fp),
    "TNR": lambda tp, fp, share: _ratio(1 - share - fp, 1 - share + 0 * tp),
    "PPV": lambda tp, fp, share: _ratio(tp, tp + fp + 0 * share),
    "NPV": lambda tp, fp, share: _ratio(1 - share - fp, 1 - tp - fp),
    "PPR": lambda tp, fp, share: tp + fp + 0 * share,
    "MCC": _mcc,
    "AC": lambda tp, fp, share: tp + (1 - share - fp),
    "BA": lambda tp, fp, share: (METRICS["TPR"](tp, fp, share) + METRICS["TNR"](tp, fp, share)) / 2,
}
"""by acronym; MCC, AC and BA are those of the binary task; a term of 0 gives the result the shape of all inputs"""
