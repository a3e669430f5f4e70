"""Gain of a new head by the criterion of its decision rule: a target is kept first, then the best of the other metric.

Rules that minimise a cost are judged by the expected cost (`gain`); the others by their metric.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lifelong_core.decision_rules.operating_points import METRICS, RateMetric, metric_of
from lifelong_core.decision_rules.rules import (
    DecisionRule,
    MetricRule,
    OptimisedMetric,
    TargetValue,
    has_own_metric,
)
from lifelong_core.deploy.adaptation.gain import GainEstimate, HeadComparison
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.values.arrays import Floats, Integers

_COMPLEX_STEP = 1e-20


@dataclass(frozen=True)
class RuleGain(FlatDocument):
    """Gain of a candidate by the metric of its decision rule; negative: a loss."""

    metric: str
    """TPR, TNR, PPV, NPV, PPR, F_beta, MCC or BA"""
    current: float | None
    candidate: float | None
    """the metric of both heads on held-out calibration samples, in the population of the window; None: undefined"""
    value: float
    """rise of the metric; of a target, only as far as the target"""
    lower_quartile: float
    """with probability 3/4 the rise is at least this"""
    upper_quartile: float
    """with probability 3/4 the rise is at most this"""
    objective: str | None
    """metric that is best among the cut-offs that reach the target; None: the rule has no target"""
    objective_value: float
    """rise of the objective; 0 without one"""
    objective_lower_quartile: float
    objective_upper_quartile: float

    def is_harmless(self, tolerated: float) -> bool:
        """Whether neither metric certainly falls by more than the tolerated amount; the objective may, where that
        brings the metric closer to its target.
        """
        objective_holds = self.objective_upper_quartile >= -tolerated or self.lower_quartile > 0
        return self.upper_quartile >= -tolerated and objective_holds


def rule_gain(
    compared: HeadComparison, analysis: Analysis, *, further_covariance: Floats | None = None
) -> RuleGain | None:
    """Gain in the metric of the heads' decision rule, in the population that `analysis` estimates.

    Quartiles by influence functions, as in `expected_gain`.

    Args:
        compared: both heads on the calibration set.
        analysis: analysis of the window.
        further_covariance: shape (C, C), part of the estimate's covariance that comes neither from the window nor
            from the calibration set.

    Returns:
        None: the rule minimises a cost.
    """
    rule = compared.decision_rule
    if not has_own_metric(rule):
        return None
    prevalence = analysis.estimate.prevalence
    if isinstance(rule, OptimisedMetric) and rule.metric == "BA":
        both = [
            _balanced_accuracy(compared.calibration, one.decisions, prevalence) for one in compared.outputs
        ]
        return _gain(rule, both, None, analysis, further_covariance)
    found = [
        _Effects.of(metric, rule.positive_class, compared.calibration, output.decisions, prevalence)
        for metric in (metric_of(rule), *_objective(rule))
        for output in compared.outputs
    ]
    return _gain(rule, found[:2], found[2:] or None, analysis, further_covariance)


@dataclass(frozen=True, eq=False)
class _Effects:
    """A metric of a head in a population."""

    value: float
    """nan: undefined"""
    slopes: Floats
    """shape (M,), such that the metric moves by their mean over a population in which the samples are moved"""

    @classmethod
    def of(
        cls,
        metric: RateMetric,
        positive: int,
        calibration: LabeledLogits,
        decisions: Integers,
        prevalence: Floats,
    ) -> Self:
        is_own, flagged = calibration.labels == positive, decisions == positive
        joint = prevalence * class_means(flagged.astype(np.float64), calibration)
        point = np.array([joint[positive], joint.sum() - joint[positive], prevalence[positive]])
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(np.real(metric(*point)))
            slopes = np.array(
                [np.imag(metric(*(point + 1j * _COMPLEX_STEP * step))) / _COMPLEX_STEP for step in np.eye(3)]
            )
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        return cls(
            value, slopes[0] * (flagged & is_own) + slopes[1] * (flagged & ~is_own) + slopes[2] * is_own
        )


def _balanced_accuracy(calibration: LabeledLogits, decisions: Integers, prevalence: Floats) -> _Effects:
    """Mean sensitivity of the classes, which does not depend on the prevalence."""
    right = (decisions == calibration.labels).astype(np.float64)
    means = class_means(right, calibration)
    weights = 1 / (prevalence.size * np.maximum(prevalence, np.finfo(np.float64).tiny))
    return _Effects(float(means.mean()), (right - means[calibration.labels]) * weights[calibration.labels])


def _objective(rule: DecisionRule) -> tuple[RateMetric, ...]:
    return (METRICS[rule.objective],) if isinstance(rule, TargetValue) else ()


def _gain(
    rule: MetricRule,
    metric: list[_Effects],
    objective: list[_Effects] | None,
    analysis: Analysis,
    further_covariance: Floats | None,
) -> RuleGain:
    current, candidate = metric
    value = _towards(rule, candidate.value) - _towards(rule, current.value)
    sign = rule.target.sign if isinstance(rule, TargetValue) else 1.0
    rise = _estimate(value, sign * (candidate.slopes - current.slopes), analysis, further_covariance)
    other = (
        None
        if objective is None
        else _estimate(
            objective[1].value - objective[0].value,
            objective[1].slopes - objective[0].slopes,
            analysis,
            further_covariance,
        )
    )
    return RuleGain(
        metric=rule.metric,
        current=None if np.isnan(current.value) else current.value,
        candidate=None if np.isnan(candidate.value) else candidate.value,
        value=rise.value,
        lower_quartile=rise.exceeded_with(0.75),
        upper_quartile=rise.exceeded_with(0.25),
        objective=rule.objective if isinstance(rule, TargetValue) else None,
        objective_value=0.0 if other is None else other.value,
        objective_lower_quartile=0.0 if other is None else other.exceeded_with(0.75),
        objective_upper_quartile=0.0 if other is None else other.exceeded_with(0.25),
    )


def _towards(rule: MetricRule, value: float) -> float:
    """The metric, higher is better, as far as a target demands; an undefined one breaks no target."""
    if isinstance(rule, TargetValue):
        return rule.target.progress(value)
    return 0.0 if np.isnan(value) else value


def _estimate(
    value: float, slopes: Floats, analysis: Analysis, further_covariance: Floats | None
) -> GainEstimate:
    return replace(GainEstimate.of(slopes, analysis, further_covariance), value=value)
