"""Promotion reports: a new model against the current one."""

from dataclasses import dataclass

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.evaluations import PromotionReportSummary
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store.evaluations.comparisons import reports_of


@dataclass(frozen=True, kw_only=True)
class PromotionReportList(Entity):
    """Promotion reports of a model, newest first."""

    reports: list[PromotionReportSummary]


class ListReports(Call[PromotionReportList]):
    """A model."""

    model: ModelReference


@operation("GET", "/v1/admin/models/{model}/reports", scope=Scope.READ, example=ListReports(model="resnet@2"))
def list_reports(context: Context, call: ListReports) -> PromotionReportList:
    """The promotion reports of a model, newest first: of comparisons, as long as jobs are kept, and of its training."""
    store = context.store
    return PromotionReportList(reports=[*reports_of(store, store.models.get(call.model))])
