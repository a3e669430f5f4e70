"""The pages of validations: the newest ones of all models, and the report of one."""

from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.operations.develop.evaluations import ListValidations
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

LIST = "/console/validations"
MOST = 100
"""Newest validations that are listed."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(ListValidations.operation.scope)
def list_validations(request: Request) -> Response:
    """Show the newest validations."""
    listed = carry_out(request, ListValidations(limit=MOST))
    return page(request, "models/validations", validations=listed.validations)


@router.get(LIST + "/{identifier}/report")
@access(Scope.READ)
def show_report(request: Request, identifier: UUID) -> Response:
    """The report of a validation as a self-contained page."""
    from lifelong_service.routes.admin.validations import show_validation_report

    return show_validation_report(request, identifier)
