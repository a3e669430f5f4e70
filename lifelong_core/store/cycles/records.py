"""Cycles of the adaptation workflow."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy.head import PostProcessingHead

Outcome: TypeAlias = Literal["keep", "swap", "refuse"]


@dataclass(frozen=True)
class Rejection:
    """A person declined the head that a cycle proposed."""

    reason: str
    rejected_at: datetime
    rejected_by: str


@dataclass(frozen=True)
class Cycle:
    """One pass of the workflow over one window. `report` is the AdaptationReport as a JSON document."""

    id: UUID
    model_id: int
    environment: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    report: dict[str, Any]
    window_samples: int
    log_position: int
    head_version: int
    """the head that served while the window was judged"""
    published_version: int | None
    """the head that the cycle published, automatically or after approval; None unless outcome is swap"""
    proposal: PostProcessingHead | None = None
    """the head that the cycle proposed to publish; None: it proposed none"""
    rejection: Rejection | None = None
    """rejection of the proposal; None: it was not rejected"""

    @property
    def effect(self) -> str:
        """The outcome as an effect: "swap" only where a head was published."""
        if self.outcome != "swap" or self.published_version is not None:
            return self.outcome
        return "would swap" if self.proposal is None else "proposes a swap"
