"""A decision rule as a phrase."""

from collections.abc import Sequence

from lifelong_core.decision_rules.rules import Argmax, BayesRule, CutOffs, DecisionRule, TargetValue

METRIC_NAMES = {
    "TPR": "sensitivity",
    "TNR": "specificity",
    "PPV": "precision",
    "NPV": "negative predictive value",
    "PPR": "share of positive decisions",
    "F_beta": "F score",
    "BA": "balanced accuracy",
    "AC": "accuracy",
    "EC": "expected cost",
    "MCC": "MCC",
}
_ROUNDING = 1e-9


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
        best = METRIC_NAMES[rule.objective]
        return f"{METRIC_NAMES[rule.metric]} of {name} {rule.target}, then the best {best}"
    if rule.metric == "F_beta":
        return f"best F{rule.beta:g} score of {name}"
    return f"best {METRIC_NAMES[rule.metric]}"


def _cut_offs(rule: CutOffs, class_names: Sequence[str]) -> str:
    if len(rule.thresholds) == 1:
        return f"{class_names[1]} from a probability of {rule.thresholds[0]:g} on"
    if len(rule.thresholds) == 2 and abs(sum(rule.thresholds) - 1) < _ROUNDING:
        return f"{class_names[0]} from a probability of {rule.thresholds[0]:g} on"
    shares = ", ".join(
        f"{name} {cut_off:g}" for name, cut_off in zip(class_names, rule.thresholds, strict=True)
    )
    return f"largest probability over cut-off ({shares})"
