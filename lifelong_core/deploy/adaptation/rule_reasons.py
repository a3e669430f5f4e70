"""Reasons of decision rules: what they reach, and whether their own metric justifies a swap."""

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.adaptation.gain import ExpectedProbabilityGain
from lifelong_core.deploy.adaptation.reasons import GainThresholds, Reason, log_loss_gain
from lifelong_core.deploy.adaptation.rule_gain import RuleGain
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.head import PostProcessingHead


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
