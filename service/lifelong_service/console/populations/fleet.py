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
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60))
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
        lines=[(one, time_since(one.head_since, at), shift_line(one)) for one in listed.populations],
        needs=NEEDS,
        need_words=NEED_WORDS,
        orders=ORDERS,
        describe_metric=describe_metric,
    )


def time_since(moment: datetime | None, at: datetime) -> str:
    """How long ago, in whole days, hours or minutes.

    Examples:
        >>> at = datetime(2026, 3, 2, 12)
        >>> time_since(datetime(2026, 3, 2, 11, 40), at), time_since(datetime(2026, 3, 1, 11), at)
        ('20 minutes', '1 day')
    """
    if moment is None:
        return ""
    seconds = (at - moment).total_seconds()
    unit, length = next((one for one in _UNITS if seconds >= one[1]), _UNITS[-1])
    count = max(0, int(seconds // length))
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def shift_line(summary: PopulationSummary) -> Markup:
    """The shift of the newest cycles as a small line, on one scale for all populations."""
    if len(summary.recent_shifts) < 2:
        return Markup()
    first, last = summary.recent_shifts[0], summary.recent_shifts[-1]
    title = f"Shift over the last {len(summary.recent_shifts)} cycles: from {first:.2f} to {last:.2f}"
    return sparkline(summary.recent_shifts, title, most=1.0)
