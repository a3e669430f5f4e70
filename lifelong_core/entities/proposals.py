"""Retrainings that monitors propose."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.entities.entity import Entity, Moment

Decision: TypeAlias = Literal["accepted", "dismissed"]
ProposalState: TypeAlias = Literal["open", "accepted", "dismissed"]

REASONS: Mapping[RetrainingReason, str] = {
    "estimated_performance": "Estimated performance below acceptance",
    "realised_performance": "Realised performance below acceptance",
    "repeated_refusals": "More than the prevalence has changed",
}
"""Why a retraining is proposed, as a title."""


class MissedFigure(TypedDict):
    """A figure whose whole interval is on the wrong side of its threshold."""

    metric: Annotated[
        str, Field(description="assumption_p_value: of the test that only the prevalence has changed.")
    ]
    class_index: int | None
    value: float
    low: Annotated[float | None, Field(description="Ends of the interval; null: it has none.")]
    high: float | None
    threshold: float


class ProposalDetails(TypedDict):
    """What the monitor saw: `RetrainingNeed.to_document`."""

    missed: list[MissedFigure]
    since: str
    cycles: Annotated[
        list[str], Field(description="Cycles that count for the first figure, each with data of its own.")
    ]
    look_first: Annotated[str, Field(description="What to look at before a retraining.")]


@dataclass(frozen=True, kw_only=True)
class ProposalFields(Entity):
    """A proposed retraining, without the names of task and model."""

    id: UUID
    """larger ids are newer"""
    environment: str
    reason: RetrainingReason
    details: ProposalDetails
    """what the monitor saw last"""
    proposed_at: Moment
    fine_at: Moment | None = None
    """when a later cycle found the reason gone; it is not proposed again before"""
    decided_at: Moment | None = None
    decided_by: str | None = None
    decision_reason: str | None = None
    """of a dismissal"""


@dataclass(frozen=True, kw_only=True)
class ProposalAnswer(ProposalFields):
    """A proposed retraining; it is open until a person decides."""

    task: str
    model: str
    """name@version"""
    state: ProposalState
    job: UUID | None
    """the retraining that was started for it; null: none is known"""
    command: str
    """starts a retraining of the task"""


@dataclass(frozen=True, kw_only=True)
class RetrainingProposal(ProposalFields):
    """A monitor proposes to train another model for a population: a row of `retraining_proposals`."""

    model_id: int
    decision: Decision | None = None
    job_id: UUID | None = None

    @property
    def state(self) -> ProposalState:
        """`open` until a person decides."""
        return self.decision or "open"
