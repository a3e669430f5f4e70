"""Which results of cycles, jobs, proposals and validations are notifications; within the transaction of the result."""

from typing import Any, Literal

import sqlalchemy as sa

from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.develop.evaluations import Evaluation
from lifelong_core.entities.jobs import Job
from lifelong_core.entities.proposals import RetrainingProposal
from lifelong_core.entities.registry import Model
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.notifications.outbox import notify
from lifelong_core.store.schema import tables

MISSED_CYCLES = 2
"""A target is missed if so many cycles in a row expect it, as in the alert LifelongTargetMissed; one may be chance."""
_LONGEST_TEXT = 500
"""Characters of a message of an error."""
_cycles = tables.cycles


def cycle_before(connection: sa.Connection, cycle: Cycle) -> Row | None:
    """The newest recorded cycle of the population: its outcome, and whether it left a proposal unanswered."""
    unanswered = sa.and_(
        _cycles.c.proposal.is_not(None),
        _cycles.c.published_version.is_(None),
        _cycles.c.rejected_at.is_(None),
    )
    query = (
        sa.select(_cycles.c.outcome, unanswered.label("proposes"))
        .where(_cycles.c.model_id == cycle.model_id, _cycles.c.environment == cycle.environment)
        .order_by(_cycles.c.log_position.desc(), _cycles.c.due_at.desc(), _cycles.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).one_or_none()


def note_cycle(
    connection: sa.Connection, model: Model, cycle: Cycle, before: Row | None, *, actor: str
) -> None:
    """Add the notifications of a recorded cycle: a swap, the first of several refusals or proposals, a missed target.

    `before` is the cycle before it, by `cycle_before`; `actor` publishes the head of a swap.
    """
    if cycle.published_version is not None:
        note_swap(connection, model, cycle, actor=actor)
    elif cycle.proposal is not None:
        if before is None or not before.proposes:
            _note(connection, "head_proposal", model, cycle)
    elif cycle.outcome == "refuse" and (before is None or before.outcome != "refuse"):
        _note(connection, "refuse", model, cycle)
    inputs: dict[str, Any] = cycle.report.get("inputs") or {}
    criterion: dict[str, Any] | None = cycle.report.get("criterion")
    is_missed = inputs.get("missed_cycles") == MISSED_CYCLES and cycle.published_version is None
    if is_missed and criterion is not None:
        figures = {name: criterion.get(name) for name in ("metric", "value", "low", "high", "target")}
        _note(connection, "target_missed", model, cycle, **figures)


def note_swap(connection: sa.Connection, model: Model, cycle: Cycle, *, actor: str) -> None:
    """Add the notification of a head that a cycle published, or that a person approved."""
    _note(connection, "swap", model, cycle, published_version=cycle.published_version, actor=actor)


def note_retraining(connection: sa.Connection, model: Model, proposal: RetrainingProposal) -> None:
    """Add the notification of a proposed retraining."""
    details = {
        **_population(model, proposal.environment),
        "proposal": str(proposal.id),
        "reason": proposal.reason,
        "look_first": proposal.details["look_first"],
    }
    subject = f"{model.reference}/{proposal.environment}"
    notify(connection, "retraining_proposal", subject, details)


def note_evaluation(connection: sa.Connection, model: Model, evaluation: Evaluation) -> None:
    """Add the notification of a validation that misses the acceptance thresholds."""
    if evaluation.accepted is False:
        details = {
            "model": model.reference,
            "evaluation": str(evaluation.id),
            "samples": evaluation.samples,
            "recommendation_version": evaluation.recommendation_version,
        }
        notify(connection, "acceptance_failed", model.reference, details)


def note_job(connection: sa.Connection, job: Job) -> None:
    """Add the notification of a failed job."""
    if job.state == "failed":
        error = job.error or {}
        details = {
            "job": str(job.id),
            "kind": job.kind,
            "created_by": job.created_by,
            "message": str(error.get("message") or "")[:_LONGEST_TEXT],
            "hint": str(error.get("hint") or "")[:_LONGEST_TEXT],
        }
        notify(connection, "job_failed", str(job.id), details)


def _note(
    connection: sa.Connection,
    kind: Literal["swap", "refuse", "head_proposal", "target_missed"],
    model: Model,
    cycle: Cycle,
    **further: Any,
) -> None:
    reasons: list[dict[str, str]] = cycle.report.get("reasons") or []
    details = {
        **_population(model, cycle.environment),
        "cycle": str(cycle.id),
        "head_version": cycle.head_version,
        "reasons": [reason["text"] for reason in reasons],
        **further,
    }
    notify(connection, kind, f"{model.reference}/{cycle.environment}", details)


def _population(model: Model, environment: str) -> dict[str, str]:
    return {"model": model.reference, "environment": environment}
