"""What a new head would save: expected costs of two heads in a population with the estimated prevalence."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats, Integers, Logits
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.held_out import crossfitted_output, held_out_output
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.base import Analysis
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.deploy.scientific import t_quantile


@dataclass(frozen=True)
class ExpectedGain(FlatDocument):
    """Drop of the expected cost per decision, in the unit of the costs; negative: a loss."""

    value: float
    low: float
    high: float
    """ends of the interval with the policy's confidence"""
    lower_quartile: float
    """with probability 3/4 the gain is at least this; what the policy looks at"""
    current_cost: float
    """expected cost of a decision of the current head"""
    candidate_cost: float
    """the same for the candidate"""


def expected_gain(
    calibration: LabeledLogits,
    analysis: Analysis,
    head: PostProcessingHead,
    target_prevalence: Floats,
    confidence: float,
    *,
    further_covariance: Floats | None = None,
) -> ExpectedGain:
    """Gain of refitting `head` for `target_prevalence`, in the population that `analysis` estimates.

    Under a pure prevalence shift the expected cost of a head is sum_k P(k) * (its mean cost on class k) (thesis Prop.
    2.25). The candidate's costs are cross-fitted: each calibration sample is decided by a head fitted without its
    fold. So are those of the current head where it was fitted on the same calibration set, because a head looks
    better than it is on the samples that it was fitted on. Variance by influence functions, like that of the
    prevalence: through the estimated prevalence, through the mean costs, and through what both owe to the same
    calibration samples.

    Args:
        calibration: labelled logits of the model.
        analysis: of the window.
        head: that serves at present.
        target_prevalence: shape (C,), for which the candidate is fitted.
        confidence: nominal coverage of the interval.
        further_covariance: shape (C, C), of the estimate, that comes neither from the window nor from the
            calibration set.
    """
    prevalence = analysis.estimate.prevalence
    compared = _Comparison.of(calibration, head, target_prevalence)
    by_class, unit, labels = compared.by_class, compared.unit, calibration.labels
    value = unit * float(prevalence @ by_class)
    influence = Influence(
        window=_column(analysis.influence.window @ by_class),
        pseudo=_column(analysis.influence.pseudo @ by_class),
        calibration=_column(
            analysis.influence.calibration @ by_class + prevalence[labels] * compared.savings
        ),
    )
    spread = analysis.spread(influence)
    variance = float(spread.covariance[0, 0] + by_class @ analysis.doubt @ by_class)
    if further_covariance is not None:
        variance += float(by_class @ further_covariance @ by_class)
    freedom = float(spread.degrees_of_freedom[0])
    error = unit * float(np.sqrt(variance))
    reach = error * _quantile(freedom, (1 + confidence) / 2)
    return ExpectedGain(
        value=value,
        low=value - reach,
        high=value + reach,
        lower_quartile=value - error * _quantile(freedom, 0.75),
        current_cost=_cost(calibration, head, compared.current, prevalence),
        candidate_cost=_cost(calibration, head, compared.candidate, prevalence),
    )


def gain_value(
    calibration: LabeledLogits, prevalence: Floats, head: PostProcessingHead, target_prevalence: Floats
) -> float:
    """`ExpectedGain.value` alone, in a population of that prevalence, (C,)."""
    compared = _Comparison.of(calibration, head, target_prevalence)
    return compared.unit * float(prevalence @ compared.by_class)


@dataclass(frozen=True)
class _Comparison:
    """Two heads on the calibration set."""

    current: Integers
    candidate: Integers
    """decisions, shape (M,)"""
    savings: Floats
    """shape (M,), by how much the candidate's decision is cheaper, in units of the largest difference"""
    by_class: Floats
    """shape (C,), their means"""
    unit: float

    @classmethod
    def of(cls, calibration: LabeledLogits, head: PostProcessingHead, target_prevalence: Floats) -> Self:
        labels = calibration.labels
        current = held_out_output(calibration, head).decisions
        candidate = crossfitted_output(calibration, head.costs, target_prevalence).decisions
        # Costs may be of any size; their squares must not overflow.
        unit = largest_difference(head.costs) or 1.0
        savings = (head.costs[labels, current] - head.costs[labels, candidate]) / unit
        by_class = np.bincount(labels, savings, minlength=calibration.classes) / calibration.counts
        return cls(current, candidate, savings, by_class, unit)


def largest_difference(costs: Floats) -> float:
    """How much a decision can change the cost of a sample; a constant added to a row of the costs changes nothing."""
    return float((costs.max(axis=1) - costs.min(axis=1)).max())


def largest_harm(
    logits: Logits, counts: Floats | Integers, current: PostProcessingHead, candidate: PostProcessingHead
) -> float:
    """What a swap could cost at worst, per decision on these samples, whatever their true classes are.

    Where both heads decide alike, nothing; elsewhere the largest amount by which the candidate's decision can be the
    dearer one. No assumption enters: it holds where the workflow's assumptions fail.

    Args:
        logits: shape (U, C).
        counts: shape (U,), how often each row occurs.
        current: the head that serves.
        candidate: the head that would; with the same costs.
    """
    before, after = current.apply(logits).decisions, candidate.apply(logits).decisions
    dearer = np.maximum(current.costs[:, after] - current.costs[:, before], 0).max(axis=0)
    return float(counts @ dearer / counts.sum())


def _cost(
    calibration: LabeledLogits, head: PostProcessingHead, decisions: Integers, prevalence: Floats
) -> float:
    # Here and not above: a service never comes here, and starts a tenth of a second earlier without the metric pool.
    from lifelong_core.metrics import confusion_matrix, expected_cost

    confusion = confusion_matrix(
        calibration.labels, decisions, classes=calibration.classes, decisions_count=head.costs.shape[1]
    )
    return expected_cost(confusion, head.costs, prevalence=prevalence)


def _column(values: Floats) -> Floats:
    return values[:, np.newaxis]


def _quantile(degrees_of_freedom: float, probability: float) -> float:
    """Of the t distribution; that with one degree of freedom where nothing is known of the spread."""
    return float(t_quantile(max(degrees_of_freedom, 1.0), probability))
