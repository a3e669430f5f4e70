"""Proposed retrainings as JSON values, for the HTTP API and the command line."""

from collections.abc import Mapping
from typing import Any

from lifelong_core.store.proposals.records import RetrainingProposal
from lifelong_core.store.registry.records import Model


def proposal_document(
    proposal: RetrainingProposal, models: Mapping[int, Model], tasks: Mapping[int, str]
) -> dict[str, Any]:
    """A proposal as JSON values.

    Args:
        proposal: the proposal.
        models: by id.
        tasks: names by id.
    """
    model = models[proposal.model_id]
    moments = {
        name: None if (at := getattr(proposal, name)) is None else at.isoformat()
        for name in ("proposed_at", "fine_at", "decided_at")
    }
    return {
        "id": str(proposal.id),
        "task": tasks[model.task_id],
        "model": model.reference,
        "environment": proposal.environment,
        "reason": proposal.reason,
        "state": proposal.state,
        "details": proposal.details,
        **moments,
        "decided_by": proposal.decided_by,
        "decision_reason": proposal.decision_reason,
        "job": None if proposal.job_id is None else str(proposal.job_id),
    }
