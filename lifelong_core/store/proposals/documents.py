"""Proposed retrainings as JSON values, for the HTTP API and the command line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lifelong_core.store.proposals.acceptance import retraining_command
from lifelong_core.store.proposals.records import RetrainingProposal

if TYPE_CHECKING:
    from lifelong_core.store.store import Store


def proposal_documents(store: "Store", proposals: Sequence[RetrainingProposal]) -> list[dict[str, Any]]:
    """Proposals as JSON values, with the names of task and model."""
    models = {model.id: model for model in store.models.list()}
    tasks = {task.id: task.name for task in store.tasks.list()}
    return [
        _document(proposal, tasks[models[proposal.model_id].task_id], models[proposal.model_id].reference)
        for proposal in proposals
    ]


def _document(proposal: RetrainingProposal, task: str, model: str) -> dict[str, Any]:
    moments = {
        name: None if (at := getattr(proposal, name)) is None else at.isoformat()
        for name in ("proposed_at", "fine_at", "decided_at")
    }
    return {
        "id": str(proposal.id),
        "task": task,
        "model": model,
        "environment": proposal.environment,
        "reason": proposal.reason,
        "state": proposal.state,
        "details": proposal.details,
        **moments,
        "decided_by": proposal.decided_by,
        "decision_reason": proposal.decision_reason,
        "job": None if proposal.job_id is None else str(proposal.job_id),
        "command": retraining_command(task, proposal.id),
    }
