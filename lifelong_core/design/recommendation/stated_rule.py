"""The decision rule that the answers of an interview ask for (thesis section 4.1.3, FP2.6)."""

from dataclasses import dataclass

from lifelong_core.decision_rules.rules import (
    OPTIMISABLE_METRICS,
    Argmax,
    BayesRule,
    CutOffs,
    DecisionRule,
    OptimisedMetric,
    TargetValue,
    check_rule,
)
from lifelong_core.design.method.conditions import Matrix, equal_costs
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.values.errors import InvalidInputError

_BETAS = {"missed_case": 2.0, "false_alarm": 0.5}
"""beta of the F score where one error is worse (thesis table 4.10; guide DG3.5); 1 otherwise"""


@dataclass(frozen=True)
class StatedRule:
    """The rule that answers ask for."""

    rule: DecisionRule | None
    """None: the answers state no rule that can be executed; a task keeps its own, a validation judges the likeliest
    class"""
    reason: str | None = None
    """why there is no rule, in a sentence; None: there is one, or the answers state none"""
    costs: Matrix | None = None
    """shape (C, D), by which a validation executes the rule (a head has those of its task); None: the rule depends on
    none, or they are not stated"""


def recommended_rule(recommendation: Recommendation) -> StatedRule:
    """The rule that a recommendation asks for; an unused answer counts as not given, but for the class of interest.

    The beta of an F score is that of the recommended metric, where there is one.
    """
    fingerprint = recommendation.fingerprint
    # No recommended metric may need the class of interest, but the F score that the rule optimises does.
    for item in {one.item for one in recommendation.unused} - {"target_class"}:
        if item in type(fingerprint).model_fields:
            fingerprint = fingerprint.without(item)
    betas = [one.parameters["beta"] for one in recommendation.metrics if "beta" in one.parameters]
    beta = betas[0] if betas and isinstance(betas[0], float | int) else None
    return stated_rule(fingerprint, beta=beta)


def stated_rule(fingerprint: ProblemFingerprint, *, beta: float | None = None) -> StatedRule:
    """The rule that a fingerprint asks for, or the reason why it cannot be executed.

    Args:
        fingerprint: the answers.
        beta: of an F score; None: 2 where a missed case is worse, 0.5 where a false alarm is, else 1.

    Examples:
        >>> stated_rule(ProblemFingerprint(number_of_classes=8, decision_rule="argmax")).rule
        Argmax()
        >>> asked = ProblemFingerprint(decision_rule="optimization", optimised_metric="LR+")
        >>> stated_rule(asked).reason
        'no head can decide for the best LR+; it can for F_beta, BA, MCC, AC and EC.'
    """
    try:
        found = _stated(fingerprint, beta or _BETAS.get(fingerprint.worse_error or "", 1.0))
        if found.rule is not None and fingerprint.number_of_classes is not None:
            check_rule(found.rule, fingerprint.number_of_classes)
    except InvalidInputError as error:
        return StatedRule(None, error.message)
    return found


def _stated(fingerprint: ProblemFingerprint, beta: float) -> StatedRule:
    match fingerprint.decision_rule:
        case None | "none":
            return StatedRule(None)
        case "argmax":
            return StatedRule(Argmax())
        case "cost_benefit":
            return _cost_benefit(fingerprint)
        case "target_value":
            return _target_value(fingerprint)
        case "optimization":
            return _optimised(fingerprint, beta)


def _cost_benefit(fingerprint: ProblemFingerprint) -> StatedRule:
    threshold, classes = fingerprint.risk_threshold, fingerprint.number_of_classes or 2
    if threshold is None or fingerprint.threshold_perspective == "explicit_costs":
        are_alike = fingerprint.costs is None and fingerprint.unequal_severity is False
        return StatedRule(BayesRule(), costs=equal_costs(classes) if are_alike else fingerprint.costs)
    if classes > 2:
        return StatedRule(None, "a risk threshold decides between two classes only.")
    # Class 0 is decided where its probability is at least t: that of class 1 is at most 1 - t (thesis Remark 2.58).
    return StatedRule(CutOffs((threshold, 1 - threshold) if fingerprint.target_class == 0 else threshold))


def _target_value(fingerprint: ProblemFingerprint) -> StatedRule:
    metric, value, positive = fingerprint.target_metric, fingerprint.target_value, _class(fingerprint)
    if metric is None or value is None:
        return StatedRule(None, "the target metric and its value are not stated.")
    if positive is None:
        return StatedRule(None, "the class of the target is not stated.")
    if not 0 < value < 1:
        return StatedRule(None, f"a target of {value:g} leaves no cut-off to choose; state one below 1.")
    return StatedRule(TargetValue(metric, value, positive))


def _optimised(fingerprint: ProblemFingerprint, beta: float) -> StatedRule:
    metric, positive = fingerprint.optimised_metric, _class(fingerprint)
    if metric is None:
        return StatedRule(None, "the metric to optimise is not stated.")
    if metric not in OPTIMISABLE_METRICS:
        return StatedRule(
            None, f"no head can decide for the best {metric}; it can for {_listed(OPTIMISABLE_METRICS)}."
        )
    if metric == "EC":
        costs = fingerprint.costs
        alike = equal_costs(fingerprint.number_of_classes or 2)
        return StatedRule(OptimisedMetric(metric), costs=alike if costs is None else costs)
    if metric != "F_beta":
        return StatedRule(OptimisedMetric(metric))
    if positive is None:
        return StatedRule(None, "the class of the F score is not stated.")
    return StatedRule(OptimisedMetric(metric, beta, positive))


def _class(fingerprint: ProblemFingerprint) -> int | None:
    """The class of interest; in a binary task class 1 unless another one is stated."""
    if fingerprint.target_class is not None:
        return fingerprint.target_class
    return 1 if fingerprint.number_of_classes in (None, 2) else None


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
