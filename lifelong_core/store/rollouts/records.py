"""Trials of models, and promotions."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["shadow", "canary"]
RolloutOutcome: TypeAlias = Literal["promoted", "ended"]
PromotionReason: TypeAlias = Literal["first", "promote", "rollback"]

_HASHES = 1 << 64


@dataclass(frozen=True)
class Rollout:
    """The trial of a candidate beside the promoted model of its task.

    In the stage `shadow` the candidate decides about the images of the task too, for the log only. In the stage
    `canary` it answers a share of the requests that name no version.
    """

    id: int
    task_id: int
    model_id: int
    """the candidate"""
    stage: Stage
    share: float
    """of the requests that the candidate answers, in 0..1; 0 in the stage shadow"""
    started_at: datetime
    started_by: str
    changed_at: datetime
    """time of the latest change of stage or share"""
    ended_at: datetime | None = None
    """None: it goes on"""
    ended_by: str | None = None
    outcome: RolloutOutcome | None = None

    def chooses(self, key: bytes) -> bool:
        """Whether the candidate answers the requests with this key: a group, or a request without one.

        It depends only on the trial, the key and the share, so all workers choose the same, also after a restart. A
        larger share keeps all keys of a smaller one.
        """
        if self.stage != "canary":
            return False
        text = b"%d\0%b" % (self.id, key)
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") < self.share * _HASHES


@dataclass(frozen=True)
class Promotion:
    """One change of the promoted model of a task."""

    task_id: int
    sequence: int
    """counts up from 1 within the task"""
    model_id: int
    """the model that is promoted from then on"""
    previous: int | None
    """sequence of the promotion that a roll-back restores; None: there is none before"""
    promoted_at: datetime
    promoted_by: str
    reason: PromotionReason
    """`first`: the first calibrated model of the task was promoted automatically"""
