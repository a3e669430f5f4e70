"""The first page: all populations, those that need a person first, and what is wrong with the processes."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.charts.markup import Markup
from lifelong_core.charts.sparkline import sparkline
from lifelong_core.entities.populations import NEEDS, PopulationSummary
from lifelong_core.operations.populations import ListPopulations
from lifelong_core.store.performance.statements import describe_metric
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

MOST = 200
"""Populations on the page; the others are counted."""
DAY_SECONDS = 86_400
NEED_WORDS = {"decide": "Decide", "look": "Look", "none": "Fine"}
ORDERS = {"need": "need", "shift": "size of the shift", "name": "name"}

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console")
@access(ListPopulations.operation.scope)
def show_fleet(request: Request) -> Response:
    """Show the populations; the query chooses and orders them as the operation's does."""
    call = ListPopulations.read({**request.query_params, "limit": MOST}, is_request=True)
    listed, at = carry_out(request, call), datetime.now(UTC)
    return page(
        request,
        "fleet",
        listed=listed,
        call=call,
        lines=[(one, days_since(one.head_since, at), shift_line(one)) for one in listed.populations],
        needs=NEEDS,
        need_words=NEED_WORDS,
        orders=ORDERS,
        describe_metric=describe_metric,
    )


def days_since(moment: datetime | None, at: datetime) -> str:
    """How long ago, in days."""
    if moment is None:
        return ""
    days = (at - moment).total_seconds() / DAY_SECONDS
    return f"{days:.1f}" if days < 10 else f"{days:.0f}"


def shift_line(summary: PopulationSummary) -> Markup:
    """The shift of the newest cycles as a small line, on one scale for all populations."""
    if len(summary.recent_shifts) < 2:
        return Markup()
    first, last = summary.recent_shifts[0], summary.recent_shifts[-1]
    title = f"Shift over the last {len(summary.recent_shifts)} cycles: from {first:.2f} to {last:.2f}"
    return sparkline(summary.recent_shifts, title, most=1.0)
