"""The pages of models: all versions by task, and one with its heads, validations and promotion reports."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.registry import ModelAnswer
from lifelong_core.operations.administration.processes import DEFAULT_HEAD
from lifelong_core.operations.develop.evaluations import ListReports, ListValidations
from lifelong_core.operations.develop.retrainings import ShowTraining
from lifelong_core.operations.models import ListModels, ShowModel
from lifelong_core.operations.trials import ListPromotions
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

LIST = "/console/models"
ADVICE = {"promote": "promote it", "decide": "a person decides", "reject": "do not promote it"}
"""Advice of a promotion report in words."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(ListModels.operation.scope)
def list_models(request: Request) -> Response:
    """Show all versions of all models, newest first in each task."""
    models = carry_out(request, ListModels()).models
    ordered = sorted(models, key=lambda model: (model.task, model.name, -model.version))
    return page(request, "models/list", models=ordered, path=LIST)


@router.get(LIST + "/{reference}")
@access(ShowModel.operation.scope)
def show_model(request: Request, reference: str) -> Response:
    """Show state, heads, training, validations and promotion reports of a model; the forms are those of its task."""
    model = carry_out(request, ShowModel(model=reference))
    return page(
        request,
        "models/model",
        model=model,
        heads=[_head(model.model, environment, version) for environment, version in model.heads.items()],
        **_roll_back(request, model),
        is_trained=_is_trained(request, model.model),
        validations=carry_out(request, ListValidations(model=model.model)).validations,
        reports=carry_out(request, ListReports(model=model.model)).reports,
        advice=ADVICE,
        path=f"{LIST}/{model.model}",
    )


@router.get(LIST + "/{reference}/reports/{job}")
@access(Scope.READ)
def show_report(request: Request, reference: str, job: UUID) -> Response:
    """The promotion report of a comparison or a training as a self-contained page."""
    from lifelong_service.routes.admin.promotion_reports import show_page

    return show_page(request, reference, job)


def _head(model: str, environment: str, version: int) -> dict[str, Any]:
    is_default = environment == DEFAULT_HEAD
    return {
        "place": "default head" if is_default else environment,
        "version": version,
        "path": f"/console/heads/{model}" + ("" if is_default else f"/{environment}"),
    }


def _roll_back(request: Request, model: ModelAnswer) -> dict[str, Any]:
    """The model that a roll-back of a promoted model restores, and the newest promotion; None: there is none."""
    listed = carry_out(request, ListPromotions(task=model.task)) if model.promoted else None
    if listed is None or listed.rollback_model is None:
        return {"restored": None, "sequence": 0}
    return {"restored": listed.rollback_model, "sequence": listed.promotions[-1].sequence}


def _is_trained(request: Request, model: str) -> bool:
    """Whether the model was trained here."""
    try:
        carry_out(request, ShowTraining(model=model))
    except NotFoundError:
        return False
    return True
