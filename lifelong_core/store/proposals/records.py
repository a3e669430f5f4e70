"""Proposed retrainings as values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy.adaptation.retraining import RetrainingReason

Decision: TypeAlias = Literal["accepted", "dismissed"]
ProposalState: TypeAlias = Literal["open", "accepted", "dismissed"]


@dataclass(frozen=True)
class RetrainingProposal:
    """A monitor proposes to train another model for a population."""

    id: UUID
    """larger ids are newer"""
    model_id: int
    environment: str
    reason: RetrainingReason
    details: dict[str, Any]
    """`RetrainingNeed.to_document` as the monitor saw it last"""
    proposed_at: datetime
    fine_at: datetime | None = None
    """when a later cycle found the reason gone; the same reason is not proposed again before"""
    decided_at: datetime | None = None
    decided_by: str | None = None
    decision: Decision | None = None
    decision_reason: str | None = None
    """of a dismissal"""
    job_id: UUID | None = None
    """the retraining that was started for it; None: none is known"""

    @property
    def state(self) -> ProposalState:
        """`open` until a person decides."""
        return self.decision or "open"
