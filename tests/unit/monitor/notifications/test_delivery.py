"""Delivery of notifications: retries, several monitors, a monitor that dies, and what becomes of the rest."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from lifelong_core.configuration.notification_fields import NotificationSettings
from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.notifications import Notification
from lifelong_core.store import Store
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.notifications import delivery
from lifelong_monitor.notifications.delivery import NotificationThread, attempt_counter
from lifelong_monitor.notifications.words import Message
from tests.unit.monitor import daemons
from tests.unit.monitor.daemons import until
from tests.unit.monitor.notifications.receivers import Receiver, http_receiver

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as opened:
        yield opened


@pytest.fixture
def channels(tmp_path: Path, receiver: Receiver) -> NotificationSettings:
    """Two webhooks; the second gets only tests."""
    file = tmp_path / "hook.key"
    file.write_text(KEY)
    hook = {"url": f"{receiver.url}/all", "secret_file": file}
    other = {**hook, "url": f"{receiver.url}/tests", "kinds": []}
    return NotificationSettings.model_validate(
        {"webhooks": {"all": hook, "tests": other}, "networks": ["127.0.0.1"]}
    )


class Failing:
    """A channel that fails so many times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.sent: list[Message] = []

    def __call__(self, message: Message) -> None:
        if self.failures:
            self.failures -= 1
            raise UnavailableError("it is down.")
        self.sent.append(message)


def thread_of(
    store: Store, settings: Settings, channels: NotificationSettings, **senders: Failing
) -> NotificationThread:
    named = {f"webhooks.{name}": sender for name, sender in senders.items()}
    settings = settings.model_copy(update={"notifications": channels})
    return NotificationThread(store, settings, named, attempt_counter(CollectorRegistry(), channels))


def state_of(store: Store) -> list[tuple[str, str, int]]:
    (notification,) = store.notifications.list()
    return [(made.channel, made.state, made.attempts) for made in notification.deliveries]


