"""Cycles of the adaptation workflow, and their reports as documents."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeAlias
from uuid import UUID

from pydantic import ConfigDict, Field, computed_field, with_config
from typing_extensions import TypedDict

from lifelong_core.entities.affected import AffectedFiguresAnswer
from lifelong_core.entities.entity import Described, Entity, Moment
from lifelong_core.entities.heads import Head

Outcome: TypeAlias = Literal["keep", "swap", "refuse"]


class ReasonDocument(TypedDict):
    """Reason for the outcome of a cycle: a code and a sentence."""

    code: str
    text: str


class PerformanceWarningDocument(TypedDict):
    """A limit of an estimate that its intervals do not include."""

    code: str
    text: str


@with_config(ConfigDict(extra="allow"))
class PerformanceDocument(TypedDict):
    """Performance of a head in the window, estimated without labels."""

    method: str
    estimates: Annotated[
        dict[str, list[float | None]],
        Field(
            description="Value, lower and upper bound by metric; TPR[2]: of class 2; null: undefined or infinite."
        ),
    ]
    confusion_matrix: Annotated[
        list[list[float]], Field(description="Shares of true class (row) and decision (column).")
    ]
    confidence: float
    samples: int
    effective_samples: float
    validated_error: Annotated[
        float | None,
        Field(description="Mean absolute error of the accuracy in simulated windows; null: not simulated."),
    ]
    assumptions: list[str]
    warnings: list[PerformanceWarningDocument]
    head_digest: str


class CriterionDocument(TypedDict):
    """What the metric of a decision rule will be in the population, with its interval."""

    schema_version: int
    metric: str
    value: float
    low: float
    high: float
    confidence: float
    target: Annotated[float | None, Field(description="At least, for PPR at most; null: optimised.")]
    is_reachable: Annotated[bool, Field(description="Whether a cut-off reaches the target.")]
    cut_off: float
    cases: Annotated[int, Field(description="Independent calibration cases that limit the interval.")]
    needed_cases: Annotated[
        int | None, Field(description="Such cases for an interval of 0.05 to either side; null: enough.")
    ]


@with_config(ConfigDict(extra="allow"))
class ReportDocument(TypedDict):
    """The report of a cycle, `AdaptationReport.to_document()`, with estimates, tests, policy and digests."""

    schema_version: int
    outcome: Outcome
    reasons: list[ReasonDocument]
    assumed_prevalence: Annotated[list[float], Field(description="Of the head that served.")]
    samples: Annotated[int, Field(description="Size of the window.")]
    performance: Annotated[
        NotRequired[PerformanceDocument | None],
        Field(description="Of the head that served; null: not estimated."),
    ]
    candidate_performance: Annotated[
        NotRequired[PerformanceDocument | None],
        Field(description="The same of the refitted head that the cycle considered; null: none."),
    ]
    criterion: Annotated[
        NotRequired[CriterionDocument | None],
        Field(
            description="What the decision rule of the head that served reaches; null: the rule searches no cut-off, or"
            " nothing was estimated."
        ),
    ]
    candidate_criterion: Annotated[
        NotRequired[CriterionDocument | None],
        Field(description="The same of the refitted head that the cycle considered; null: none."),
    ]


@dataclass(frozen=True)
class Rejection(Entity):
    """A person declined the head that a cycle proposed."""

    reason: str
    rejected_at: Moment
    rejected_by: str


@dataclass(frozen=True, kw_only=True)
class CycleFields(Entity):
    """One pass of the workflow over one window."""

    id: UUID
    environment: str
    due_at: Moment
    started_at: Moment
    finished_at: Moment
    outcome: Outcome
    head_version: int
    """the head that served while the window was judged"""
    published_version: int | None
    """the head that the cycle published, automatically or after approval; null unless outcome is swap"""
    proposal: Head | None = None
    """the head that the cycle proposed to publish; null: it proposed none"""
    rejection: Rejection | None = None
    """rejection of the proposal; null: it was not rejected"""
    window_samples: int
    log_position: int
    report: Annotated[dict[str, Any], Described(ReportDocument)]
    """the AdaptationReport as a JSON document"""

    @computed_field
    @property
    def effect(self) -> str:
        """The outcome as an effect; of a swap that is not published: would swap, proposes a swap."""
        if self.outcome != "swap" or self.published_version is not None:
            return self.outcome
        return "would swap" if self.proposal is None else "proposes a swap"


@dataclass(frozen=True, kw_only=True)
class CycleAnswer(CycleFields):
    """A cycle: its report, the head that it published, and the one that it proposed."""

    model: str
    affected: AffectedFiguresAnswer | None
    """decisions before the swap that the new head would make otherwise; null: not counted"""


@dataclass(frozen=True, kw_only=True)
class Cycle(CycleFields):
    """A cycle of a model: a row of `cycles`, whose columns have the names of the fields, except for the rejection."""

    model_id: int
