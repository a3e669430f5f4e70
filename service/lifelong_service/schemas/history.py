"""Answers about environments, cycles, the audit log, tokens, workers and groups."""

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lifelong_core.entities.access import Scope
from lifelong_core.entities.heads import HeadParameters
from lifelong_core.store.cycles.records import Outcome
from lifelong_service.schemas.affected import AffectedFiguresAnswer


class EnvironmentAnswer(TypedDict):
    """An environment; `created_by` is null where it is not known."""

    name: str
    created_at: str
    created_by: str | None
    disabled_at: Annotated[
        str | None, Field(description="From then on predictions there get 403; null: in use.")
    ]


class EnvironmentList(TypedDict):
    """All environments: their names, sorted, and the same with details."""

    environments: list[str]
    details: list[EnvironmentAnswer]


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


class AuditAnswer(TypedDict):
    """An entry of the audit log: a change, or refused requests, with actor, time and address."""

    id: int
    at: str
    actor: str
    action: str
    subject: str
    details: Annotated[
        dict[str, Any], Field(description="What the action changed; the keys depend on the action.")
    ]
    source: Annotated[
        str | None,
        Field(description="Address of the client; local: command line or monitor."),
    ]
    previous_digest: Annotated[str, Field(description="Of the entry before; 64 zeros before the first one.")]
    digest: Annotated[str, Field(description="SHA-256 of the entry with the digest of the one before it.")]


class AuditList(TypedDict):
    """Changes and refused requests, newest first."""

    audit: list[AuditAnswer]


class TokenAnswer(TypedDict):
    """A token without its secret."""

    name: str
    scopes: list[Scope]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    environments: Annotated[
        list[str] | None, Field(description="The only ones in which it may predict and label; null: all.")
    ]
    rotated_at: Annotated[
        str | None, Field(description="When it got its present secret; null: never rotated.")
    ]
    previous_expires_at: Annotated[
        str | None, Field(description="Until when the secret before that is valid; null: there is none.")
    ]
    last_used_at: Annotated[str | None, Field(description="To a minute; null: not known to have been used.")]


class TokenWithSecret(TokenAnswer):
    """A new token; its secret is shown only once."""

    secret: str


class TokenList(TypedDict):
    """All tokens."""

    tokens: list[TokenAnswer]


class LoadAnswer(TypedDict):
    """The execution provider of a model in a worker, or the reason why it cannot be loaded."""

    provider: str | None
    failure: str | None


class WorkerAnswer(TypedDict):
    """A serving process; `heads`: model -> environment -> version, where `*` is the default head."""

    worker: str
    host: str
    process: int
    started_at: str
    seen_at: str
    lost: bool
    revision: int
    heads: dict[str, dict[str, int]]
    models: dict[str, LoadAnswer]


class WorkerList(TypedDict):
    """The serving processes of all machines; `revision` is the present revision of the registry."""

    revision: int
    workers: list[WorkerAnswer]


class TickAnswer(TypedDict):
    """One pass of a monitor over all populations; `finished_at` is null while it runs."""

    due_at: str
    started_at: str
    finished_at: str | None
    problem: str | None


class VisitAnswer(TypedDict):
    """The latest visit to a population; `watched_at`: latest cycle, or latest visit without new predictions."""

    model: str
    environment: str
    visited_at: str
    outcome: str
    reason: str
    watched_at: str | None


class MonitorAnswer(TypedDict):
    """A monitor, its latest tick, and its latest visit to each population."""

    monitor: str
    host: str
    process: int
    started_at: str
    seen_at: str
    lost: bool
    interval_seconds: float
    mode: str
    environment_modes: dict[str, str]
    settings: Annotated[
        dict[str, Any] | None,
        Field(description="What decides what the monitor does, by name; null: unknown."),
    ]
    tick: TickAnswer | None
    populations: list[VisitAnswer]


class MonitorList(TypedDict):
    """The monitors of all machines, newest heartbeat first."""

    monitors: list[MonitorAnswer]


class ErasedAnswer(TypedDict):
    """Numbers of erased rows."""

    predictions: int
    labels: int
    requests: int
    label_revisions: Annotated[int, Field(description="Entries of the history of these labels.")]
