"""Decision rules applied to probabilities."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.decision_rules.rules import (
    Argmax,
    BayesRule,
    CutOffs,
    DecisionRule,
    OptimisedMetric,
    needs_cut_off,
)
from lifelong_core.values.arrays import MANY_CLASSES, Floats, Integers
from lifelong_core.values.errors import InvalidInputError

_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LeastCost:
    """Decides the class of least expected cost by a cost matrix, which is prepared once."""

    relative: Floats
    """shape (C, D): the costs less the largest of their row, which changes the cost of every decision alike; 0-1 costs
    become minus the identity, whose sums are exact"""
    slack: Floats
    """shape (D,): bound of the rounding error of each decision's sum, one unit per inexact product or addition"""

    @classmethod
    def of(cls, costs: Floats) -> Self:
        """The rule for these costs, shape (C, D)."""
        relative = costs - costs.max(axis=1, keepdims=True)
        mantissa, _ = np.frexp(relative)
        inexact_products = ((relative != 0) & (np.abs(mantissa) != 0.5)).sum(axis=0)
        additions = np.maximum((relative != 0).sum(axis=0) - 1, 0)
        return cls(relative, (additions + inexact_products) * _UNIT * np.abs(relative).max(axis=0))

    def decide(self, probabilities: Floats) -> Integers:
        """Decisions of shape (N,) for checked probabilities."""
        expected = _sums(probabilities, self.relative)
        limit = expected.min(axis=1) + self.slack[expected.argmin(axis=1)]
        return (expected - self.slack <= limit[:, np.newaxis]).argmax(axis=1).astype(np.int64, copy=False)


@dataclass(frozen=True)
class CutOff:
    """Decides a class where its probability is at least a cut-off, else the most probable other class."""

    positive_class: int
    threshold: float
    """the class is decided where its probability is at least this"""

    def decide(self, probabilities: Floats) -> Integers:
        """Decisions of shape (N,) for checked probabilities."""
        k = self.positive_class
        others = probabilities.copy()
        others[:, k] = -1.0
        return np.where(probabilities[:, k] >= self.threshold, k, others.argmax(axis=1)).astype(np.int64)


def executed_rule(
    rule: DecisionRule, costs: Floats, prevalence: Floats, cut_off: float | None
) -> LeastCost | CutOff:
    """Prepare a rule: with its costs, or with its cut-off.

    Args:
        rule: a rule that fits C classes.
        costs: shape (C, D), of the head.
        prevalence: shape (C,), for which the probabilities are calibrated.
        cut_off: of a rule that searches one on the calibration set, else None.

    Raises:
        InvalidInputError: a cut-off is missing, or there is one that the rule does not use.
    """
    if needs_cut_off(rule):
        if cut_off is None:
            raise InvalidInputError(
                "this decision rule needs its cut-off.", field="cut_off", hint="`fit_head` finds it."
            )
        return CutOff(rule.positive_class, cut_off)
    if cut_off is not None:
        raise InvalidInputError("this decision rule has no fitted cut-off.", field="cut_off")
    if isinstance(rule, CutOffs) and len(rule.thresholds) == 1:
        return CutOff(1, rule.thresholds[0])
    return LeastCost.of(minimised_costs(rule, costs, prevalence))


def minimised_costs(rule: DecisionRule, costs: Floats, prevalence: Floats) -> Floats:
    """The costs of which a rule without searched cut-off minimises the expectation, shape (C, D) or (C, C).

    Args:
        rule: a rule for which `needs_cut_off` is false.
        costs: shape (C, D), of the head.
        prevalence: shape (C,), for which the probabilities are calibrated.

    Examples:
        >>> costs, prevalence = np.array([[0.0, 1.0], [50.0, 0.0]]), np.array([0.9, 0.1])
        >>> minimised_costs(CutOffs(0.25), costs, prevalence).tolist()
        [[0.0, 0.25], [0.75, 0.0]]
        >>> minimised_costs(OptimisedMetric("BA"), costs, prevalence).round(2).tolist()
        [[0.0, 0.56], [5.0, 0.0]]
    """
    classes = costs.shape[0]
    errors = 1 - np.eye(classes)
    if isinstance(rule, BayesRule) or (isinstance(rule, OptimisedMetric) and rule.metric == "EC"):
        return costs
    if isinstance(rule, CutOffs):
        if len(rule.thresholds) == 1:
            (threshold,) = rule.thresholds
            return errors * np.array([[threshold], [1 - threshold]])
        return errors / np.array(rule.thresholds)[:, np.newaxis]
    if isinstance(rule, OptimisedMetric) and rule.metric == "BA":
        # A class that cannot occur has no share in the balanced accuracy.
        weights = np.where(prevalence > 0, 1 / np.maximum(prevalence, np.finfo(np.float64).tiny), 0.0)
        return errors * weights[:, np.newaxis] / classes
    if isinstance(rule, Argmax | OptimisedMetric) and not needs_cut_off(rule):
        return errors
    raise InvalidInputError("this decision rule minimises no cost.", field="decision_rule")


def expected_costs(probabilities: Floats, costs: Floats) -> Floats:
    """Expected cost of each decision, sum_j costs[j, k] * probabilities[:, j], shape (N, D).

    The sum runs class by class with element-wise operations, so that a row's result does not depend on the rest of the
    batch, to the last bit. A matrix product does not guarantee this: its kernels depend on the shape. With more than
    MANY_CLASSES classes each class's largest cost is added apart: of 0-1 costs, one entry per class remains.
    """
    if costs.shape[0] <= MANY_CLASSES:
        return _sums(probabilities, costs)
    largest = costs.max(axis=1, keepdims=True)
    total = _sums(probabilities, largest) + _sums(probabilities, costs - largest)
    return np.clip(total, costs.min(axis=0), costs.max(axis=0))


def _sums(probabilities: Floats, costs: Floats) -> Floats:
    total = np.zeros((probabilities.shape[0], costs.shape[1]))
    for column, row in zip(probabilities.T, costs, strict=True):
        used = np.flatnonzero(row)
        if used.size == row.size:
            total += column[:, np.newaxis] * row
        elif used.size:
            total[:, used] += column[:, np.newaxis] * row[used]
    return total
