"""The outbox: notifications are written in the transaction of their event, and deliveries recorded as they are made.

A monitor that dies between a delivery and its record delivers again, with the same id.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.configuration.notification_fields import NotificationKind
from lifelong_core.entities.notifications import Delivery, Notification
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.schema import tables

KEPT = timedelta(days=90)
"""Older notifications are deleted."""
_notifications = tables.notifications


class Notifications(Repository):
    """Lists notifications, and records their deliveries."""

    def add_test(self, *, actor: str) -> Notification:
        """Add a test message to every channel."""
        with self._database.write() as connection:
            notification_id = notify(connection, "test", actor, {"actor": actor})
            write_audit(connection, actor, "notifications.test", str(notification_id))
            return _read(connection, sa.select(_notifications).where(_notifications.c.id == notification_id))[
                0
            ]

    def list(self, *, limit: int = 100) -> list[Notification]:
        """The newest notifications, newest first."""
        with self._database.read() as connection:
            return _read(
                connection, sa.select(_notifications).order_by(_notifications.c.id.desc()).limit(limit)
            )

    def due(self, *, limit: int, after: UUID | None = None) -> "list[Notification]":
        """Notifications with an attempt that is due, oldest first; with `after`, those after this id."""
        is_due = sa.select(_notifications).where(_notifications.c.due_at <= now())
        if after is not None:
            is_due = is_due.where(_notifications.c.id > after)
        with self._database.read() as connection:
            return _read(connection, is_due.order_by(_notifications.c.id).limit(limit))

    def record(
        self,
        notification: Notification,
        deliveries: Sequence[Delivery],
        *,
        lease: Lease,
        given_up: Delivery | None = None,
    ) -> None:
        """Record the deliveries of a notification, and in the audit log the one that is `given_up` now.

        Raises:
            ConflictError: the lease was lost; nothing is written.
        """
        times = [delivery.due_at for delivery in deliveries if delivery.due_at is not None]
        documents = [delivery.to_document() for delivery in deliveries]
        with self._database.write() as connection:
            hold_lease(connection, lease)
            connection.execute(
                sa.update(_notifications)
                .where(_notifications.c.id == notification.id)
                .values(due_at=min(times, default=None), deliveries=documents)
            )
            if given_up is not None:
                details = {"id": str(notification.id), "problem": given_up.problem}
                write_audit(connection, "monitor", "notifications.give_up", given_up.channel, details)

    def delete_expired(self) -> None:
        """Delete notifications that are older than KEPT."""
        with self._database.write() as connection:
            connection.execute(sa.delete(_notifications).where(_notifications.c.created_at < now() - KEPT))


def notify(
    connection: sa.Connection, kind: NotificationKind, subject: str, details: Mapping[str, Any]
) -> UUID:
    """Add a notification in the transaction of its event; return its id.

    Args:
        connection: the transaction.
        kind: what happened.
        subject: a population as model/environment, a model, or a job.
        details: facts of the message as a JSON document.
    """
    notification_id, moment = new_prediction_id(), now()
    values = {"kind": kind, "subject": subject, "details": dict(details), "deliveries": list[Any]()}
    row = {"id": notification_id, "created_at": moment, "due_at": moment, **values}
    connection.execute(sa.insert(_notifications), row)
    return notification_id


def _read(connection: sa.Connection, query: sa.Select[Any]) -> list[Notification]:
    return [
        read_record(row, Notification, deliveries=[Delivery.from_document(one) for one in row.deliveries])
        for row in connection.execute(query)
    ]
