"""Answers about interviews, recommendations and promotion reports."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.entity import schema_of
from lifelong_core.entities.heads import DecisionRuleDocument
from lifelong_core.store.design.effects import Difference
from lifelong_core.store.design.records import KeptCause

_DESIGN = "lifelong_core.design"
Value: TypeAlias = Annotated[Any, Field(description="A JSON value of the form that the question asks for.")]
ProgressDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.progress:Progress")
]
ContradictionDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.contradictions:Contradiction")
]
GuideDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:GuideOutcome")
]
PathDocument: TypeAlias = Annotated[dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:PathEntry")]
WarningDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:RelationWarning")
]
AdviceDocument: TypeAlias = Annotated[dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:Advice")]
UnusedDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:UnusedAnswer")
]
RecommendationDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:Recommendation")
]
ThresholdDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.validation.acceptance:AcceptanceThreshold")
]
ValidationDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.validation.result:ValidationResult")
]

PromotionReportDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.promotion.document:PromotionReport")
]


class InterviewSummary(TypedDict):
    """An interview without its questions and answers; `stage` is `damaged` where it cannot be read."""

    id: str
    task: str | None
    revision: int
    stage: str
    class_names: list[str] | None
    created_at: str
    created_by: str
    updated_at: str
    updated_by: str


class InterviewList(TypedDict):
    """Interviews, newest first."""

    interviews: list[InterviewSummary]


class PossibleAnswer(TypedDict):
    """One possible answer."""

    value: Value
    label: str
    explanation: str


class QuestionAnswer(TypedDict):
    """A question with its explanation and possible answers.

    `answers` is empty for questions about a number, a text or several values.
    """

    id: str
    field: str
    name: str
    kind: str
    question: str
    example: str
    pitfall: str
    asked_when: str
    source: str
    answers: list[PossibleAnswer]


class SaidAnswer(TypedDict):
    """One answer or choice, as a value and in words."""

    item: str
    name: str
    value: Value
    text: str


class InterviewAnswer(InterviewSummary):
    """An interview: its state, the next question, and all answers."""

    progress: ProgressDocument
    question: QuestionAnswer | None
    contradictions: list[ContradictionDocument]
    open_choices: list[GuideDocument]
    answers: Annotated[dict[str, Any], Field(description="Field -> answer.")]
    choices: Annotated[dict[str, list[str]], Field(description="Guide -> options that were taken.")]
    history: list[SaidAnswer]


class WhyAnswer(TypedDict):
    """The answers and guides that led to a metric."""

    subprocess: str
    title: str
    row: str
    path: list[PathDocument]
    confidence: str
    source: str
    guides: list[str]


class MetricAnswer(TypedDict):
    """A recommended metric with its card, and why it is recommended."""

    label: str
    metric: str
    name: str
    meaning: str
    definition: str
    formula: str
    range: str
    orientation: Literal["up", "down"]
    prevalence_dependent: bool | None
    undefined: str
    per_class: bool
    parameters: Annotated[dict[str, Any], Field(description="Parameter of the metric -> its value.")]
    target_class: int | None
    target_class_name: str | None
    class_weights: list[float] | None
    why: list[WhyAnswer]


class RejectedAnswer(TypedDict):
    """A metric that was rejected, and why."""

    subprocess: str
    metric: str
    reason: str


class ActionAnswer(TypedDict):
    """A further action that the method recommends."""

    subprocess: str
    action: str | None
    notes: list[str]


class RecommendationAnswer(TypedDict):
    """A recommendation as text; `document` is the complete recommendation, to be stored and attached to a task."""

    metrics: list[MetricAnswer]
    rejected: list[RejectedAnswer]
    guides: list[GuideDocument]
    open_choices: list[str]
    actions: list[ActionAnswer]
    warnings: list[WarningDocument]
    advice: list[AdviceDocument]
    displays: list[str]
    unused: list[UnusedDocument]
    confidence: str
    document: RecommendationDocument


class AttachedSummary(TypedDict):
    """A summary of a recommendation: number, actor and metrics; `damaged` holds the reason if it is unreadable."""

    task: str
    version: int
    digest: str
    created_at: str
    created_by: str
    labels: list[str]
    damaged: str | None


class AttachedList(TypedDict):
    """All recommendations of a task, oldest first; the last one is in force."""

    recommendations: list[AttachedSummary]


class AttachedAnswer(AttachedSummary):
    """A recommendation of a task, with the thresholds of its metrics."""

    thresholds: list[ThresholdDocument]
    recommendation: RecommendationAnswer


class PublishedHead(TypedDict):
    """A head that became active; an environment of null: the default head."""

    environment: str | None
    version: int


class KeptHead(TypedDict):
    """A head that stays active, and why; an environment of null: the default head."""

    environment: str | None
    version: int | None
    cause: KeptCause
    reason: str


class RefitAnswer(TypedDict):
    """Heads that became active with a recommendation, and heads that stayed; `model` null: no refit was requested."""

    model: str | None
    head_version: int | None
    published: list[PublishedHead]
    kept: list[KeptHead]


class DifferingHead(TypedDict):
    """A head in force that decides by other costs or another rule than its task, or is for another class mix than the
    stated one; environment null: the default head.
    """

    model: str
    environment: str | None
    version: int
    differs_in: list[Difference]
    sentence: Annotated[str, Field(description="The same in words.")]


class EffectsAnswer(TypedDict):
    """Costs and decision rule of a task after a recommendation was attached, and the heads that differ from them."""

    costs: list[list[float]]
    decision_rule: DecisionRuleDocument
    decision_rule_text: Annotated[str, Field(description="The decision rule as a phrase.")]
    not_executed: Annotated[
        str | None,
        Field(
            description="Why the task keeps its rule although the answers state one; null: it took that rule over."
        ),
    ]
    differing_heads: list[DifferingHead]
    hint: Annotated[str | None, Field(description="How to fit these heads again; null: none differs.")]


class NewlyAttached(AttachedAnswer, RefitAnswer, EffectsAnswer):
    """A recommendation, costs and decision rule of its task, the heads that became active with it, and the others."""


class PromotionReportSummary(TypedDict):
    """A promotion report of a model; `job` made it."""

    model: str
    against: str
    job: str
    created_at: str
    created_by: str
    advice: str
    headline: str


class PromotionReportList(TypedDict):
    """Promotion reports of a model, newest first."""

    reports: list[PromotionReportSummary]
