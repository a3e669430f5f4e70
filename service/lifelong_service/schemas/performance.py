"""Answers about the estimated and realised performance of a population."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.deploy.performance.labelled.agreement import Verdict
from lifelong_core.store.performance.figures import ClassMix

Metrics = Annotated[
    dict[str, list[float | None]],
    Field(
        description="Value, lower and upper bound by acronym (AC: accuracy, EC: expected cost); null: undefined."
    ),
]


class EstimatedAnswer(TypedDict):
    """The estimate without labels of one cycle, or the mean of several with the facts of the last one."""

    cycle: str
    made_at: str
    method: str
    samples: Annotated[int, Field(description="Predictions in its window.")]
    metrics: Metrics
    warnings: Annotated[list[str], Field(description="Limits that the intervals do not include.")]


class RealisedAnswer(TypedDict):
    """The performance of decisions as they were answered, on labelled predictions."""

    samples: Annotated[int, Field(description="Labelled predictions.")]
    metrics: Metrics


class AgreementAnswer(TypedDict):
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


class ComparedPeriodAnswer(TypedDict):
    """Estimated and realised performance of one head version in one period."""

    since: str
    until: Annotated[str, Field(description="Exclusive.")]
    head_version: int
    estimated: Annotated[
        EstimatedAnswer | None,
        Field(description="Null: no cycle of the period estimated the performance of this head."),
    ]
    realised: Annotated[
        RealisedAnswer | None, Field(description="Null: no prediction of the head in the period has a label.")
    ]
    agreement: Annotated[dict[str, AgreementAnswer], Field(description="By acronym.")]


class LabelCheckAnswer(TypedDict):
    """A test on labelled predictions."""

    p_value: float
    level: Annotated[float, Field(description="Below it the test rejects.")]
    rejected: bool
    samples: Annotated[int, Field(description="Labelled predictions.")]
    text: str


class HeadSwapAnswer(TypedDict):
    """Start of the service of a head."""

    at: str
    head_version: int


class MetricAtClassMixAnswer(TypedDict):
    """A recommended metric of labelled predictions, their classes weighed to the prevalences of one class mix."""

    label: Annotated[str, Field(description="Of the metric in the recommendation.")]
    mix: Annotated[
        ClassMix,
        Field(
            description="stated: by the recommendation; estimated: by the newest cycle, without labels; realised: of"
            " the labels."
        ),
    ]
    prevalences: Annotated[dict[str, float], Field(description="By class name.")]
    samples: Annotated[int, Field(description="Labelled predictions.")]
    metric: Annotated[
        list[float | None], Field(description="Value, lower and upper bound (95 %); null: undefined.")
    ]
    threshold: Annotated[float | None, Field(description="Acceptance threshold; null: there is none.")]
    accepted: Annotated[
        bool | None,
        Field(
            description="True: the value reaches the threshold; false: its whole interval does not; null: no threshold,"
            " or too few labels to tell."
        ),
    ]


class RealisedRuleMetricAnswer(TypedDict):
    """The metric of a head's decision rule on its labelled predictions."""

    head_version: int
    rule: Annotated[str, Field(description="As a phrase.")]
    metric: str
    class_name: Annotated[str, Field(description="Empty for a metric of all classes.")]
    samples: Annotated[int, Field(description="Labelled predictions of the head.")]
    value: Annotated[list[float | None], Field(description="Value, lower and upper bound; null: undefined.")]
    target: Annotated[
        float | None, Field(description="At least, for PPR at most; null: the metric is optimised.")
    ]


class PerformanceAnswer(TypedDict):
    """Estimated beside realised performance of a population."""

    model: str
    environment: str
    computed_at: str
    confidence: Annotated[float, Field(description="Nominal coverage of the intervals.")]
    statements: Annotated[list[str], Field(description="The newest comparison in words.")]
    warnings: list[str]
    heads: Annotated[
        list[ComparedPeriodAnswer],
        Field(
            description="By head version, in order of their last day; the estimate is the mean over the days with"
            " labels, weighted by their number."
        ),
    ]
    days: Annotated[
        list[ComparedPeriodAnswer], Field(description="By UTC day and head version, oldest first.")
    ]
    swaps: Annotated[list[HeadSwapAnswer], Field(description="Within these days, oldest first.")]
    calibration_drift: Annotated[
        LabelCheckAnswer | None,
        Field(description="Are the answered probabilities calibrated? Null: too few labels to test."),
    ]
    selection: Annotated[
        LabelCheckAnswer | None,
        Field(description="Do labelled and unlabelled logits differ? Null: too few labels to test."),
    ]
    class_mixes: Annotated[
        list[MetricAtClassMixAnswer],
        Field(
            description="Recommended metrics with stated prevalences on the labelled predictions, each also at the"
            " estimated and the realised prevalences."
        ),
    ]
    rule_metric: Annotated[
        RealisedRuleMetricAnswer | None,
        Field(
            description="Of the head of the newest labelled prediction; null: its decision rule searches no cut-off,"
            " or there are too few labels."
        ),
    ]
