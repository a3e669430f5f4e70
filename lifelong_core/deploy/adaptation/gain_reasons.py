"""Reasons for and against a swap: what the candidate gains, as sentences with their figures."""

from dataclasses import dataclass

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.adaptation.gain import (
    ExpectedGain,
    ExpectedProbabilityGain,
)
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.rule_gain import RuleGain
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.head import PostProcessingHead


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


def _reached(criterion: ExpectedCriterion) -> str:
    return f"{criterion.metric} {criterion.value:.3f} ({criterion.low:.3f} to {criterion.high:.3f})"


def _needed(criterion: ExpectedCriterion) -> str:
    if criterion.needed_cases is None:
        return ""
    whose = "of the class" if criterion.metric in ("TPR", "NPV") else "of the other classes"
    return (
        f" The calibration set has {criterion.cases} independent cases {whose}; about"
        f" {criterion.needed_cases} give an interval"
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
