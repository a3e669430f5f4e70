"""Cycles and audit entries as JSON values, for the HTTP API and the command line."""

from collections.abc import Mapping
from typing import Any

from lifelong_core.entities.access import AuditEntry
from lifelong_core.store.cycles.affected_counts import AffectedFigures
from lifelong_core.store.cycles.affected_documents import figures_document
from lifelong_core.store.cycles.records import Cycle, Rejection
from lifelong_core.store.registry.records import Model


def cycle_document(
    cycle: Cycle, models: Mapping[int, Model], affected: AffectedFigures | None
) -> dict[str, Any]:
    """A cycle with its report as JSON values; `models` by id; `affected` None: not counted."""
    return {
        "id": str(cycle.id),
        "model": models[cycle.model_id].reference,
        "environment": cycle.environment,
        "due_at": cycle.due_at.isoformat(),
        "started_at": cycle.started_at.isoformat(),
        "finished_at": cycle.finished_at.isoformat(),
        "outcome": cycle.outcome,
        "effect": cycle.effect,
        "head_version": cycle.head_version,
        "published_version": cycle.published_version,
        "proposal": cycle.proposal.to_document() if cycle.proposal else None,
        "rejection": _rejection_document(cycle.rejection) if cycle.rejection else None,
        "window_samples": cycle.window_samples,
        "log_position": cycle.log_position,
        "affected": None if affected is None else figures_document(affected),
        "report": cycle.report,
    }


def audit_document(entry: AuditEntry) -> dict[str, Any]:
    """An audit entry as JSON values: actor, action, subject, time and source, with its digests (see `audit_chain`)."""
    return {
        "id": entry.id,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "details": entry.details,
        "source": entry.source,
        "previous_digest": entry.previous_digest,
        "digest": entry.digest,
    }


def _rejection_document(rejection: Rejection) -> dict[str, Any]:
    return {
        "reason": rejection.reason,
        "rejected_at": rejection.rejected_at.isoformat(),
        "rejected_by": rejection.rejected_by,
    }
