"""Notifications: what happened, and its delivery to each channel."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.configuration.notification_fields import NotificationKind
from lifelong_core.entities.entity import Entity, Moment

DeliveryState: TypeAlias = Literal["waiting", "sent", "given_up"]


@dataclass(frozen=True, kw_only=True)
class Delivery(Entity):
    """Delivery of a notification to one channel."""

    channel: str
    """such as webhooks.pager"""
    state: DeliveryState = "waiting"
    attempts: int = 0
    due_at: Moment | None
    """time of the next attempt; null: sent, or given up"""
    problem: str | None = None
    """why the latest attempt failed; null: it did not"""


@dataclass(frozen=True, kw_only=True)
class Notification(Entity):
    """Something that people should know: a row of `notifications`."""

    id: UUID
    """the same in every attempt and on every channel, so that receivers recognise repetitions"""
    kind: NotificationKind
    subject: str
    """a population as model/environment, a model, or a job"""
    details: dict[str, Any]
    """facts of the message; the keys depend on the kind"""
    created_at: Moment
    due_at: Moment | None
    """time of the next attempt; null: nothing is left to do"""
    deliveries: list[Delivery]
    """empty until a monitor has chosen the channels, or if no channel gets this kind"""
