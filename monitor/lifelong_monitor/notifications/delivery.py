"""The thread that delivers notifications; a lease lets one of several monitors do it at a time.

A monitor without channels leaves them to others.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from lifelong_core.configuration.notification_fields import (
    MessageChannel,
    NotificationSettings,
    WebhookChannel,
)
from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.notifications import Delivery, Notification
from lifelong_core.runtime.background import BackgroundThread, RepeatingThread
from lifelong_core.runtime.tracing import span
from lifelong_core.store import Store
from lifelong_core.store.engine.leases import Lease, this_process
from lifelong_core.values.errors import LifelongError, UnavailableError
from lifelong_monitor.notifications.words import Message, message_of

log = logging.getLogger(__name__)

LEASE: Final = "notifications"
LEAST_LEASE_SECONDS = 30.0
ATTEMPT_SECONDS = 20.0
"""An attempt that takes longer has failed; shorter than the lease, which must last until it is recorded."""
POLL_SECONDS = 1.0
"""Time between two looks for notifications that are due."""
PAGE = 100
"""Notifications that are read at once."""
MOST_ATTEMPTS = 12
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(hours=1)
"""Pauses between attempts double: 12 attempts take some three hours."""
STALE = timedelta(days=1)
"""A notification that no monitor with channels has seen for so long is not sent: channels were added later."""

Send = Callable[[Message], None]


class NotificationThread:
    """Delivers what is due until it is closed.

    Args:
        store: open.
        settings: of this monitor.
        senders: by `senders_of`.
        attempts: counter of `attempt_counter`.
    """

    def __init__(
        self, store: Store, settings: Settings, senders: Mapping[str, Send], attempts: Counter
    ) -> None:
        self._outbox, self._leases = store.notifications, store.leases
        self._settings = settings.notifications
        self._lease_seconds = max(settings.lease_seconds, LEAST_LEASE_SECONDS)
        self._senders = senders
        self._attempts = attempts
        self._thread = RepeatingThread("notifications", self.deliver, seconds=POLL_SECONDS)
        self.close = self._thread.close

    def start(self) -> None:
        """Start the thread, if there are channels."""
        if self._senders:
            self._thread.start()

    def deliver(self) -> None:
        """Deliver what is due now, unless another monitor does."""
        try:
            is_due = self._outbox.due(limit=1)
            lease = self._leases.acquire(LEASE, this_process(), self._lease_seconds) if is_due else None
            if lease is None:
                return
            try:
                failing = set[str]()
                page = self._outbox.due(limit=PAGE)
                while page and not self._thread.stopping.is_set():
                    for notification in page:
                        self._deliver(notification, lease, failing)
                    page = self._outbox.due(limit=PAGE, after=page[-1].id)
            finally:
                self._leases.release(lease)
        except LifelongError as error:
            log.warning("notifications could not be delivered, trying again: %s", error)

    def _deliver(self, notification: Notification, lease: Lease, failing: set[str]) -> None:
        """Make the attempts of a notification that are due; each is recorded before the next one.

        Channels in `failing` have failed in this look, and get nothing more in it.
        """
        deliveries = list(notification.deliveries) or self._planned(notification)
        if not deliveries:
            self._outbox.record(notification, [], lease=lease)
        for position, delivery in enumerate(deliveries):
            is_due = delivery.due_at is not None and delivery.due_at <= datetime.now(UTC)
            if not is_due or delivery.channel in failing or self._thread.stopping.is_set():
                continue
            self._leases.renew(lease, self._lease_seconds)
            problem = self._send(notification, delivery.channel)
            if problem is not None:
                failing.add(delivery.channel)
                log.warning("notification %s to %s: %s", notification.id, delivery.channel, problem)
            after = deliveries[position] = attempted(delivery, problem, datetime.now(UTC))
            given_up = after if after.state == "given_up" else None
            self._outbox.record(notification, deliveries, lease=lease, given_up=given_up)
            outcome = "failed" if after.state == "waiting" else after.state
            self._attempts.labels(after.channel, outcome).inc()

    def _planned(self, notification: Notification) -> list[Delivery]:
        """New deliveries to the channels that get this kind."""
        created_at, kind = notification.created_at, notification.kind
        if datetime.now(UTC) - created_at > STALE:
            return []
        channels = self._settings.channels.items()
        names = [name for name, channel in channels if kind == "test" or kind in channel.kinds]
        return [Delivery(channel=name, due_at=created_at) for name in names]

    def _send(self, notification: Notification, channel: str) -> str | None:
        """Make one attempt; return why it failed, or None. One that hangs, as at a name server, is left behind."""
        problems = list[str | None]()
        attempt = BackgroundThread(
            "notification", lambda: problems.append(self._attempt(notification, channel))
        )
        attempt.start()
        attempt.join(ATTEMPT_SECONDS)
        return problems[0] if problems else f"it did not end within {ATTEMPT_SECONDS:g} s."

    def _attempt(self, notification: Notification, channel: str) -> str | None:
        if channel not in self._senders:
            return "this channel is not in the settings any more."
        try:
            with span("notification", channel=channel, kind=notification.kind, id=str(notification.id)):
                self._senders[channel](message_of(notification, self._settings))
        except UnavailableError as error:
            return error.message
        except Exception as error:  # a fault of one channel or message must not hold up the others
            log.exception("notification %s to %s", notification.id, channel)
            return repr(error)
        return None


def attempted(delivery: Delivery, problem: str | None, at: datetime) -> Delivery:
    """A delivery after an attempt at this time, which failed with a problem; None: it succeeded."""
    attempts = delivery.attempts + 1
    after = replace(delivery, attempts=attempts, problem=problem, due_at=None)
    if problem is None:
        return replace(after, state="sent")
    if attempts >= MOST_ATTEMPTS:
        return replace(after, state="given_up")
    return replace(after, due_at=at + min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE))


def senders_of(registry: CollectorRegistry, settings: NotificationSettings) -> Mapping[str, Send]:
    """The functions that send, by the names of the channels; a metric tells which channels are usable.

    A channel whose secret cannot be read, or whose library is missing, fails at every attempt, and holds up no cycle.
    """
    usable = Gauge(
        "lifelong_notification_channel_usable",
        "Whether this monitor can use the channel (1) or could not when it started (0): its log says why.",
        ("channel",),
        registry=registry,
    )
    senders = dict[str, Send]()
    for name, channel in settings.channels.items():
        usable.labels(name).set(1)
        try:
            senders[name] = _sender(name.partition(".")[2], channel, settings.networks)
        except Exception as error:  # whatever is wrong with a channel, the others and the cycles go on
            log.exception("the channel %s is off until this monitor starts again", name)
            usable.labels(name).set(0)
            senders[name] = partial(_refuse, str(error))
    return senders


def _sender(name: str, channel: WebhookChannel | MessageChannel, networks: Sequence[str]) -> Send:
    # Monitors without channels need none of these libraries.
    if isinstance(channel, WebhookChannel):
        from lifelong_monitor.notifications.webhook import Webhook

        return Webhook(name, channel, networks).send
    from lifelong_monitor.notifications.services import Service

    return Service(name, channel).send


def _refuse(problem: str, message: Message) -> None:  # noqa: ARG001
    raise UnavailableError(problem)


def attempt_counter(registry: CollectorRegistry, settings: NotificationSettings) -> Counter:
    """The counter of attempts by channel and outcome."""
    counter = Counter(
        "lifelong_notifications_total",
        "Attempts of this monitor to deliver notifications, by channel and outcome: sent, failed (tried again later)"
        " or given_up.",
        ("channel", "outcome"),
        registry=registry,
    )
    for channel in settings.channels:
        for outcome in ("sent", "failed", "given_up"):
            counter.labels(channel, outcome)  # one that appears with its first event hides it from increase()
    return counter
