"""The change-control dossier and the monthly reports of a population, as self-contained pages."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.operations.administration.change_control import EARLIEST, ShowDossier, ShowReport
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out
from lifelong_service.routes.admin.validations import REPORT_HEADERS

PATH = "/console/populations/{model}/{environment}"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(PATH + "/dossier")
@access(ShowDossier.operation.scope)
def show_dossier(request: Request, model: str, environment: str) -> Response:
    """Show the dossier of everything up to now."""
    from lifelong_core.change_control.pages import dossier_html  # which other pages do not need

    call = ShowDossier(model=model, environment=environment, since=EARLIEST, until=datetime.now(UTC))
    return _shown(dossier_html(carry_out(request, call)))


@router.get(PATH + "/reports/{month}")
@access(ShowReport.operation.scope)
def show_report(request: Request, model: str, environment: str, month: str) -> Response:
    """Show the report of a month."""
    from lifelong_core.change_control.pages import report_html

    call = ShowReport.read({"model": model, "environment": environment, "month": month}, is_request=True)
    return _shown(report_html(carry_out(request, call)))


def _shown(html: str) -> Response:
    return Response(html, media_type="text/html", headers=REPORT_HEADERS)
