"""Answers about the estimated and realised performance of a population."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

Metrics = Annotated[
    dict[str, list[float | None]],
    Field(
        description="Value, lower and upper bound by acronym (AC: accuracy, EC: expected cost); null: undefined."
    ),
]


class EstimatedAnswer(TypedDict):
    """The estimate without labels of one cycle."""

    cycle: str
    made_at: str
    method: str
    samples: Annotated[int, Field(description="Predictions in the window of the cycle.")]
    metrics: Metrics
    warnings: Annotated[list[str], Field(description="Limits that the intervals do not include.")]


class RealisedAnswer(TypedDict):
    """The performance of decisions as they were answered, on labelled predictions."""

    samples: Annotated[int, Field(description="Labelled predictions.")]
    metrics: Metrics


class AgreementAnswer(TypedDict):
    """Whether an estimated and a realised metric agree."""

    agrees: bool
    p_value: float
    text: str


class ComparedPeriodAnswer(TypedDict):
    """Estimated and realised performance of one head version in one period."""

    since: str
    until: Annotated[str, Field(description="Exclusive.")]
    head_version: int
    estimated: Annotated[
        EstimatedAnswer | None,
        Field(description="Of the last cycle of the period that judged the head; null: there is none."),
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


class PerformanceAnswer(TypedDict):
    """Estimated beside realised performance of a population."""

    model: str
    environment: str
    computed_at: str
    confidence: Annotated[float, Field(description="Nominal coverage of the intervals.")]
    statements: Annotated[list[str], Field(description="The newest comparison in words.")]
    warnings: list[str]
    newest: Annotated[
        ComparedPeriodAnswer | None,
        Field(description="The newest estimate beside the labelled predictions of its head and window."),
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
