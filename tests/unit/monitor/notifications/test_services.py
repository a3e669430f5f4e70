"""E-mail to a real SMTP server; Slack and Teams as apprise sends them, to a local server."""

import json
from pathlib import Path

import pytest

from lifelong_core.configuration.notification_fields import MessageChannel
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.notifications.services import Service
from lifelong_monitor.notifications.words import Message
from tests.unit.monitor.notifications.receivers import http_receiver, smtp_receiver

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # apprise imports it
MESSAGE = Message(
    "1", "test", "2026-01-01", "ann", {}, "New head", "Head 2 serves.", "Shift.", "Read.", None, "r.md"
)
SLACK = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
TEAMS = (
    "https://prod-01.westeurope.logic.azure.com:443/workflows/643e69f83c8944/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=KODuebWbDGYFr0z0eu"
)


def service(tmp_path: Path, kind: str, url: str) -> Service:
    file = tmp_path / "url"
    file.write_text(url)
    return Service("team", MessageChannel(service=kind, url_file=file))  # type: ignore[arg-type]


def test_e_mail_reaches_every_recipient(tmp_path: Path) -> None:
    with smtp_receiver() as (port, mails):
        url = f"mailto://127.0.0.1:{port}?from=lifelong@h.example&to=a@h.example,b@h.example&name=Lifelong"
        service(tmp_path, "mail", url).send(MESSAGE)
    assert sorted(one for envelope, _ in mails for one in envelope.rcpt_tos) == ["a@h.example", "b@h.example"]
    mail = mails[0][1]
    assert mail["Subject"] == "New head"
    text = mail.get_body(("plain", "html")).get_content()  # type: ignore[union-attr]
    assert "Head 2 serves." in text
    assert "Runbook: r.md" in text


def test_a_mail_server_that_is_down_is_a_failure(tmp_path: Path) -> None:
    down = service(tmp_path, "mail", "mailto://127.0.0.1:1?from=a@h.example&to=b@h.example")
    with pytest.raises(UnavailableError):
        down.send(MESSAGE)


def test_slack_gets_title_and_text_and_its_refusal_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apprise.plugins.slack import NotifySlack

    with http_receiver() as receiver:
        monkeypatch.setattr(NotifySlack, "webhook_url", f"{receiver.url}/services")
        receiver.answers = [200, 403, 302]
        slack = service(tmp_path, "slack", SLACK)
        with pytest.raises(UnavailableError):  # apprise wants the text ok of Slack, too
            slack.send(MESSAGE)
        with pytest.raises(UnavailableError, match="403"):
            slack.send(MESSAGE)
        with pytest.raises(UnavailableError, match="302"):
            slack.send(MESSAGE)
    assert receiver.received[0].path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    document = json.dumps(json.loads(receiver.received[0].body))
    assert "New head" in document
    assert "Head 2 serves." in document


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("slack", "json://127.0.0.1/"),
        ("slack", "file:///etc/passwd"),
        ("slack", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"),
        ("slack", SLACK.replace("hooks.slack.com", "hooks.slack.com.evil.example")),
        ("slack", SLACK.replace("https", "http")),
        ("slack", TEAMS),
        ("teams", SLACK),
        ("teams", TEAMS.replace("logic.azure.com:443", "evil.example")),
        ("teams", f"{TEAMS}&template=/etc/passwd"),
        ("slack", f"{SLACK}?mode=bot"),
        ("mail", SLACK),
        ("mail", "mailto://h.example"),
        ("mail", "mailtos://h.example?from=a@h.example&to=b@h.example&pgpkey=/etc/passwd"),
        ("mail", "mailtos://h.example?from=a@h.example&to=b@h.example&verify=no"),
    ],
)
def test_other_addresses_are_refused(tmp_path: Path, kind: str, url: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no address of {kind}"):
        service(tmp_path, kind, url)


@pytest.mark.parametrize(("kind", "url"), [("slack", SLACK), ("teams", TEAMS)])
def test_addresses_of_the_services_are_accepted(tmp_path: Path, kind: str, url: str) -> None:
    assert service(tmp_path, kind, url)
