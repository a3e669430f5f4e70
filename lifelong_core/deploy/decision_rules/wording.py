"""A decision rule as a phrase."""

from collections.abc import Sequence

from lifelong_core.deploy.decision_rules.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.decision_rules.rules import (
    Argmax,
    BayesRule,
    CutOffs,
    DecisionRule,
    TargetMetric,
    TargetValue,
    objective_of,
)

METRIC_NAMES: dict[TargetMetric, str] = {
    "TPR": "sensitivity",
    "TNR": "specificity",
    "PPV": "precision",
    "NPV": "negative predictive value",
    "PPR": "share of positive decisions",
}


def describe_rule(rule: DecisionRule, class_names: Sequence[str]) -> str:
    """The rule as a phrase.

    Args:
        rule: a rule that fits the classes.
        class_names: C names.

    Examples:
        >>> describe_rule(TargetValue("TPR", 0.9), ("benign", "malignant"))
        'sensitivity of malignant at least 0.9, then the best specificity'
        >>> describe_rule(CutOffs(0.1), ("benign", "malignant"))
        'malignant from a probability of 0.1 on'
    """
    if isinstance(rule, BayesRule):
        return "least expected cost"
    if isinstance(rule, Argmax):
        return "highest probability"
    if isinstance(rule, CutOffs):
        return _cut_offs(rule, class_names)
    name = class_names[rule.positive_class]
    if isinstance(rule, TargetValue):
        how = "at most" if rule.metric == "PPR" else "at least"
        best = METRIC_NAMES[objective_of(rule)]
        return f"{METRIC_NAMES[rule.metric]} of {name} {how} {rule.value:g}, then the best {best}"
    if rule.metric == "F_beta":
        return f"best F{rule.beta:g} score of {name}"
    names = {"BA": "balanced accuracy", "AC": "accuracy", "EC": "expected cost", "MCC": "MCC"}
    return f"best {names[rule.metric]}"


def describe_criterion(found: ExpectedCriterion) -> str:
    """What a rule will reach, as a sentence.

    Examples:
        >>> describe_criterion(ExpectedCriterion("TPR", 0.9, 0.86, 0.93, 0.95, 0.9, True, 0.31, 200, None))
        'Sensitivity 0.900 (0.860 to 0.930) expected here, target at least 0.9; cut-off 0.310.'
        >>> describe_criterion(ExpectedCriterion("PPV", 0.5, 0.4, 0.6, 0.95, 0.8, False, 0.31, 200, None))
        'Precision 0.500 (0.400 to 0.600) expected here, target at least 0.8: missed, and no cut-off reaches it; cut-off 0.310.'
    """  # noqa: E501 - one printed line
    names: dict[str, str] = {**METRIC_NAMES, "F_beta": "F score"}
    name = names.get(found.metric, found.metric)
    target = ""
    if found.target is not None:
        missed = ": missed" if found.is_missed else ""
        unreachable = "" if found.is_reachable else f"{', and' if missed else ':'} no cut-off reaches it"
        how = "at most" if found.metric == "PPR" else "at least"
        target = f", target {how} {found.target:g}{missed}{unreachable}"
    reached = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    return f"{name[0].upper()}{name[1:]} {reached} expected here{target}; cut-off {found.cut_off:.3f}."


def _cut_offs(rule: CutOffs, class_names: Sequence[str]) -> str:
    if len(rule.thresholds) == 1:
        return f"{class_names[1]} from a probability of {rule.thresholds[0]:g} on"
    shares = ", ".join(f"{name} {one:g}" for name, one in zip(class_names, rule.thresholds, strict=True))
    return f"largest probability over cut-off ({shares})"
