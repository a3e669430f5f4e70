"""Whether a candidate is worth a swap, with the reason."""

from lifelong_core.deploy.adaptation import reasons, rule_reasons
from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.refit import Refitted
from lifelong_core.deploy.adaptation.rule_gain import RuleGain


def worth_of(refitted: Refitted, policy: AdaptationPolicy) -> Reason:
    """Reason for a swap, by the candidate's decisions or by its probabilities; or the reason against it."""
    gain, by_probability = refitted.gain, refitted.probability_gain
    factor = 1 + policy.hysteresis if refitted.going_back else 1.0
    if refitted.rule_gain is not None:
        return _worth_by_rule(refitted.rule_gain, refitted, policy, factor)
    tolerated = policy.minimum_gain * refitted.largest_difference
    wanted = reasons.GainThresholds(factor * tolerated, factor * policy.minimum_probability_gain, tolerated)
    # All comparisons ask so that a figure which is no number keeps the head.
    if gain.lower_quartile > wanted.cost:
        worth = reasons.enough_gain(gain, wanted.cost)
    elif (
        by_probability.lower_decile > wanted.log_loss
        and gain.value >= 0
        and gain.lower_quartile >= -wanted.tolerated
    ):
        worth = reasons.enough_probability_gain(gain, by_probability, wanted)
    else:
        return reasons.too_little_gain(gain, by_probability, wanted, going_back=refitted.going_back)
    if not refitted.step_gain >= -wanted.cost:
        return reasons.losing_step("expected cost", refitted.step_gain, wanted.cost)
    if not refitted.step_probability_gain >= -wanted.log_loss:
        return reasons.losing_step("expected log loss", refitted.step_probability_gain, wanted.log_loss)
    return worth


def _worth_by_rule(gain: RuleGain, refitted: Refitted, policy: AdaptationPolicy, factor: float) -> Reason:
    """Reason for a swap by the rule's own metric: the target is kept first, then the objective is improved."""
    wanted = reasons.GainThresholds(
        factor * policy.minimum_gain, factor * policy.minimum_probability_gain, policy.minimum_gain
    )
    by_probability, step = refitted.probability_gain, refitted.step_rule_gain
    if step is not None and not step.is_harmless(wanted.tolerated):
        return reasons.losing_step(step.metric, step.value, wanted.tolerated)
    if gain.lower_quartile > wanted.cost:
        return rule_reasons.enough_rule_gain(gain, wanted.cost)
    if gain.objective_lower_quartile > wanted.cost and gain.upper_quartile >= -wanted.tolerated:
        return rule_reasons.enough_rule_gain(gain, wanted.cost)
    if by_probability.lower_decile > wanted.log_loss and gain.is_harmless(wanted.tolerated):
        return rule_reasons.enough_rule_gain(gain, wanted.cost, by_probability, wanted.log_loss)
    return rule_reasons.too_little_rule_gain(gain, by_probability, wanted)
