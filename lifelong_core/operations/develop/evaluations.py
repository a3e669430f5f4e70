"""How good models are on labelled cases: validations, and promotion reports of a new model against the current one."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.evaluations import PromotionReportSummary, ValidationSummary
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store.evaluations.comparisons import reports_of


@dataclass(frozen=True, kw_only=True)
class PromotionReportList(Entity):
    """Promotion reports of a model, newest first."""

    reports: list[PromotionReportSummary]


@dataclass(frozen=True, kw_only=True)
class ValidationList(Entity):
    """Validations, newest first."""

    validations: list[ValidationSummary]


class ListValidations(Call[ValidationList]):
    """Which validations are wanted."""

    model: Annotated[str | None, Field(description="Only of this model: its name, or name@version.")] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ListReports(Call[PromotionReportList]):
    """A model."""

    model: ModelReference


@operation("GET", "/v1/admin/validations", scope=Scope.READ, example=ListValidations(limit=5))
def list_validations(context: Context, call: ListValidations) -> ValidationList:
    """The newest validations, newest first: of one model or of all. The reports of comparisons count, too.

    `GET /v1/admin/validations/{id}/report` is the report of one, where `report` is true.
    """
    registry = context.store.registry()
    evaluations = context.store.evaluations.list(call.model, limit=call.limit)
    return ValidationList(
        validations=[
            ValidationSummary.of(
                evaluation,
                model=registry.models[evaluation.model_id].reference,
                task=registry.tasks[registry.models[evaluation.model_id].task_id].name,
                job=evaluation.job_id,
                report=evaluation.report is not None,
            )
            for evaluation in evaluations
            if evaluation.model_id in registry.models
        ]
    )


@operation("GET", "/v1/admin/models/{model}/reports", scope=Scope.READ, example=ListReports(model="resnet@2"))
def list_reports(context: Context, call: ListReports) -> PromotionReportList:
    """The promotion reports of a model, newest first: of comparisons, as long as jobs are kept, and of its training."""
    store = context.store
    return PromotionReportList(reports=[*reports_of(store, store.models.get(call.model))])
