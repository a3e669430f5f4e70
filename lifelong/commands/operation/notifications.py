"""`lifelong notifications`: messages to people, and their deliveries."""

from typing import Any

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.operation_command import operation_command
from lifelong_core.entities.notifications import Notification
from lifelong_core.operations.administration.notifications import ListNotifications, SendTestMessage


@click.group(cls=CommandGroup, short_help="Messages to people: webhooks, e-mail, Slack and Teams.")
def notifications() -> None:
    """Messages on swaps, refusals, proposals, missed targets, failed validations and failed jobs.

    A monitor delivers them to the channels of its settings: docs/notifications.md.
    """


def _row(notification: Notification) -> dict[str, Any]:
    names = ("id", "created_at", "kind", "subject")
    deliveries = [
        f"{delivery.channel}: {delivery.state.replace('_', ' ')}"
        + (f" after {delivery.attempts} attempts ({delivery.problem})" if delivery.problem else "")
        for delivery in notification.deliveries
    ]
    nothing = "no channel" if notification.due_at is None else "waiting for a monitor"
    return {name: getattr(notification, name) for name in names} | {
        "deliveries": "; ".join(deliveries) or nothing
    }


for command in (
    operation_command(
        ListNotifications,
        "list",
        rows=lambda answer: [_row(notification) for notification in answer.notifications],
        empty="No notification.",
        below="deliveries",
    ),
    operation_command(
        SendTestMessage,
        "test",
        text=lambda answer, _: f"A monitor sends {answer.id} to every channel: lifelong notifications list",
    ),
):
    notifications.add_command(command)
