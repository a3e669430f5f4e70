"""Trials of models, and promotions."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from lifelong_core.entities.entity import Entity, Moment

Stage: TypeAlias = Literal["shadow", "canary"]
RolloutOutcome: TypeAlias = Literal["promoted", "ended"]
PromotionReason: TypeAlias = Literal["first", "promote", "rollback"]

_HASHES = 1 << 64


@dataclass(frozen=True, kw_only=True)
class RolloutFields(Entity):
    """The trial of a candidate beside the promoted model of its task; without `ended_at` it goes on.

    In the stage `shadow` the candidate decides about the images of the task too, for the log only. In the stage
    `canary` it answers a share of the requests that name no version.
    """

    stage: Stage
    share: float
    """share of the requests without a version, in 0..1; 0 for a shadow"""
    started_at: Moment
    started_by: str
    changed_at: Moment
    """time of the latest change of stage or share"""
    ended_at: Moment | None = None
    ended_by: str | None = None
    outcome: RolloutOutcome | None = None


@dataclass(frozen=True, kw_only=True)
class TrialAnswer(RolloutFields):
    """The trial of a candidate; without `ended_at` it goes on."""

    task: str
    model: str
    """the candidate, name@version"""


@dataclass(frozen=True, kw_only=True)
class Rollout(RolloutFields):
    """A trial: a row of `rollouts`."""

    id: int
    task_id: int
    model_id: int
    """the candidate"""

    def chooses(self, key: bytes) -> bool:
        """Whether the candidate answers the requests with this key: a group, or a request without one.

        It depends only on the trial, the key and the share, so all workers choose the same, also after a restart. A
        larger share keeps all keys of a smaller one.
        """
        if self.stage != "canary":
            return False
        text = b"%d\0%b" % (self.id, key)
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") < self.share * _HASHES


@dataclass(frozen=True, kw_only=True)
class PromotionFields(Entity):
    """One change of the promoted model of a task."""

    sequence: int
    """counts up from 1 within the task"""
    reason: PromotionReason
    """`first`: the first calibrated model of the task was promoted automatically"""
    previous: Annotated[int | None, Field(alias="restores")]
    """the promotion that a roll-back of this one restores; null: none"""
    promoted_at: Moment
    promoted_by: str


@dataclass(frozen=True, kw_only=True)
class PromotionAnswer(PromotionFields):
    """One change of the promoted model of a task."""

    model: str
    """the model that was promoted, name@version; empty: it was removed"""


@dataclass(frozen=True, kw_only=True)
class Promotion(PromotionFields):
    """A row of `promotions`."""

    task_id: int
    model_id: int
    """the model that is promoted from then on"""
