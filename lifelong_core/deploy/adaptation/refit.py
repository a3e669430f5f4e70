"""Step 3 of a cycle: the candidate for the estimated prevalence, its gains, and whether these justify a swap."""

from dataclasses import dataclass, replace

from lifelong_core.deploy.adaptation import gain_reasons, reasons
from lifelong_core.deploy.adaptation.findings import Findings
from lifelong_core.deploy.adaptation.gain import (
    ExpectedGain,
    ExpectedProbabilityGain,
    HeadComparison,
    expected_gain,
    expected_probability_gain,
    largest_difference,
    worst_case_cost_increase,
)
from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.report import AdaptationReport
from lifelong_core.deploy.adaptation.rule_gain import RuleGain, rule_gain
from lifelong_core.deploy.adaptation.target_prevalence import (
    add_pseudo_samples,
    is_return,
    limit_step,
    pool_analysis,
)
from lifelong_core.deploy.adaptation.windows import points_of
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_fitting import fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class Refitted:
    """The candidate with its gains."""

    candidate: PostProcessingHead
    largest_difference: float
    """largest difference that a decision makes, by the costs that the decision rule minimises"""
    gain: ExpectedGain
    probability_gain: ExpectedProbabilityGain
    rule_gain: RuleGain | None
    """gains of a head for the estimate itself"""
    step_rule_gain: RuleGain | None
    step_gain: float
    step_probability_gain: float
    """gains of the candidate, which a limited step may fit for a prevalence before the estimate"""
    going_back: bool


def refit(report: AdaptationReport, findings: Findings) -> tuple[AdaptationReport, Refitted]:
    """Fit the candidate; add its gains and its worst case to the report."""
    head, policy, context = findings.head, report.policy, report.context
    analysis, further, data = findings.analysis, None, findings.fitted.calibration
    pooled = pool_analysis(analysis, context.others) if policy.pooling else None
    if pooled is not None:
        report = replace(report, pooled=pooled.analysis.estimate)
        report = report.because(reasons.pooled(analysis.estimate, pooled, head))
        analysis, further = pooled.analysis, pooled.spread
        # Both heads are judged in the same population.
        report = replace(report, criterion=findings.criterion(head, analysis, report.seed))
    wanted = add_pseudo_samples(analysis.estimate, data.samples)
    target = limit_step(head.assumed_prevalence, wanted, policy.maximum_step)
    held_out = findings.calibration.held_out_output(head)
    candidate = _candidate(data, head, target, report)
    own = findings.calibration.held_out_output(candidate) if target is wanted else None
    compared = step = HeadComparison.of(data, head, wanted, held_out, own)
    gain = expected_gain(compared, analysis, policy.confidence, further_covariance=further)
    by_probability = expected_probability_gain(
        compared, analysis, policy.confidence, further_covariance=further
    )
    by_rule = step_by_rule = rule_gain(compared, analysis, further_covariance=further)
    if target is not wanted:
        report = report.because(reasons.step_limited(head, wanted, policy.maximum_step))
        step = HeadComparison.of(data, head, target, held_out)
        step_by_rule = rule_gain(step, analysis, further_covariance=further)
    reached = findings.criterion(candidate, analysis, report.seed)
    if reached is not None and target is wanted:
        # For a limited step the head assumes another prevalence than the one for which this is expected.
        expected = {"expected_criterion": reached.to_document()}
        candidate = replace(candidate, provenance={**candidate.provenance, **expected})
    report = replace(
        report,
        candidate_performance=findings.performance(candidate),
        candidate_criterion=reached,
        rule_gain=by_rule,
    )
    if report.criterion is not None and reached is not None:
        report = report.because(gain_reasons.rule_refitted(report.criterion, reached, head))
    harm = worst_case_cost_increase(*points_of(findings.window), head, candidate)
    report = replace(
        report, expected_gain=gain, expected_probability_gain=by_probability, worst_case_cost_increase=harm
    )
    prevalence = analysis.estimate.prevalence
    return report, Refitted(
        candidate,
        largest_difference(compared.costs),
        gain,
        by_probability,
        by_rule,
        step_by_rule,
        step.cost_gain(prevalence),
        step.log_loss_gain(prevalence),
        is_return(head.assumed_prevalence, target, context.previous_prevalence),
    )


def _candidate(
    calibration: LabeledLogits, head: PostProcessingHead, target: Floats, report: AdaptationReport
) -> PostProcessingHead:
    provenance = {
        "origin": "adaptation",
        "replaces": report.head_digest,
        "quantifier_digest": report.quantifier_digest,
        "window_digest": report.window_digest,
    }
    return fit_head(
        calibration,
        head.costs,
        target_prevalence=target,
        class_names=head.class_names,
        provenance=provenance,
        decision_rule=head.decision_rule,
        near=head,
    )


def worth_of(refitted: Refitted, policy: AdaptationPolicy) -> Reason:
    """Reason for a swap, by the candidate's decisions or by its probabilities; or the reason against it."""
    gain, by_probability = refitted.gain, refitted.probability_gain
    factor = 1 + policy.hysteresis if refitted.going_back else 1.0
    if refitted.rule_gain is not None:
        return _worth_by_rule(refitted.rule_gain, refitted, policy, factor)
    tolerated = policy.minimum_gain * refitted.largest_difference
    wanted = gain_reasons.GainThresholds(
        factor * tolerated, factor * policy.minimum_probability_gain, tolerated
    )
    # All comparisons ask so that a figure which is no number keeps the head.
    if gain.lower_quartile > wanted.cost:
        worth = gain_reasons.enough_gain(gain, wanted.cost)
    elif (
        by_probability.lower_decile > wanted.log_loss
        and gain.value >= 0
        and gain.lower_quartile >= -wanted.tolerated
    ):
        worth = gain_reasons.enough_probability_gain(gain, by_probability, wanted)
    else:
        return gain_reasons.too_little_gain(gain, by_probability, wanted, going_back=refitted.going_back)
    if not refitted.step_gain >= -wanted.cost:
        return gain_reasons.losing_step("expected cost", refitted.step_gain, wanted.cost)
    if not refitted.step_probability_gain >= -wanted.log_loss:
        return gain_reasons.losing_step("expected log loss", refitted.step_probability_gain, wanted.log_loss)
    return worth


def _worth_by_rule(gain: RuleGain, refitted: Refitted, policy: AdaptationPolicy, factor: float) -> Reason:
    """Reason for a swap by the rule's own metric: the target is kept first, then the objective is improved."""
    wanted = gain_reasons.GainThresholds(
        factor * policy.minimum_gain, factor * policy.minimum_probability_gain, policy.minimum_gain
    )
    by_probability, step = refitted.probability_gain, refitted.step_rule_gain
    if step is not None and not step.is_harmless(wanted.tolerated):
        return gain_reasons.losing_step(step.metric, step.value, wanted.tolerated)
    if gain.lower_quartile > wanted.cost:
        return gain_reasons.enough_rule_gain(gain, wanted.cost)
    if gain.objective_lower_quartile > wanted.cost and gain.upper_quartile >= -wanted.tolerated:
        return gain_reasons.enough_rule_gain(gain, wanted.cost)
    if by_probability.lower_decile > wanted.log_loss and gain.is_harmless(wanted.tolerated):
        return gain_reasons.enough_rule_gain(gain, wanted.cost, by_probability, wanted.log_loss)
    return gain_reasons.too_little_rule_gain(gain, by_probability, wanted)
