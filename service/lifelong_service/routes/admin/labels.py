"""`/v1/admin/predictions/{id}/labels`: the history of the label of a prediction."""

from typing import cast
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.labels import LabelHistoryAnswer

router = APIRouter(route_class=GuardedRoute, tags=["feedback"])


@router.get("/v1/admin/predictions/{prediction}/labels")
@access(Scope.READ)
def show_label_history(request: Request, prediction: UUID) -> LabelHistoryAnswer:
    """Every change of the label of a prediction, oldest first: from what to what, by whom, when."""
    return cast("LabelHistoryAnswer", worker_of(request).store.labels.history_document(prediction))
