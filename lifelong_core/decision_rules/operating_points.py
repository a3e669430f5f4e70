"""The operating points of labelled samples: the metrics that each cut-off reaches, and the choice of the cut-off."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.decision_rules.rules import MetricRule, OptimisedMetric, TargetValue
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

Numbers: TypeAlias = NDArray[Any]
"""real or complex numbers"""
RateMetric: TypeAlias = Callable[[Numbers, Numbers, Numbers], Numbers]
"""from shares of all cases (broadcast together): true positives, false positives, and the class; nan where undefined.
Rational functions and roots only, so that a complex step gives their derivatives"""
_ROUNDING = 1e-13
"""of sums of shares: where all cases are called positive, 1 - tp - fp need not be exactly 0"""


@dataclass(frozen=True)
class ChosenPoint:
    """The operating point that a rule chooses."""

    threshold: float
    """the class is decided where its probability is at least this"""
    end: int
    """number of samples at or above it"""
    value: float
    """of the rule's metric; of best EC: minus the expected cost; nan where undefined"""
    is_reachable: bool
    """whether the value reaches the target of the rule; True without a target"""


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """The cut-offs that tell labelled samples apart, from the highest on, and the samples at or above each."""

    thresholds: Floats
    """shape (T,), descending; each lies midway between two neighbouring scores, the last is 0"""
    order: Integers
    """shape (M,), samples by descending score"""
    ends: Integers
    """shape (T,): the first ends[t] samples in this order are at or above thresholds[t]"""

    @classmethod
    def of(cls, scores: Floats) -> Self:
        """The cut-offs for these probabilities of a class, shape (M,)."""
        order = np.argsort(-scores, kind="stable").astype(np.int64)
        ordered = scores[order]
        last = np.append(np.flatnonzero(np.diff(ordered)), ordered.size - 1)
        between = (ordered[last[:-1]] + ordered[last[:-1] + 1]) / 2
        # Where no number lies between two scores, the higher one tells them apart.
        between = np.where(between > ordered[last[:-1] + 1], between, ordered[last[:-1]])
        return cls(np.append(between, 0.0), order, (last + 1).astype(np.int64))

    def shares(self, weights: Floats) -> Floats:
        """Sums of weights at or above each cut-off, shape (..., T), of sample weights (..., M)."""
        return self._sums(weights[..., self.order])

    def choose(
        self,
        rule: MetricRule,
        labels: Integers,
        prevalence: Floats,
        *,
        drawn: Floats | None = None,
        costs: Floats | None = None,
    ) -> ChosenPoint:
        """The operating point of a rule in a population; among equals, the one with the highest cut-off.

        Args:
            rule: a target value, or an optimised metric.
            labels: shape (M,), of the samples in `order`.
            prevalence: shape (C,), of the population; that of the rule's class between 0 and 1.
            drawn: shape (M,), how often each sample in `order` counts; None: once.
            costs: shape (2, 2), of a rule that optimises the expected cost.
        """
        share = prevalence[rule.positive_class]
        weights, is_positive = sample_weights(labels, prevalence, drawn), labels == rule.positive_class
        tp = self._sums_to(float(share), weights * is_positive)
        fp = self._sums_to(1 - float(share), weights * ~is_positive)
        values: Floats = metric_of(rule, costs)(tp, fp, share)
        at = _best(rule, values, tp, fp, share)
        is_reachable = not isinstance(rule, TargetValue) or bool(rule.target.reaches(values[at]))
        return ChosenPoint(float(self.thresholds[at]), int(self.ends[at]), float(values[at]), is_reachable)

    def _sums_to(self, total: float, ordered: Floats) -> Floats:
        """`_sums` of weights (M,) whose total is known: exact where none is left below.

        Sums of thousands of weights are not, and metrics of the rest would be those of their rounding errors.
        """
        sums = self._sums(ordered)
        is_all = self.ends > np.flatnonzero(ordered > 0).max(initial=-1)
        return np.where(is_all & (sums > 0), total, sums)

    def _sums(self, ordered: Floats) -> Floats:
        """Sums at or above each cut-off, shape (..., T), of weights in `order`, (..., M)."""
        return np.cumsum(ordered, axis=-1)[..., self.ends - 1]


def search_operating_point(
    rule: MetricRule,
    probabilities: Floats,
    labels: Integers,
    prevalence: Floats,
    *,
    costs: Floats | None = None,
) -> ChosenPoint:
    """The operating point of a rule for a population with this prevalence.

    Args:
        rule: a target value, or an optimised metric; best AC, BA and EC of a binary task only.
        probabilities: shape (M, C), of labelled samples.
        labels: shape (M,).
        prevalence: shape (C,), of the population; each class with a positive one has a sample.
        costs: shape (2, 2), of a rule that optimises the expected cost.

    Raises:
        InvalidInputError: the rule's class has prevalence 0 or 1.
    """
    k = rule.positive_class
    if not 0 < prevalence[k] < 1:
        raise InvalidInputError(
            f"the rule needs a prevalence of class {k} between 0 and 1, got {prevalence[k]:g}.",
            field="target_prevalence",
            hint="Give the class and the others a positive prevalence.",
        )
    points = OperatingPoints.of(probabilities[:, k])
    return points.choose(rule, labels[points.order], prevalence, costs=costs)


def search_cut_off(rule: MetricRule, probabilities: Floats, labels: Integers, prevalence: Floats) -> float:
    """The cut-off of a rule for a population with this prevalence, as `search_operating_point` finds it.

    Examples:
        >>> p = np.array([0.9, 0.8, 0.6, 0.4, 0.2])
        >>> labels = np.array([1, 1, 0, 1, 0])
        >>> search_cut_off(TargetValue("TPR", 0.9), np.stack([1 - p, p], axis=1), labels, np.array([0.5, 0.5]))
        0.30000000000000004
    """
    return search_operating_point(rule, probabilities, labels, prevalence).threshold


def sample_weights(labels: Integers, prevalence: Floats, drawn: Floats | None = None) -> Floats:
    """Weight of each sample with which the samples make a population of this prevalence, shape (M,), sum 1.

    Args:
        labels: shape (M,).
        prevalence: shape (C,).
        drawn: shape (M,), how often each sample counts; None: once.
    """
    counts = np.bincount(labels, drawn, minlength=prevalence.size)
    each = np.divide(prevalence, counts, out=np.zeros(prevalence.size), where=counts > 0)[labels]
    return each if drawn is None else drawn * each


def _best(rule: MetricRule, values: Floats, tp: Floats, fp: Floats, share: Floats) -> int:
    """Index of the operating point that the rule chooses.

    Args:
        rule: the rule.
        values: shape (T,), of its metric.
        tp: shape (T,), share of all cases that are true positives.
        fp: shape (T,), share that are false positives.
        share: prevalence of the class.
    """
    if not isinstance(rule, TargetValue):
        return int(np.where(np.isnan(values), -np.inf, values).argmax())
    reaches = rule.target.reaches(values)
    if reaches.any():
        return int(np.where(reaches, METRICS[rule.objective](tp, fp, share), -np.inf).argmax())
    # Where none reaches the target, the one that comes closest.
    return int(np.where(np.isnan(values), -np.inf, rule.target.sign * values).argmax())


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
