"""Answers about cycles."""

from typing import Annotated, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lifelong_core.entities.heads import HeadParameters
from lifelong_core.store.cycles.records import Outcome
from lifelong_service.schemas.affected import AffectedFiguresAnswer


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


class RejectionAnswer(TypedDict):
    """Actor, time and reason of a rejected proposal."""

    reason: str
    rejected_at: str
    rejected_by: str


class CycleAnswer(TypedDict):
    """A cycle: its report, the head that it published, and the one that it proposed."""

    id: str
    model: str
    environment: str
    due_at: str
    started_at: str
    finished_at: str
    outcome: Outcome
    effect: Annotated[
        str, Field(description="As outcome; of a swap that is not published: would swap, proposes a swap.")
    ]
    head_version: int
    published_version: int | None
    proposal: HeadParameters | None
    rejection: RejectionAnswer | None
    window_samples: int
    log_position: int
    affected: Annotated[
        AffectedFiguresAnswer | None,
        Field(
            description="Decisions before the swap that the new head would make otherwise; null: not counted."
        ),
    ]
    report: ReportDocument


class CycleList(TypedDict):
    """Cycles, newest first."""

    cycles: list[CycleAnswer]
