"""Expected gain of a new head: costs and log losses of two heads in a population with the estimated prevalence."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lifelong_core.decision_rules.decide import minimised_costs
from lifelong_core.decision_rules.rules import DecisionRule, has_own_metric
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead
from lifelong_core.deploy.head_fitting import crossfitted_output, held_out_output
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, Integers, Logits
from lifelong_core.values.scientific import t_quantile

LOWEST_PROBABILITY = 1e-4
"""Smaller probabilities of the true class count as this one: no loss exceeds 9.2 nats, so that a single calibration
case with gross errors of both heads does not decide."""


@dataclass(frozen=True)
class ExpectedGain(FlatDocument):
    """Drop of the expected cost per decision, in the unit of the costs; negative: a loss."""

    value: float
    low: float
    high: float
    """ends of the interval with the policy's confidence"""
    lower_quartile: float
    """with probability 3/4 the gain is at least this; the policy compares this value"""
    current_cost: float
    """expected cost of a decision of the current head"""
    candidate_cost: float
    """the same for the candidate"""


@dataclass(frozen=True)
class ExpectedProbabilityGain(FlatDocument):
    """Drop of the expected log loss per prediction, in nats; negative: a loss."""

    value: float
    low: float
    high: float
    """ends of the interval with the policy's confidence"""
    optimism: float
    """mean excess of `value` over the true gain where nothing has shifted: the same estimate selects and judges the
    candidate (Efron 2004)"""
    lower_decile: float
    """with probability 9/10 the gain is at least this, corrected for the optimism; the policy compares this value"""
    current_log_loss: float
    """expected log loss of the current head's probabilities"""
    candidate_log_loss: float
    """the same for the candidate"""


@dataclass(frozen=True)
class HeadComparison:
    """Outputs of the current head and of a candidate on held-out calibration samples.

    The candidate's outputs are cross-fitted: the output for each calibration sample comes from a head fitted without
    its fold. The outputs of the current head are cross-fitted too if it was fitted on this calibration set, because a
    head looks better than it is on its own training samples.
    """

    calibration: LabeledLogits
    decision_rule: DecisionRule
    """of both heads"""
    costs: Floats
    """shape (C, D): those that the rule minimises, or those of the heads where it minimises none"""
    target_prevalence: Floats
    """shape (C,), target prevalence of the candidate"""
    current: HeadOutput
    candidate: HeadOutput
    """outputs on the M calibration samples"""

    @classmethod
    def of(
        cls,
        calibration: LabeledLogits,
        head: PostProcessingHead,
        target_prevalence: Floats,
        current: HeadOutput | None = None,
        candidate: HeadOutput | None = None,
    ) -> Self:
        """Compare `head` with one that is fitted for a target prevalence, (C,), on the calibration set.

        `current` and `candidate` are the held-out outputs of the two heads, where they are known.
        """
        rule = head.decision_rule
        return cls(
            calibration,
            rule,
            head.costs if has_own_metric(rule) else minimised_costs(rule, head.costs, target_prevalence),
            target_prevalence,
            held_out_output(calibration, head) if current is None else current,
            crossfitted_output(
                calibration, head.costs, target_prevalence, decision_rule=head.decision_rule, near=head
            )
            if candidate is None
            else candidate,
        )

    @property
    def outputs(self) -> tuple[HeadOutput, HeadOutput]:
        """Outputs of the current head and of the candidate."""
        return self.current, self.candidate

    @property
    def cost_unit(self) -> float:
        """Largest difference that a decision makes; in this unit the squares of costs of any size do not overflow."""
        return largest_difference(self.costs) or 1.0

    @property
    def cost_savings(self) -> Floats:
        """Cost of the current head's decisions less the candidate's, in cost units, shape (M,)."""
        labels = self.calibration.labels
        before, after = (self.costs[labels, one.decisions] for one in (self.current, self.candidate))
        return (before - after) / self.cost_unit

    @property
    def log_loss_savings(self) -> Floats:
        """Log loss of the current head less the candidate's, in nats, shape (M,)."""
        return self._log_losses(self.current) - self._log_losses(self.candidate)

    def cost_gain(self, prevalence: Floats) -> float:
        """`ExpectedGain.value` in a population with this prevalence, (C,)."""
        return self.cost_unit * self._expected(self.cost_savings, prevalence)

    def log_loss_gain(self, prevalence: Floats) -> float:
        """`ExpectedProbabilityGain.value` in a population with this prevalence, (C,)."""
        return self._expected(self.log_loss_savings, prevalence)

    def log_loss(self, output: HeadOutput, prevalence: Floats) -> float:
        """Expected log loss in a population with this prevalence, (C,)."""
        return self._expected(self._log_losses(output), prevalence)

    def _log_losses(self, output: HeadOutput) -> Floats:
        own = output.probabilities[np.arange(self.calibration.samples), self.calibration.labels]
        return -np.log(np.maximum(own, LOWEST_PROBABILITY))

    def _expected(self, values: Floats, prevalence: Floats) -> float:
        return float(prevalence @ class_means(values, self.calibration))


