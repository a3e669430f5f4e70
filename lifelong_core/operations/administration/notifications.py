"""Notifications: what people should know, on the channels of the settings; a monitor delivers them."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.notifications import Notification
from lifelong_core.operations.operation import Call, Context, operation


@dataclass(frozen=True, kw_only=True)
class NotificationList(Entity):
    """Notifications, newest first."""

    notifications: list[Notification]


class ListNotifications(Call[NotificationList]):
    """How many are wanted."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Number of notifications.")] = 20


class SendTestMessage(Call[Notification]):
    """Nothing is chosen."""


@operation("GET", "/v1/admin/notifications", scope=Scope.READ, example=ListNotifications())
def list_notifications(context: Context, call: ListNotifications) -> NotificationList:
    """The newest notifications, newest first, with their deliveries: sent, waiting or given up."""
    return NotificationList(notifications=context.store.notifications.list(limit=call.limit))


@operation("POST", "/v1/admin/notifications/test", scope=Scope.OPERATE, status=202, example=SendTestMessage())
def send_test_message(context: Context, call: SendTestMessage) -> Notification:  # noqa: ARG001
    """Send a test message to every channel; a monitor does so within seconds, and the list shows its deliveries."""
    return context.store.notifications.add_test(actor=context.actor)
