"""Figures of labelled predictions: recommended metrics at each class mix, and the metric of a decision rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from lifelong_core.decision_rules.rules import Target
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric

ClassMix: TypeAlias = Literal["stated", "estimated", "realised"]
"""`stated`: by the recommendation; `estimated`: by the newest cycle, without labels; `realised`: of the labels"""
CLASS_MIXES: tuple[ClassMix, ...] = get_args(ClassMix)


@dataclass(frozen=True)
class MetricAtClassMix:
    """A recommended metric of labelled predictions, their classes weighed to the prevalences of one class mix."""

    label: str
    """of the metric in the recommendation, such as EC"""
    mix: ClassMix
    prevalences: Mapping[str, float]
    """by class name; they sum to 1"""
    samples: int
    """labelled predictions"""
    metric: EstimatedMetric
    """value and 95 % interval; at the estimated prevalences the interval includes their uncertainty"""
    threshold: float | None
    """the strictest acceptance threshold; None: there is none"""
    accepted: bool | None
    """True: the value reaches the threshold; False: its whole interval does not; None: there is no threshold, or there
    are too few labels to tell"""

    def to_document(self) -> dict[str, Any]:
        """The figure as JSON values; undefined numbers are null."""
        return {**vars(self), "prevalences": dict(self.prevalences), "metric": self.metric.to_numbers()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(
            label=document["label"],
            mix=document["mix"],
            prevalences=document["prevalences"],
            samples=document["samples"],
            metric=EstimatedMetric.from_numbers(document["metric"]),
            threshold=document["threshold"],
            accepted=document["accepted"],
        )


@dataclass(frozen=True)
class RealisedRuleMetric:
    """The metric that a head's decision rule keeps or optimises, of its decisions with a known true class."""

    head_version: int
    rule: str
    """as a phrase"""
    metric: str
    """acronym"""
    class_name: str
    """of the metric; empty for a metric of all classes"""
    samples: int
    """labelled predictions of the head"""
    value: EstimatedMetric
    """with its interval"""
    target: float | None
    """value that the rule demands; None: the metric is optimised"""

    @property
    def requirement(self) -> Target | None:
        """What the rule demands of the metric; None: it is optimised."""
        return None if self.target is None else Target(self.metric, self.target)

    @property
    def is_missed(self) -> bool:
        """Whether the whole interval is on the wrong side of the target."""
        return self.requirement is not None and self.requirement.is_missed(self.value.low, self.value.high)

    @property
    def is_reached(self) -> bool:
        """Whether the value is on the right side of the target; True without a target."""
        return self.requirement is None or bool(self.requirement.reaches(self.value.value))

    def to_document(self) -> dict[str, Any]:
        """The figure as JSON values; undefined numbers are null."""
        return {**vars(self), "value": self.value.to_numbers()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(
            head_version=document["head_version"],
            rule=document["rule"],
            metric=document["metric"],
            class_name=document["class_name"],
            samples=document["samples"],
            value=EstimatedMetric.from_numbers(document["value"]),
            target=document["target"],
        )
