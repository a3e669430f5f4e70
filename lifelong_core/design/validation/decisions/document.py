"""The decisions that a validation judges, as a part of its result."""

from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, Number
from lifelong_core.values.documents import Frozen

DecisionSource: TypeAlias = Literal["given", "rule", "likeliest"]


class ChosenCutOff(Frozen):
    """The cut-off of a rule with a target or an optimised metric."""

    class_index: int
    threshold: Number = Field(
        description="Probability of the class from which on it is decided; None: it is never decided."
    )
    metric: str = Field(description="TPR, TNR, PPV, NPV or PPR, or the optimised metric.")
    chosen_on: Literal["other_data", "half_of_the_data"] = Field(
        description="`half_of_the_data`: a random half of the cases; the decisions on the other half are judged."
    )
    samples: int = Field(description="Number of samples on which it was chosen.")
    value: Number = Field(description="Value of the metric on these samples.")
    is_reachable: bool = Field(
        description="Whether a cut-off reaches the target on these samples; else that which comes closest is used."
    )
    prevalence: tuple[float, ...] | None = Field(
        description="Stated class shares of use for which it was chosen; None: those of the samples."
    )


class TargetOutcome(Frozen):
    """Whether the judged decisions reach the target of the rule."""

    metric: str = Field(description="TPR, TNR, PPV, NPV or PPR.")
    class_index: int
    target: float = Field(description="At most for PPR, else at least.")
    reached: EstimatedValue = Field(description="Value on the judged samples.")
    prevalence: tuple[float, ...] | None = Field(
        description="Stated class shares of use at which the value is computed; None: those of the samples."
    )
    verdict: Literal["reached", "missed", "open"] = Field(
        description="By the interval: all of it on the right side of the target, on the wrong side, or neither."
    )


class JudgedDecisions(Frozen):
    """Which decisions the metrics judge."""

    source: DecisionSource = Field(
        description="`given`: by the user; `rule`: of the rule that was answered; `likeliest`: the likeliest class."
    )
    rule: str | None = Field(description="The rule that was answered (FP2.6); None: none was.")
    reason: str | None = Field(default=None, description="Why decisions are not those of the rule.")
    samples: int = Field(description="Number of judged samples.")
    changed: int | None = Field(
        description="Judged samples for which the likeliest class is another decision; None: without probabilities."
    )
    cut_off: ChosenCutOff | None = Field(default=None, description="None: none was chosen.")
    target: TargetOutcome | None = Field(default=None, description="None: the rule has no target.")
    by_likeliest: tuple[MetricValue, ...] = Field(
        default=(),
        description="Values of the metrics that judge decisions, if the likeliest class were decided; empty where no"
        " decision differs.",
    )
