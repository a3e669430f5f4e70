"""The page of the doctor: the checks that a serving process makes, problems first."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.operations.administration.doctor import Examine
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

WORDS = {"failure": "failure", "warning": "warning", "ok": "in order"}
"""States of checks in words, worst first."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/doctor")
@access(Examine.operation.scope)
def show_checks(request: Request) -> Response:
    """Make the checks and show their findings."""
    found = carry_out(request, Examine())
    ordered = sorted(found.checks, key=lambda check: list(WORDS).index(check.status))
    return page(request, "administration/doctor", found=found, checks=ordered, words=WORDS)
