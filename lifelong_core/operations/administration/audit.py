"""The audit log: changes, and refused requests."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AwareDatetime, Field

from lifelong_core.entities.access import AuditEntry, Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import LARGEST, Call, Context, operation
from lifelong_core.store.access.audit_log import AuditKind


@dataclass(frozen=True, kw_only=True)
class AuditList(Entity):
    """Changes and refused requests, newest first."""

    audit: list[AuditEntry]


class ListAudit(Call[AuditList]):
    """Which entries are wanted."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Largest number of entries.")] = 100
    before: Annotated[
        int | None, Field(ge=1, le=LARGEST, description="Only entries below this number: the next page.")
    ] = None
    action: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="Only this action (heads.rollback), or all actions of one kind (heads).",
        ),
    ] = None
    subject: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="Only entries whose subject contains this text, for example resnet@1/clinic-a.",
        ),
    ] = None
    actor: Annotated[
        str | None,
        Field(min_length=1, max_length=128, description="Only entries of this token, person or process."),
    ] = None
    since: Annotated[AwareDatetime | None, Field(description="Only entries from this time on.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Only entries before this time.")] = None
    kind: Annotated[AuditKind | None, Field(description="Only changes, or only refused requests.")] = None


@operation("GET", "/v1/admin/audit", scope=Scope.READ, example=ListAudit(action="heads", limit=5))
def list_audit(context: Context, call: ListAudit) -> AuditList:
    """The newest changes and refused requests, newest first."""
    entries = context.store.audit.list(
        call.limit,
        call.before,
        action=call.action,
        subject=call.subject,
        actor=call.actor,
        since=call.since,
        until=call.until,
        kind=call.kind,
    )
    return AuditList(audit=list(entries))
