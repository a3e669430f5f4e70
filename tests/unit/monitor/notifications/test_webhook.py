"""Webhooks: signatures, answers that are failures, and addresses that are never reached."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from lifelong_core.configuration.notification_fields import NotificationSettings, WebhookChannel
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.notifications import webhook
from lifelong_monitor.notifications.webhook import Webhook
from lifelong_monitor.notifications.words import Message
from tests.unit.monitor.notifications.receivers import Receiver, http_receiver

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE = Message(
    "1", "test", "2026-01-01T00:00:00+00:00", "ann", {"é": 1}, "Title", "It is so.", "", "Do.", None, None
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as opened:
        yield opened


def hook(
    tmp_path: Path, url: str, *, key: str = KEY, networks: tuple[str, ...] = ("127.0.0.0/8",)
) -> Webhook:
    file = tmp_path / "hook.key"
    file.write_text(f"{key}\n")
    return Webhook("pager", WebhookChannel(url=url, secret_file=file), networks)


def test_a_receiver_can_verify_id_time_and_body(tmp_path: Path, receiver: Receiver) -> None:
    hook(tmp_path, f"{receiver.url}/hooks?team=a").send(MESSAGE)
    (request,) = receiver.received
    assert request.path == "/hooks?team=a"
    document = Verifier(KEY).verify(request.body, request.headers)
    assert document == json.loads(request.body)
    assert (document["title"], document["details"]) == ("Title", {"é": 1})
    changed = request.body.replace(b"Title", b"Other")
    for body, headers in (
        (changed, request.headers),
        (request.body, {**request.headers, "webhook-id": "2"}),
        (request.body, {**request.headers, "webhook-timestamp": str(int(time.time()) - 60)}),
    ):
        with pytest.raises(WebhookVerificationError):
            Verifier(KEY).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier("whsec_" + "A" * 32).verify(request.body, request.headers)


@pytest.mark.parametrize("status", [500, 401, 302, 199 + 101])
def test_an_answer_that_is_no_success_is_a_failure(tmp_path: Path, receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    with pytest.raises(UnavailableError, match=str(status)):
        hook(tmp_path, receiver.url).send(MESSAGE)


def test_a_redirect_is_not_followed(tmp_path: Path, receiver: Receiver) -> None:
    with http_receiver() as forbidden:

        def redirect(handler: Any) -> None:
            handler.send_response(307)
            handler.send_header("Location", forbidden.url)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        receiver.answers = [redirect]
        with pytest.raises(UnavailableError, match="307; redirects are not followed"):
            hook(tmp_path, receiver.url).send(MESSAGE)
        assert forbidden.received == []


def test_a_receiver_that_sends_a_byte_at_a_time_is_left(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "SEND_SECONDS", 0.3)

    def drip(handler: Any) -> None:
        try:
            for _ in range(200):
                handler.wfile.write(b"H")
                time.sleep(0.05)
        except OSError:
            pass

    receiver.answers = [drip]
    with pytest.raises(UnavailableError, match="no answer within"):
        hook(tmp_path, receiver.url).send(MESSAGE)


@pytest.mark.parametrize(
    ("host", "networks"),
    [
        ("127.0.0.1", ()),
        ("localhost", ("10.0.0.0/8",)),
        ("[::ffff:127.0.0.1]", ("10.0.0.0/8",)),
        ("2130706433", ()),  # 127.0.0.1 as one number
        ("0x7f.1", ()),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_that_the_settings_do_not_allow_is_never_reached(
    tmp_path: Path, receiver: Receiver, host: str, networks: tuple[str, ...], scheme: str
) -> None:
    url = receiver.url.replace("127.0.0.1", host).replace("http", scheme)
    with pytest.raises(UnavailableError, match="LIFELONG_NOTIFICATIONS__NETWORKS"):
        hook(tmp_path, url, networks=networks).send(MESSAGE)
    assert receiver.received == []


def test_a_public_address_needs_https(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="which http:// needs"):
        hook(tmp_path, "http://8.8.8.8/").send(MESSAGE)


def test_the_name_is_looked_up_once(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers with another address the second time leads nowhere else."""
    import socket

    looked_up: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        looked_up.append(host)
        return real("127.0.0.1" if len(looked_up) == 1 else "127.0.0.2", *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port = receiver.url.rpartition(":")[2]
    hook(tmp_path, f"http://hooks.example:{port}/").send(MESSAGE)
    assert receiver.received[0].headers["Host"] == f"hooks.example:{port}"
    assert looked_up.count("hooks.example") == 1


@pytest.mark.parametrize("key", ["short", "whsec_c2hvcnQ=", "\x00"])
def test_a_key_that_is_too_short_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigurationError, match="24 bytes"):
        hook(tmp_path, "https://hooks.example", key=key)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone.*cannot be read") as refused:
        Webhook("pager", WebhookChannel(url="https://h.example", secret_file=tmp_path / "gone"), ())
    assert refused.value.field == "notifications.webhooks.pager.secret_file"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://", "https://a:b@host/", "ftp://host"])
def test_other_urls_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match="https://host/path"):
        NotificationSettings.model_validate({"webhooks": {"pager": {"url": url, "secret_file": tmp_path}}})
