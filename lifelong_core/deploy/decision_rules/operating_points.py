"""What each cut-off of the calibration set reaches, and the choice of the cut-off."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats, Integers, Mask
from lifelong_core.deploy.decision_rules.rates import METRICS, metric_of
from lifelong_core.deploy.decision_rules.rules import MetricRule, OptimisedMetric, TargetValue, objective_of
from lifelong_core.errors import InvalidInputError

_ROUNDING = 1e-12
"""of sums of weights"""


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """The cut-offs that tell calibration samples apart, from the highest on, and the samples at or above each."""

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
        return np.cumsum(weights[..., self.order], axis=-1)[..., self.ends - 1]


def search_cut_off(rule: MetricRule, probabilities: Floats, labels: Integers, prevalence: Floats) -> float:
    """The cut-off of a rule for a population with this prevalence.

    Args:
        rule: a target value, or an optimised metric that is searched.
        probabilities: shape (M, C), of labelled samples.
        labels: shape (M,).
        prevalence: shape (C,), of the population; each class with a positive one has a sample.

    Raises:
        InvalidInputError: the rule's class has prevalence 0 or 1.

    Examples:
        >>> from lifelong_core.deploy import TargetValue
        >>> p = np.array([0.9, 0.8, 0.6, 0.4, 0.2])
        >>> labels = np.array([1, 1, 0, 1, 0])
        >>> search_cut_off(TargetValue("TPR", 0.9), np.stack([1 - p, p], axis=1), labels, np.array([0.5, 0.5]))
        0.30000000000000004
    """
    k = rule.positive_class
    if not 0 < prevalence[k] < 1:
        raise InvalidInputError(
            f"the rule needs a prevalence of class {k} between 0 and 1, got {prevalence[k]:g}.",
            field="target_prevalence",
            hint="Give the class and the others a positive prevalence.",
        )
    points = OperatingPoints.of(probabilities[:, k])
    weights = sample_weights(labels, prevalence)
    is_positive = labels == k
    tp, fp = points.shares(weights * is_positive), points.shares(weights * ~is_positive)
    return float(points.thresholds[best_point(rule, tp, fp, prevalence[k])])


def sample_weights(labels: Integers, prevalence: Floats) -> Floats:
    """Weight of each sample with which the samples make a population of this prevalence, shape (M,), sum 1."""
    counts = np.bincount(labels, minlength=prevalence.size)
    return np.divide(prevalence, counts, out=np.zeros(prevalence.size), where=counts > 0)[labels]


def best_point(rule: MetricRule, tp: Floats, fp: Floats, share: Floats | float) -> Integers:
    """Index of the operating point that the rule chooses, shape (...).

    Args:
        rule: the rule.
        tp: shape (..., T), share of all cases that are true positives.
        fp: shape (..., T), share that are false positives.
        share: shape (...), prevalence of the class.
    """
    prevalence = np.asarray(share)[..., np.newaxis]
    values: Floats = metric_of(rule)(tp, fp, prevalence)
    if isinstance(rule, OptimisedMetric):
        return np.where(np.isnan(values), -np.inf, values).argmax(axis=-1)
    best: Floats = METRICS[objective_of(rule)](tp, fp, prevalence)
    reaches = reaches_target(rule, values)
    closest = np.where(np.isnan(values), -np.inf, -values if rule.metric == "PPR" else values)
    # Where none reaches the target, the one that comes closest.
    chosen = np.where(reaches.any(axis=-1, keepdims=True), np.where(reaches, best, -np.inf), closest)
    return chosen.argmax(axis=-1)


def reaches_target(rule: TargetValue, values: Floats) -> Mask:
    """Whether values of the rule's metric are on the right side of its target, shape (...); undefined ones are not."""
    if rule.metric == "PPR":
        return values <= rule.value + _ROUNDING
    return values >= rule.value - _ROUNDING
