"""The page of the audit log: changes and refused requests, with actor, time and address."""

from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import AuditEntry
from lifelong_core.operations.administration.audit import ListAudit
from lifelong_core.store.access.audit_log import AuditKind
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out, worker_of

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


@router.get("/console/audit")
@access(ListAudit.operation.scope)
def show_audit_log(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    kind: AuditKind | None = None,
) -> Response:
    """Show the newest entries, newest first, or the entries after the previous page."""
    entries = carry_out(request, ListAudit(limit=MOST + 1, before=before, kind=kind)).audit
    return page(
        request,
        "audit_log",
        lines=[_line_of(entry) for entry in entries[:MOST]],
        kind=kind,
        before=before,
        older=entries[MOST - 1].id if len(entries) > MOST else None,
        problem=worker_of(request).audit_problem,
    )


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