def expected_gain(
    compared: HeadComparison,
    analysis: Analysis,
    confidence: float,
    *,
    further_covariance: Floats | None = None,
) -> ExpectedGain:
    """Gain in expected cost of the candidate, in the population that `analysis` estimates.

    Under a pure prevalence shift the expected cost of a head is sum_k P(k) * (its mean cost on class k) (thesis Prop.
    2.25).

    Args:
        compared: both heads on the calibration set.
        analysis: analysis of the window.
        confidence: nominal coverage of the interval.
        further_covariance: shape (C, C), part of the estimate's covariance that comes neither from the window nor
            from the calibration set.
    """
    prevalence = analysis.estimate.prevalence
    found = GainEstimate.of(compared.cost_savings, analysis, further_covariance).scaled(compared.cost_unit)
    low, high = found.interval(confidence)
    return ExpectedGain(
        value=found.value,
        low=low,
        high=high,
        lower_quartile=found.exceeded_with(0.75),
        current_cost=_cost(compared, compared.current, prevalence),
        candidate_cost=_cost(compared, compared.candidate, prevalence),
    )


def expected_probability_gain(
    compared: HeadComparison,
    analysis: Analysis,
    confidence: float,
    *,
    further_covariance: Floats | None = None,
) -> ExpectedProbabilityGain:
    """Gain in expected log loss of the candidate's probabilities, in the population that `analysis` estimates.

    The arguments are those of `expected_gain`. The optimism is that of a candidate with the densities
    of the calibration set, p_k(t) = t_k f_k / sum_j t_j f_j: trace of (derivative of the class means of log p_k by t)
    times (covariance of the estimate).
    """
    prevalence, optimism = analysis.estimate.prevalence, _optimism(compared, analysis.estimate.covariance)
    found = GainEstimate.of(compared.log_loss_savings, analysis, further_covariance)
    low, high = found.interval(confidence)
    return ExpectedProbabilityGain(
        value=found.value,
        low=low,
        high=high,
        optimism=optimism,
        lower_decile=found.exceeded_with(0.9) - optimism,
        current_log_loss=compared.log_loss(compared.current, prevalence),
        candidate_log_loss=compared.log_loss(compared.candidate, prevalence),
    )


def largest_difference(costs: Floats) -> float:
    """Largest difference between the costs of two decisions for one true class."""
    return float((costs.max(axis=1) - costs.min(axis=1)).max())


def worst_case_cost_increase(
    logits: Logits, counts: Floats | Integers, current: PostProcessingHead, candidate: PostProcessingHead
) -> float:
    """Largest possible increase of the mean cost by a swap on these samples, whatever their true classes are.

    Equal decisions add nothing. For different decisions it adds the largest amount by which the candidate's decision
    can cost more. It needs no assumption, so it holds where the assumptions of the workflow fail.

    Args:
        logits: shape (U, C).
        counts: shape (U,), how often each row occurs.
        current: the current head.
        candidate: the head to swap in, with the same costs.
    """
    before, after = current.apply(logits).decisions, candidate.apply(logits).decisions
    dearer = np.maximum(current.costs[:, after] - current.costs[:, before], 0).max(axis=0)
    return float(counts @ dearer / counts.sum())


@dataclass(frozen=True)
class GainEstimate:
    """Expected savings in the population of a window."""

    value: float
    error: float
    """standard error"""
    degrees_of_freedom: float

    @classmethod
    def of(cls, savings: Floats, analysis: Analysis, further_covariance: Floats | None) -> Self:
        """Estimate from the savings on the calibration samples, (M,).

        Variance by influence functions, like that of the prevalence: through the estimated prevalence, through the
        class means of the savings, and through the covariance of both, which come from the same calibration samples.
        """
        prevalence, labels = analysis.estimate.prevalence, analysis.calibration.labels
        by_class = class_means(savings, analysis.calibration)
        influence = Influence(
            window=_column(analysis.influence.window @ by_class),
            pseudo=_column(analysis.influence.pseudo @ by_class),
            calibration=_column(analysis.influence.calibration @ by_class + prevalence[labels] * savings),
        )
        spread = analysis.spread(influence)
        variance = float(
            spread.covariance[0, 0] + by_class @ (analysis.doubt + analysis.change_doubt) @ by_class
        )
        if further_covariance is not None:
            variance += float(by_class @ further_covariance @ by_class)
        # The t distribution with one degree of freedom where nothing is known of the spread.
        freedom = max(float(spread.degrees_of_freedom[0]), 1.0)
        return cls(float(prevalence @ by_class), float(np.sqrt(variance)), freedom)

    def scaled(self, unit: float) -> Self:
        """The estimate in another unit."""
        return replace(self, value=unit * self.value, error=unit * self.error)

    def exceeded_with(self, probability: float) -> float:
        """Value that the savings exceed with this probability."""
        return self.value - self.error * float(t_quantile(self.degrees_of_freedom, probability))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval with this nominal coverage."""
        low = self.exceeded_with((1 + confidence) / 2)
        return low, 2 * self.value - low


def _optimism(compared: HeadComparison, covariance: Floats) -> float:
    target = compared.target_prevalence
    posteriors = class_means(compared.candidate.probabilities, compared.calibration).T
    return float(np.trace((np.eye(target.size) - posteriors) / target @ covariance))


def _cost(compared: HeadComparison, output: HeadOutput, prevalence: Floats) -> float:
    # Here and not above: a service never comes here, and starts a tenth of a second earlier without the metric pool.
    from lifelong_core.metrics import confusion_matrix, expected_cost

    calibration, costs = compared.calibration, compared.costs
    confusion = confusion_matrix(
        calibration.labels, output.decisions, classes=calibration.classes, decisions_count=costs.shape[1]
    )
    return expected_cost(confusion, costs, prevalence=prevalence)


def _column(values: Floats) -> Floats:
    return values[:, np.newaxis]
