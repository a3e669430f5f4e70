"""A recommended metric of labelled predictions at the stated, the estimated and the realised class mix."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

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
