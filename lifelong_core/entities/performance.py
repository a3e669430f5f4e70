"""Estimated beside realised performance of a population: figures of cycles and of labelled predictions, compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args
from uuid import UUID

from pydantic import Field, PlainSerializer, PlainValidator
from typing_extensions import TypedDict

from lifelong_core.decision_rules.rules import Target
from lifelong_core.deploy.performance.labelled.agreement import Agreement, Verdict
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.entity import Entity, Moment

Metric: TypeAlias = Annotated[
    EstimatedMetric,
    PlainSerializer(EstimatedMetric.to_numbers, return_type=list[float | None]),
    PlainValidator(EstimatedMetric.from_numbers, json_schema_input_type=list[float | None]),
]
"""Value, lower and upper bound; null where it is undefined."""

ClassMix: TypeAlias = Literal["stated", "estimated", "realised"]
"""`stated`: by the recommendation; `estimated`: by the newest cycle, without labels; `realised`: of the labels"""
CLASS_MIXES: tuple[ClassMix, ...] = get_args(ClassMix)

METRICS = ("AC", "EC")
"""Metrics that are compared: accuracy and expected cost."""


class AgreementDocument(TypedDict):
    """Whether an estimated and a realised metric agree."""

    schema_version: int
    verdict: Verdict
    difference: Annotated[float | None, Field(description="Realised minus estimated.")]
    statistic: Annotated[float | None, Field(description="The difference over its standard error.")]
    p_value: Annotated[
        float | None, Field(description="Two-sided; of days after a correction for their number (Holm).")
    ]
    level: Annotated[float, Field(description="The two disagree where the p-value is below.")]
    text: str


MetricAgreement: TypeAlias = Annotated[
    Agreement,
    PlainSerializer(Agreement.to_document, return_type=AgreementDocument),
    PlainValidator(Agreement.from_document, json_schema_input_type=AgreementDocument),
]


@dataclass(frozen=True)
class MetricAtClassMix(Entity):
    """A recommended metric of labelled predictions, their classes weighed to the prevalences of one class mix."""

    label: str
    """of the metric in the recommendation, such as EC"""
    mix: ClassMix
    prevalences: Mapping[str, float]
    """by class name; they sum to 1"""
    samples: int
    """labelled predictions"""
    metric: Metric
    """value and 95 % interval; at the estimated prevalences the interval includes their uncertainty"""
    threshold: float | None
    """the strictest acceptance threshold; None: there is none"""
    accepted: bool | None
    """True: the value reaches the threshold; False: its whole interval does not; None: there is no threshold, or there
    are too few labels to tell"""


@dataclass(frozen=True)
class RealisedRuleMetric(Entity):
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
    value: Metric
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


@dataclass(frozen=True)
class Estimated(Entity):
    """The estimate without labels of one cycle, or the mean of several with the facts of the last one."""

    cycle: UUID
    made_at: Moment
    method: str
    samples: int
    """predictions in its window"""
    metrics: Mapping[str, Metric]
    """by acronym"""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Realised(Entity):
    """The performance of decisions as they were answered, on labelled predictions."""

    samples: int
    """labelled predictions"""
    metrics: Mapping[str, Metric]
    """by acronym; weighted by labelling propensity where that is known"""


@dataclass(frozen=True)
class ComparedPeriod(Entity):
    """Estimated and realised performance of one head version in one period."""

    since: Moment
    until: Moment
    """exclusive"""
    head_version: int
    estimated: Estimated | None
    """null: no cycle of the period estimated the performance of this head"""
    realised: Realised | None
    """of the predictions of the head in the period; null: none of them has a label"""
    agreement: Mapping[str, MetricAgreement]
    """by acronym; empty where one side is missing"""

    @property
    def agrees(self) -> bool | None:
        """Whether all metrics agree; None: there are too few labels for each of them."""
        verdicts = {one.verdict for one in self.agreement.values()} - {"too_few_labels"}
        return verdicts == {"agree"} if verdicts else None


@dataclass(frozen=True)
class LabelCheck(Entity):
    """A test on labelled predictions: calibration of the answered probabilities, or selection of labelled samples."""

    p_value: float
    level: float
    rejected: bool
    samples: int
    """labelled predictions behind it"""
    text: str


@dataclass(frozen=True)
class HeadSwap(Entity):
    """Start of the service of a head."""

    at: Moment
    head_version: int


@dataclass(frozen=True, kw_only=True)
class PerformanceFields(Entity):
    """Estimated and realised performance of a population, with checks of its labelled predictions."""

    computed_at: Moment
    confidence: float
    """nominal coverage of the intervals"""
    heads: tuple[ComparedPeriod, ...]
    """by head version, over all of its days, in order of their last day: the mean of the estimates of the days with
    labels, weighted by their number of labels, beside the labelled predictions of the days with an estimate"""
    days: tuple[ComparedPeriod, ...]
    """by UTC day and head version, oldest first"""
    swaps: tuple[HeadSwap, ...]
    """within these days, oldest first"""
    calibration_drift: LabelCheck | None
    """whether the answered probabilities are calibrated on labelled predictions; null: too few labels"""
    selection: LabelCheck | None
    """whether the logits of labelled and unlabelled predictions of the newest window differ; null: too few of one"""
    class_mixes: tuple[MetricAtClassMix, ...] = ()
    """recommended metrics at stated prevalences, each also at the estimated and the realised ones; empty: none has
    stated prevalences, or there is no label"""
    rule_metric: RealisedRuleMetric | None = None
    """of the head of the newest labelled prediction; null: its rule has no searched cut-off, or too few labels"""


@dataclass(frozen=True, kw_only=True)
class PerformanceSummary(Entity):
    """The newest comparison of a population in words."""

    model: str
    """name@version"""
    environment: str
    statements: list[str]


@dataclass(frozen=True, kw_only=True)
class PerformanceAnswer(PerformanceFields):
    """Estimated beside realised performance of a population."""

    model: str
    environment: str
    statements: list[str]
    """the newest comparison in words"""
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class PopulationPerformance(PerformanceFields):
    """The comparison of a population as a monitor computed and stored it."""

    schema_version: Literal[1] = 1
    inputs: str
    """digest of the state of labels, cycles and settings that it was computed from"""
    left_out: tuple[str, ...] = ()
    """reasons why a part is missing, as sentences"""

    @property
    def newest(self) -> ComparedPeriod | None:
        """The head version with the newest estimate; None: there is no estimate."""
        estimated = [head for head in self.heads if head.estimated is not None]
        return estimated[-1] if estimated else None
