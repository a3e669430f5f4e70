"""Step 3 of a cycle: the candidate for the estimated prevalence, its gains, and whether these justify a swap."""

from dataclasses import dataclass, replace

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.adaptation import reasons
from lifelong_core.deploy.adaptation import refit as gain_reasons
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
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
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


def _reached(found: ExpectedCriterion) -> str:
    return f"{found.metric} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _needed(found: ExpectedCriterion) -> str:
    if found.needed_cases is None:
        return ""
    whose = "of the class" if found.metric in ("TPR", "NPV") else "of the other classes"
    return (
        f" The calibration set has {found.cases} independent cases {whose}; about {found.needed_cases} give an interval"
        " of 0.05 to either side."
    )


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _rule_gain(gain: RuleGain, threshold: float) -> str:
    change = (
        f"A refitted head changes {gain.metric} from {_figure(gain.current)} to {_figure(gain.candidate)}"
    )
    least = f"with probability 3/4 the gain is at least {gain.lower_quartile:.4f}"
    if gain.objective is None:
        return f"{change}; {least}, a swap needs more than {threshold:.4f}."
    return (
        f"{change}; {least} as far as the target counts. It changes {gain.objective} by {gain.objective_value:+.4f},"
        f" with probability 3/4 by at least {gain.objective_lower_quartile:+.4f}. A swap needs a gain of more than"
        f" {threshold:.4f} in {gain.metric}, or in {gain.objective} without harm to {gain.metric}."
    )


@dataclass(frozen=True)
class GainThresholds:
    """Thresholds of the gain for a swap."""

    cost: float
    """of the expected cost, for the lower quartile"""
    log_loss: float
    """of the expected log loss, for the lower decile"""
    tolerated: float
    """largest loss in expected cost, for the lower quartile, that a gain in log loss outweighs"""


def enough_gain(gain: ExpectedGain, threshold: float) -> Reason:
    """Reason: the candidate's decisions justify a swap."""
    return Reason("gain_sufficient", _cost_gain(gain, threshold))


def enough_probability_gain(
    gain: ExpectedGain, by_probability: ExpectedProbabilityGain, wanted: GainThresholds
) -> Reason:
    """Reason: the candidate's probabilities justify a swap, and its decisions do no harm."""
    text = f"{_cost_gain(gain, wanted.cost)} {log_loss_gain(by_probability, wanted.log_loss)} One of the two is enough."
    return Reason("probability_gain_sufficient", text)


def too_little_gain(
    gain: ExpectedGain,
    by_probability: ExpectedProbabilityGain,
    wanted: GainThresholds,
    *,
    going_back: bool,
) -> Reason:
    """Reason: neither the candidate's decisions nor its probabilities justify a swap."""
    text = f"{_cost_gain(gain, wanted.cost)} {log_loss_gain(by_probability, wanted.log_loss)}"
    if by_probability.lower_decile > wanted.log_loss:
        text += (
            f" That is not enough: the gain in cost ({gain.value:.4f}, with probability 3/4 at least"
            f" {gain.lower_quartile:.4f}) must not be negative, nor that lower quartile below {-wanted.tolerated:.4f}."
        )
    if going_back:
        text += " The swap would go back towards the prevalence of the previous head, so the thresholds are higher."
    return Reason("gain_too_small", text)


def losing_step(quantity: str, value: float, threshold: float) -> Reason:
    """Reason: a head for the estimate would gain enough, but the first step, as far as one swap may go, costs too
    much.
    """
    text = (
        f"One swap may go only part of the way. This step changes the {quantity} by {-value:+.4f}, a loss of more "
        f"than {threshold:.4f}, although the whole way would be a gain."
    )
    return Reason("gain_too_small", text)


def rule_refitted(
    current: ExpectedCriterion, candidate: ExpectedCriterion, head: PostProcessingHead
) -> Reason:
    """Reason beside the outcome: what the decision rule reaches with both heads, and whether its cut-off moves."""
    rule = head.decision_rule
    name = describe_rule(rule, head.class_names)
    why = "It depends on the prevalence, so a refitted head decides by another cut-off."
    if current.metric in ("TPR", "TNR") and len(head.class_names) == 2:
        why = "It does not depend on the prevalence: a refitted head decides alike, with other probabilities."
    elif current.metric == "TPR":
        why = "It does not depend on the prevalence; which cases have the highest probability does."
    text = f"Decision rule: {name}. {why} Expected here: {_reached(current)} now, {_reached(candidate)} refitted."
    if candidate.is_reachable:
        return Reason("rule_refitted", f"{text}{_needed(candidate)}")
    text = f"{text} No cut-off reaches {candidate.target:g} here; the refitted head comes as close as it can."
    return Reason("target_unreachable", f"{text}{_needed(candidate)}")


def enough_rule_gain(
    gain: RuleGain,
    threshold: float,
    by_probability: ExpectedProbabilityGain | None = None,
    log_loss: float = 0.0,
) -> Reason:
    """Reason: the rule's own metric justifies a swap, or the probabilities do and the metric takes no harm."""
    if by_probability is None:
        return Reason("rule_gain_sufficient", _rule_gain(gain, threshold))
    text = f"{_rule_gain(gain, threshold)} {log_loss_gain(by_probability, log_loss)}"
    return Reason("probability_gain_sufficient", text)


def too_little_rule_gain(
    gain: RuleGain, by_probability: ExpectedProbabilityGain, wanted: GainThresholds
) -> Reason:
    """Reason: neither the rule's own metric nor the probabilities justify a swap."""
    text = f"{_rule_gain(gain, wanted.cost)} {log_loss_gain(by_probability, wanted.log_loss)}"
    return Reason("gain_too_small", text)


def log_loss_gain(gain: ExpectedProbabilityGain, threshold: float) -> str:
    """The gain of the probabilities as a sentence."""
    change = (
        f"{_verb(gain.value)} the expected log loss of the probabilities (from {gain.current_log_loss:.4f} to"
        f" {gain.candidate_log_loss:.4f})"
    )
    return f"It {change}; {_sure('9/10', gain.lower_decile, threshold)}"


def _cost_gain(gain: ExpectedGain, threshold: float) -> str:
    change = (
        f"{_verb(gain.value)} the expected cost (from {gain.current_cost:.4f} to {gain.candidate_cost:.4f})"
    )
    return f"A refitted head {change}; {_sure('3/4', gain.lower_quartile, threshold)}"


def _verb(gain: float) -> str:
    return "lowers" if gain > 0 else "does not lower"


def _sure(probability: str, gain: float, threshold: float) -> str:
    change = "by no certain amount, less than"
    if gain > 0:
        verdict = "more than" if gain > threshold else "which does not exceed"
        change = f"by at least {gain:.4f}, {verdict}"
    return f"with probability {probability} {change} the {threshold:.4f} that a swap must gain."
