"""Answers about labelling plans."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict


class PlanWindow(TypedDict):
    """The predictions among which a plan chose."""

    samples: int
    since: Annotated[str, Field(description="Time of the oldest prediction.")]
    until: Annotated[str, Field(description="Time of the newest prediction.")]


class PlanProgress(TypedDict):
    """How many of the chosen predictions have a label."""

    chosen: Annotated[int, Field(description="Still in the log: retention and erasure delete some.")]
    labelled: int


class ExpectedWidths(TypedDict):
    """Expected widths of the interval on expected cost; null: it cannot be computed."""

    confidence: Annotated[float, Field(description="Nominal coverage of the intervals.")]
    planned: Annotated[float | None, Field(description="With the labels of the plan.")]
    random: Annotated[
        float | None, Field(description="With as many labels of predictions drawn at random, alone.")
    ]
    label_free: Annotated[
        float | None, Field(description="Without labels; it holds only where its assumptions do.")
    ]


class EstimatedCost(TypedDict):
    """A metric with its interval; null: undefined."""

    value: float | None
    low: float | None
    high: float | None


class PlanEstimate(TypedDict):
    """Performance of the plan's head in its window, by three methods; null: it cannot be computed."""

    method: Annotated[
        Literal["difference", "combined"],
        Field(
            description="Of `labelled`; combined: with the label-free estimate, whose assumption was not rejected."
        ),
    ]
    labels: Annotated[int, Field(description="Labels of chosen predictions that were used.")]
    confidence: float
    labelled: Annotated[
        dict[str, EstimatedCost] | None,
        Field(description="By metric: label-free estimate, corrected by the labels of the plan."),
    ]
    labels_alone: Annotated[dict[str, EstimatedCost] | None, Field(description="From the labels alone.")]
    label_free: Annotated[
        dict[str, EstimatedCost] | None,
        Field(description="Without labels; it holds only where its assumptions do."),
    ]
    notes: Annotated[list[str], Field(description="Limits of the estimates, as sentences.")]


class PlanLine(TypedDict):
    """A labelling plan without its predictions."""

    id: str
    task: str
    model: Annotated[str, Field(description="name@version")]
    environment: str
    head_version: Annotated[int, Field(description="Head whose decisions are judged.")]
    window: PlanWindow
    size: Annotated[int, Field(description="Number of predictions that were chosen.")]
    labelled_before: Annotated[
        int, Field(description="Predictions of the window that had a label before; they are not chosen.")
    ]
    progress: PlanProgress
    expected_widths: ExpectedWidths
    created_at: str
    created_by: str
    estimate: Annotated[PlanEstimate | None, Field(description="Null: not computed yet.")]
    estimated_at: str | None


class PlannedPrediction(TypedDict):
    """A prediction to label."""

    prediction_id: str
    label: Annotated[int | None, Field(description="Class index; null: it has no label yet.")]
    propensity: Annotated[float, Field(description="Probability with which the plan chose it.")]
    decision: Annotated[int, Field(description="Of the plan's head.")]
    expected_cost: Annotated[float, Field(description="Of that decision.")]
    group: Annotated[int | None, Field(description="Number that only this plan uses.")]
    logged_at: str


class PlanAnswer(PlanLine):
    """A labelling plan with the predictions to label, in the order in which to label them."""

    predictions: list[PlannedPrediction]


class PlanList(TypedDict):
    """Plans, newest first."""

    plans: list[PlanLine]