def make_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other without a pause."""
    monkeypatch.setattr(delivery, "FIRST_PAUSE", timedelta(0))


def test_a_monitor_sends_a_test_message_to_every_channel(
    store: Store, settings: Settings, channels: NotificationSettings, receiver: Receiver
) -> None:
    store.notifications.add_test(actor="ann")
    with daemons.running(settings.model_copy(update={"notifications": channels})):
        until(lambda: len(receiver.received) == 2)
        until(lambda: store.notifications.list()[0].due_at is None)
    assert sorted(request.path for request in receiver.received) == ["/all", "/tests"]
    assert state_of(store) == [("webhooks.all", "sent", 1), ("webhooks.tests", "sent", 1)]
    assert store.audit.list(limit=1)[0].action == "notifications.test"


def test_a_failing_channel_is_tried_again_and_holds_up_no_other(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_due(monkeypatch)
    down, well = Failing(1), Failing(0)
    thread = thread_of(store, settings, channels, all=down, tests=well)
    store.notifications.add_test(actor="ann")
    thread.deliver()
    assert state_of(store) == [("webhooks.all", "waiting", 1), ("webhooks.tests", "sent", 1)]
    thread.deliver()
    assert state_of(store) == [("webhooks.all", "sent", 2), ("webhooks.tests", "sent", 1)]
    assert [message.id for message in down.sent] == [message.id for message in well.sent]
    thread.deliver()
    assert len(down.sent) == len(well.sent) == 1


def test_a_channel_that_fails_costs_one_attempt_in_a_look(
    store: Store, settings: Settings, channels: NotificationSettings
) -> None:
    down, well = Failing(9), Failing(0)
    for actor in ("ann", "bob"):
        store.notifications.add_test(actor=actor)
    thread_of(store, settings, channels, all=down, tests=well).deliver()
    assert (down.failures, len(well.sent)) == (8, 2)


def test_a_backlog_of_a_failing_channel_holds_up_no_newer_notification(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PAGE", 2)
    down, well = Failing(9), Failing(0)
    for actor in ("ann", "bob", "cem", "dora", "eve"):
        store.notifications.add_test(actor=actor)
    thread_of(store, settings, channels, all=down, tests=well).deliver()
    assert [message.subject for message in well.sent] == ["ann", "bob", "cem", "dora", "eve"]
    assert down.failures == 8


def test_an_attempt_that_hangs_is_counted_as_failed_and_left(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "ATTEMPT_SECONDS", 0.5)
    answered = threading.Event()

    def hangs(_: Message) -> None:
        answered.wait(20)

    store.notifications.add_test(actor="ann")
    thread_of(store, settings, channels, all=hangs, tests=Failing(0)).deliver()  # type: ignore[arg-type]
    answered.set()
    assert state_of(store) == [("webhooks.all", "waiting", 1), ("webhooks.tests", "sent", 1)]
    assert "did not end within" in str(store.notifications.list()[0].deliveries[0].problem)


def test_a_channel_without_its_secret_is_off_and_the_monitor_goes_on(
    store: Store, settings: Settings, channels: NotificationSettings, receiver: Receiver, tmp_path: Path
) -> None:
    broken = channels.webhooks["all"].model_copy(update={"secret_file": tmp_path / "gone"})
    channels = channels.model_copy(update={"webhooks": {**channels.webhooks, "all": broken}})
    store.notifications.add_test(actor="ann")
    exporter = Exporter(cycle_interval_seconds=settings.cycle_interval_seconds)
    with daemons.running(settings.model_copy(update={"notifications": channels}), exporter):
        until(lambda: [state for _, state, _ in state_of(store)] == ["waiting", "sent"])
    assert "cannot be read" in str(store.notifications.list()[0].deliveries[0].problem)
    assert [request.path for request in receiver.received] == ["/tests"]
    usable = [
        exporter.registry.get_sample_value("lifelong_notification_channel_usable", {"channel": channel})
        for channel in channels.channels
    ]
    assert usable == [0, 1]


def test_a_channel_that_fails_for_ever_is_given_up_and_said(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_due(monkeypatch)
    thread = thread_of(store, settings, channels, all=Failing(1000), tests=Failing(0))
    store.notifications.add_test(actor="ann")
    for _ in range(delivery.MOST_ATTEMPTS + 2):
        thread.deliver()
    assert state_of(store)[0] == ("webhooks.all", "given_up", delivery.MOST_ATTEMPTS)
    (entry,) = store.audit.list(action="notifications.give_up")
    assert (entry.subject, entry.details["problem"]) == ("webhooks.all", "it is down.")
    samples = {
        sample.labels["outcome"]: sample.value
        for sample in next(iter(thread._attempts.collect())).samples
        if sample.labels["channel"] == "webhooks.all"
    }
    assert samples == {"sent": 0, "failed": delivery.MOST_ATTEMPTS - 1, "given_up": 1}


def test_pauses_between_attempts_grow_up_to_an_hour(store: Store) -> None:
    at = store.notifications.add_test(actor="ann").created_at
    made = delivery.Delivery(channel="webhooks.all", due_at=at)
    pauses = []
    while made.due_at is not None:
        made = delivery.attempted(made, "it is down.", at)
        pauses += [made.due_at - at] if made.due_at else []
    assert pauses[:3] == [timedelta(seconds=5), timedelta(seconds=10), timedelta(seconds=20)]
    assert max(pauses) == timedelta(hours=1)
    assert len(pauses) == delivery.MOST_ATTEMPTS - 1


def test_old_news_is_not_sent_when_channels_are_added(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.notifications.add_test(actor="ann")
    monkeypatch.setattr(delivery, "STALE", timedelta(0))
    sender = Failing(0)
    thread_of(store, settings, channels, all=sender, tests=sender).deliver()
    (notification,) = store.notifications.list()
    assert (notification.deliveries, notification.due_at, sender.sent) == ([], None, [])


def test_a_fault_of_one_message_does_not_stop_the_next(
    store: Store, settings: Settings, channels: NotificationSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_due(monkeypatch)
    broken, _ = (store.notifications.add_test(actor=actor) for actor in ("ann", "bob"))

    def fails_once(notification: Notification, of: NotificationSettings) -> Message:
        if notification.id == broken.id:
            raise KeyError("a detail")
        return message_of(notification, of)

    message_of = delivery.message_of
    monkeypatch.setattr(delivery, "message_of", fails_once)
    sender = Failing(0)
    thread = thread_of(store, settings, channels, all=sender, tests=Failing(0))
    for _ in range(delivery.MOST_ATTEMPTS + 1):
        thread.deliver()
    assert [message.happened[:3] for message in sender.sent] == ["bob"]


def test_two_monitors_send_once(store: Store, settings: Settings, channels: NotificationSettings) -> None:
    """The second one looks while the first one sends."""
    sent: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def slow(message: Message) -> None:
        sent.append(message.id)
        inside.set()
        go_on.wait(20)

    first = thread_of(store, settings, channels, all=slow, tests=Failing(0))  # type: ignore[arg-type]
    second = thread_of(store, settings, channels, all=slow, tests=Failing(0))  # type: ignore[arg-type]
    store.notifications.add_test(actor="ann")
    thread = threading.Thread(target=first.deliver)
    thread.start()
    assert inside.wait(20)
    second.deliver()
    go_on.set()
    thread.join()
    assert len(sent) == 1


SCRIPT = """
import sys
from pathlib import Path
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_monitor.notifications import delivery
from prometheus_client import CollectorRegistry

settings = Settings.model_validate_json(Path(sys.argv[1]).read_text())
delivery.LEAST_LEASE_SECONDS = 1.0
with Store.from_settings(settings) as store:
    registry = CollectorRegistry()
    senders = delivery.senders_of(registry, settings.notifications)
    counter = delivery.attempt_counter(registry, settings.notifications)
    delivery.NotificationThread(store, settings, senders, counter).deliver()
"""


def test_what_a_killed_monitor_has_sent_is_sent_again_with_the_same_id(
    store: Store, settings: Settings, channels: NotificationSettings, receiver: Receiver, tmp_path: Path
) -> None:
    """It dies after the receiver has the message, before the delivery is recorded."""
    answered = threading.Event()
    receiver.answers = [lambda _: answered.wait(20) and None]
    settings = settings.model_copy(update={"notifications": channels, "lease_seconds": 1.0})
    file = tmp_path / "settings.json"
    file.write_text(settings.model_dump_json())
    notification = store.notifications.add_test(actor="ann")
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(file)])
    assert receiver.arrived.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    answered.set()
    assert store.notifications.list()[0].deliveries == []
    registry = CollectorRegistry()
    senders = delivery.senders_of(registry, channels)
    other = NotificationThread(store, settings, senders, attempt_counter(registry, channels))

    def delivered() -> bool:
        other.deliver()
        return store.notifications.list()[0].due_at is None

    until(delivered)
    ids = [request.headers["webhook-id"] for request in receiver.received if request.path == "/all"]
    assert ids == [str(notification.id)] * 2
