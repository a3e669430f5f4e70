"""Metrics of one class against the rest, as functions of the shares of true and false positives."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.decision_rules.rules import MetricRule, OptimisedMetric

Numbers: TypeAlias = NDArray[Any]
"""real or complex numbers"""
RateMetric: TypeAlias = Callable[[Numbers, Numbers, Numbers], Numbers]
"""from shares of all cases (broadcast together): true positives, false positives, and the class; nan where undefined.
Rational functions and roots only, so that a complex step gives their derivatives"""
_ROUNDING = 1e-13
"""of sums of shares: where all cases are called positive, 1 - tp - fp need not be exactly 0"""


def metric_of(rule: MetricRule) -> RateMetric:
    """The metric of a rule that searches its cut-off.

    Examples:
        >>> from lifelong_core.deploy import TargetValue
        >>> precision = metric_of(TargetValue("PPV", 0.8))
        >>> float(precision(np.array(0.4), np.array(0.1), np.array(0.5)))
        0.8
    """
    if isinstance(rule, OptimisedMetric) and rule.metric == "F_beta":
        return _f_beta(rule.beta)
    return METRICS[rule.metric]


def _ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(denominator) > _ROUNDING, numerator / denominator, np.nan)


def _sensitivity(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    return _ratio(tp, share + 0 * fp)


def _specificity(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    return _ratio(1 - share - fp, 1 - share + 0 * tp)


def _precision(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    return _ratio(tp, tp + fp + 0 * share)


def _negative_predictive_value(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    return _ratio(1 - share - fp, 1 - tp - fp)


def _positive_share(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    return tp + fp + 0 * share


def _mcc(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
    positive = tp + fp
    variance = positive * (1 - positive) * share * (1 - share)
    return _ratio(tp - positive * share, np.sqrt(np.where(np.real(variance) > _ROUNDING, variance, 0)))


def _f_beta(beta: float) -> RateMetric:
    def f_beta(tp: Numbers, fp: Numbers, share: Numbers) -> Numbers:
        return _ratio((1 + beta**2) * tp, tp + fp + beta**2 * share)

    return f_beta


METRICS: dict[str, RateMetric] = {
    "TPR": _sensitivity,
    "TNR": _specificity,
    "PPV": _precision,
    "NPV": _negative_predictive_value,
    "PPR": _positive_share,
    "MCC": _mcc,
}
