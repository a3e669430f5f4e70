"""The page of the audit log: changes and refused requests, with actor, time and address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from textwrap import shorten
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import AuditEntry
from lifelong_core.operations.administration.audit import ListAudit
from lifelong_core.store.access.audit_log import AuditKind
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out, worker_of

PAGE = "/console/audit"
MOST = 100
"""Entries on a page."""
_LONGEST_DETAILS = 300

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@dataclass(frozen=True)
class Line:
    """One entry, as the page shows it."""

    id: int
    at: datetime
    actor: str
    source: str
    action: str
    subject: str
    details: str
    digest: str


@router.get(PAGE)
@access(ListAudit.operation.scope)
def show_audit_log(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    kind: AuditKind | Literal[""] = "",
    actor: Annotated[str, Query(max_length=128)] = "",
    action: Annotated[str, Query(max_length=64)] = "",
    subject: Annotated[str, Query(max_length=256)] = "",
    since: Annotated[str, Query(max_length=10)] = "",
    until: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show the newest entries, newest first, or the entries after the previous page; `since` and `until` are days."""
    typed = {
        "kind": kind, "actor": actor, "action": action, "subject": subject, "since": since, "until": until
    }  # fmt: skip
    given = {name: value for name, value in typed.items() if value}
    error = None
    try:
        call = ListAudit.read(
            {**given, **_times(given), "limit": MOST + 1, "before": before}, is_request=True
        )
        entries = carry_out(request, call).audit
    except InvalidInputError as refused:
        error, entries = refused, []
    older = entries[MOST - 1].id if len(entries) > MOST else None
    return page(
        request,
        "administration/audit_log",
        status=200 if error is None else 422,
        error=error,
        lines=[_line_of(entry) for entry in entries[:MOST]],
        typed=typed,
        before=before,
        path=PAGE,
        older=None if older is None else f"{PAGE}?{urlencode(given | {'before': older})}",
        problem=worker_of(request).audit_problem,
    )


def _times(given: Mapping[str, str]) -> dict[str, datetime]:
    """The first and the last day of the form as times; the last day belongs to them.

    Raises:
        InvalidInputError: one of them is no day.
    """
    times: dict[str, datetime] = {}
    for name, days in (("since", 0), ("until", 1)):
        if name in given:
            try:
                day = datetime.strptime(given[name], "%Y-%m-%d").replace(tzinfo=UTC)
                times[name] = day + timedelta(days=days)
            except (ValueError, OverflowError) as error:
                raise InvalidInputError("expected a day, such as 2026-03-01.", field=name) from error
    return times


def _line_of(entry: AuditEntry) -> Line:
    details = "; ".join(
        f"{name}: {_text(value)}" for name, value in entry.details.items() if value is not None
    )
    return Line(
        entry.id,
        entry.at,
        entry.actor,
        entry.source or "not known",
        entry.action,
        entry.subject,
        shorten(details, _LONGEST_DETAILS, placeholder=" ..."),
        entry.digest[:12],
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"({len(value)} fields)"
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
