"""The decision rule that the answers of an interview ask for, as a validation executes it (thesis 4.1.3, FP2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.recommendation.parameters import Matrix, equal_costs

RuleKind: TypeAlias = Literal[
    "argmax", "least_cost", "risk_threshold", "target_value", "optimised_metric", "optimal_costs"
]
"""`optimal_costs`: the decisions that are best for a metric of more than two classes follow from the probabilities"""

METRIC_NAMES = {
    "TPR": "sensitivity",
    "TNR": "specificity",
    "PPV": "precision",
    "NPV": "negative predictive value",
    "PPR": "share of positive decisions",
    "BA": "balanced accuracy",
    "AC": "accuracy",
    "EC": "expected cost",
    "MCC": "MCC",
}
_BETAS = {"missed_case": 2.0, "false_alarm": 0.5}
"""beta of the F score where one error is worse (thesis table 4.10; guide DG3.5); 1 otherwise"""


@dataclass(frozen=True)
class AnsweredRule:
    """A decision rule with its parameters."""

    kind: RuleKind
    positive_class: int = 1
    """of a risk threshold, a target or an optimum"""
    metric: str | None = None
    """of a target or an optimum"""
    value: float | None = None
    """target, or risk threshold"""
    beta: float = 1.0
    """of F_beta"""
    costs: Matrix | None = None
    """shape (C, D), of the least cost"""

    @property
    def is_searched(self) -> bool:
        """Whether its cut-off is chosen on labelled cases."""
        return self.kind in ("target_value", "optimised_metric")

    @property
    def needs_other_cases(self) -> bool:
        """Whether it needs labelled cases other than those that are judged."""
        return self.is_searched or (self.kind == "optimal_costs" and self.metric == "BA")

    def describe(self, class_names: Sequence[str]) -> str:
        """The rule as a phrase.

        Examples:
            >>> rule = AnsweredRule("target_value", metric="TPR", value=0.9)
            >>> rule.describe(("benign", "malignant"))
            'sensitivity of malignant at least 0.9, then the best specificity'
        """
        name = class_names[self.positive_class]
        match self.kind:
            case "argmax":
                return "highest probability"
            case "least_cost":
                return "least expected cost"
            case "risk_threshold":
                return f"{name} from a probability of {self.value:g} on"
            case "target_value":
                how = "at most" if self.metric == "PPR" else "at least"
                best = METRIC_NAMES[objective_of(self.metric or "")]
                return (
                    f"{METRIC_NAMES[self.metric or '']} of {name} {how} {self.value:g}, then the best {best}"
                )
            case "optimised_metric" | "optimal_costs":
                if self.metric == "F_beta":
                    return f"best F{self.beta:g} score of {name}"
                return f"best {METRIC_NAMES[self.metric or '']}"


@dataclass(frozen=True)
class StatedRule:
    """The rule that answers ask for."""

    rule: AnsweredRule | None
    """None: the answers state none, or one that cannot be executed"""
    reason: str | None = None
    """why the stated rule cannot be executed, in a sentence"""


def objective_of(target_metric: str) -> Literal["TPR", "TNR"]:
    """The metric that is best among the cut-offs that reach a target.

    Examples:
        >>> objective_of("TPR"), objective_of("PPV")
        ('TNR', 'TPR')
    """
    return "TNR" if target_metric in ("TPR", "NPV") else "TPR"


def answered_rule(recommendation: Recommendation) -> StatedRule:
    """The rule that the answers ask for; an unused answer counts as not given, but for the class of interest.

    Examples:
        >>> from lifelong_core.design import ProblemFingerprint, recommend
        >>> answers = {
        ...     "number_of_classes": 2, "class_scores_available": True, "unequal_severity": False,
        ...     "unequal_interest": False, "prevalences_representative": True, "class_imbalance": False,
        ...     "dependent_cases": False, "invalid_outputs": False, "imbalance_compensation": False,
        ...     "predictive_values": "unimportant", "calibration_assessment": False,
        ... }
        >>> target = {"target_class": 1, "target_metric": "TPR", "target_value": 0.9}
        >>> found = recommend(ProblemFingerprint(decision_rule="target_value", **target, **answers))
        >>> answered_rule(found).rule.describe(("benign", "malignant"))
        'sensitivity of malignant at least 0.9, then the best specificity'
    """
    fingerprint = recommendation.fingerprint
    for item in {one.item for one in recommendation.unused} - {"target_class"}:
        if item in type(fingerprint).model_fields:
            fingerprint = fingerprint.without(item)
    betas = [one.parameters["beta"] for one in recommendation.metrics if "beta" in one.parameters]
    beta = betas[0] if betas and isinstance(betas[0], float | int) else None
    match fingerprint.decision_rule:
        case None | "none":
            return StatedRule(None)
        case "argmax":
            return StatedRule(AnsweredRule("argmax"))
        case "cost_benefit":
            return _cost_benefit(fingerprint)
        case "target_value":
            return _target_value(fingerprint)
        case "optimization":
            return _optimised(fingerprint, beta or _BETAS.get(fingerprint.worse_error or "", 1.0))


def _cost_benefit(fingerprint: ProblemFingerprint) -> StatedRule:
    threshold, classes = fingerprint.risk_threshold, fingerprint.number_of_classes or 2
    if threshold is not None and fingerprint.threshold_perspective != "explicit_costs":
        if classes > 2:
            return StatedRule(None, "a risk threshold decides between two classes only.")
        positive = 0 if fingerprint.target_class == 0 else 1
        return StatedRule(AnsweredRule("risk_threshold", positive_class=positive, value=threshold))
    costs = fingerprint.costs
    if costs is None and fingerprint.unequal_severity is False:
        costs = equal_costs(classes)
    if costs is None:
        return StatedRule(None, "the costs of errors are not stated.")
    return StatedRule(AnsweredRule("least_cost", costs=costs))


def _target_value(fingerprint: ProblemFingerprint) -> StatedRule:
    metric, value, positive = fingerprint.target_metric, fingerprint.target_value, _class(fingerprint)
    if metric is None or value is None:
        return StatedRule(None, "the target metric and its value are not stated.")
    if positive is None:
        return StatedRule(None, "the class of the target is not stated.")
    return StatedRule(AnsweredRule("target_value", positive_class=positive, metric=metric, value=value))


def _optimised(fingerprint: ProblemFingerprint, beta: float) -> StatedRule:
    metric, positive = fingerprint.optimised_metric, _class(fingerprint)
    classes = fingerprint.number_of_classes or 2
    if metric is None:
        return StatedRule(None, "the metric to optimise is not stated.")
    if metric == "LR+":
        return StatedRule(None, "the best LR+ is that of deciding for the class almost never.")
    if metric == "MCC" and classes > 2:
        return StatedRule(None, "the best decisions for MCC are known for two classes only.")
    if metric == "F_beta" and positive is None:
        return StatedRule(None, "the class of the F score is not stated.")
    costs = fingerprint.costs if metric == "EC" else None
    if costs is None:
        costs = equal_costs(classes)
    if metric == "F_beta" or (classes == 2 and len(costs[0]) == 2):
        return StatedRule(
            AnsweredRule(
                "optimised_metric", positive_class=positive or 0, metric=metric, beta=beta, costs=costs
            )
        )
    return StatedRule(AnsweredRule("optimal_costs", metric=metric, costs=costs))


def _class(fingerprint: ProblemFingerprint) -> int | None:
    """The class of interest; in a binary task class 1 unless another one is stated."""
    if fingerprint.target_class is not None:
        return fingerprint.target_class
    return 1 if fingerprint.number_of_classes in (None, 2) else None
