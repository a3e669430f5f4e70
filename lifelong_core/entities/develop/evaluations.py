"""How good models are on labelled cases: evaluations, and reports of a new model against the current one."""

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from lifelong_core.entities.entity import Entity, Moment, schema_of

ValidationDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.design.validation.result:ValidationResult")
]
PromotionReportDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.promotion.document:PromotionReport")
]


@dataclass(frozen=True, kw_only=True)
class EvaluationFields(Entity):
    """How good a model was on one labelled set, by the metrics that were recommended for its task."""

    id: UUID
    """larger ids are newer"""
    recommendation_version: int | None
    """of the task's recommendations; null: it had none"""
    head: str
    """digest of the head that decided"""
    accepted: bool | None
    """whether all acceptance thresholds are reached; null: undecided, or there are none"""
    samples: int
    created_at: Moment
    created_by: str


@dataclass(frozen=True, kw_only=True)
class ValidationSummary(EvaluationFields):
    """A validation of a model without its result."""

    model: str
    """name@version"""
    task: str
    job: UUID | None
    """the job that made it, which may be deleted by now"""
    report: bool
    """whether it has a report as a page"""


@dataclass(frozen=True, kw_only=True)
class Evaluation(EvaluationFields):
    """A row of `evaluations`."""

    model_id: int
    job_id: UUID | None
    """the job that made it, which may be deleted by now"""
    result: str
    """digest of the artifact: a `ValidationResult` as JSON"""
    report: str | None
    """digest of its HTML page"""
    labelled_set: str
    """digest of the artifact: `LabelledSet.to_bytes`"""


@dataclass(frozen=True, kw_only=True)
class PromotionReportSummary(Entity):
    """A promotion report of a model."""

    model: str
    """name@version"""
    against: str
    """name@version of the model that it was compared with"""
    job: UUID
    """the comparison or the training that made it; it may be deleted by now"""
    created_at: Moment
    created_by: str
    advice: str
    """`promote`, `decide` or `reject`"""
    headline: str


@dataclass(frozen=True, kw_only=True)
class StoredReport(PromotionReportSummary):
    """A promotion report of a model, with its artifacts."""

    document: str
    """digest of the artifact: a `PromotionReport` as JSON"""
    page: str
    """digest of its HTML page"""
