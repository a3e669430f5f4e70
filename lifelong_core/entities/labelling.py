"""Labelling plans: which recent predictions to label next, and what their labels tell; the history of a label."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.values.documents import FrozenDocument

LARGEST_SIZE = 10_000
"""Largest number of labels of a plan."""
LARGEST_WINDOW = 20_000
"""Largest number of predictions in the window of a plan; they are read row by row."""


class LabellingPayload(FrozenDocument):
    """Payload of the job that makes a plan: a population, the number of labels, and the window."""

    size: Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
    """number of labels wanted"""
    window_samples: Annotated[int, Field(ge=1, le=LARGEST_WINDOW)] | None = None
    """largest number of predictions in the window, the newest ones; None: the setting, at most LARGEST_WINDOW"""
    window_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """largest age of a prediction in the window; None: the setting"""
    model: str
    """reference, name@version"""
    environment: str


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


@dataclass(frozen=True)
class PlanProgress(Entity):
    """How many of the chosen predictions have a label."""

    chosen: int
    """Still in the log: retention and erasure delete some."""
    labelled: int


@dataclass(frozen=True, kw_only=True)
class PlanWindow(Entity):
    """The predictions among which a plan chose."""

    samples: int
    since: Moment
    """Time of the oldest prediction."""
    until: Moment
    """Time of the newest prediction."""


@dataclass(frozen=True, kw_only=True)
class PlanLine(Entity):
    """A labelling plan without its predictions."""

    id: UUID
    task: str
    model: str
    """name@version"""
    environment: str
    head_version: int
    """Head whose decisions are judged."""
    window: PlanWindow
    size: int
    """Number of predictions that were chosen."""
    labelled_before: int
    """Predictions of the window that had a label before; they are not chosen."""
    progress: PlanProgress
    expected_widths: ExpectedWidths
    created_at: Moment
    created_by: str
    estimate: PlanEstimate | None
    """Null: not computed yet."""
    estimated_at: Moment | None


@dataclass(frozen=True, kw_only=True)
class PlannedPrediction(Entity):
    """A prediction to label."""

    prediction_id: UUID
    label: int | None
    """Class index; null: it has no label yet."""
    propensity: float
    """Probability with which the plan chose it."""
    decision: int
    """Of the plan's head."""
    expected_cost: float
    """Of that decision."""
    group: int | None
    """Number that only this plan uses."""
    logged_at: str


@dataclass(frozen=True, kw_only=True)
class PlanAnswer(PlanLine):
    """A labelling plan with the predictions to label, in the order in which to label them."""

    predictions: list[PlannedPrediction]


@dataclass(frozen=True)
class NewPlan:
    """A labelling plan as it is made, without its samples."""

    id: UUID
    """that of the job that makes it"""
    model_id: int
    environment: str
    head_version: int
    """of the head whose decisions are judged"""
    since: datetime
    """time of the oldest prediction of the window"""
    until: datetime
    """time of the newest one"""
    window_limit: int
    """largest number of predictions that were read, newest first; unusable ones count"""
    log_position: int
    """predictions committed at or after this commit order are not in the window"""
    window_samples: int
    """N, usable predictions in the window"""
    expected_widths: Mapping[str, Any]
    """see `ExpectedWidths`"""


@dataclass(frozen=True)
class LabellingPlan(NewPlan):
    """A row of `labelling_plans`."""

    size: int
    """number of predictions that were chosen"""
    labelled_before: int
    """number of predictions of the window that had a label before"""
    created_at: datetime
    created_by: str
    estimate: Mapping[str, Any] | None = None
    """newest estimate with the labels that have arrived, see `PlanEstimate`; None: not computed yet"""
    estimated_at: datetime | None = None


@dataclass(frozen=True)
class LabellingSample:
    """A prediction of a plan: a row of `labelling_samples`."""

    prediction_id: UUID
    position: int | None
    """place in the random order in which the chosen ones are labelled, from 0; None: it had a label before"""
    propensity: float
    """probability in (0, 1] with which it was chosen; 1 where it had a label before"""
    decision: int
    """of the plan's head"""
    expected_cost: float
    """of that decision, under the estimated probabilities of the classes"""


@dataclass(frozen=True)
class SampledPrediction(LabellingSample):
    """A prediction of a plan, with what is known of it now."""

    group_hash: bytes | None
    label: int | None
    """None: it has no label yet"""
    labelled_at: datetime | None
    """when its label was recorded or corrected"""


@dataclass(frozen=True, kw_only=True)
class LabelRevisionAnswer(Entity):
    """One change of a label: from what to what, by whom, when."""

    revision: int
    """counts up from 1"""
    previous_label: int | None
    """class index; null: there was no label"""
    previous_name: str | None
    """name of that class"""
    label: int
    name: str
    propensity: float | None
    """of the label since this revision; null: unknown"""
    source: str
    actor: str
    """name of the token"""
    recorded_at: Moment


@dataclass(frozen=True, kw_only=True)
class LabelHistory(Entity):
    """A prediction and every change of its label, oldest first; an empty list: it has no label."""

    prediction_id: UUID
    model: str
    environment: str
    revisions: list[LabelRevisionAnswer]
