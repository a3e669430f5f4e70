"""E-mail, Slack and Microsoft Teams, by apprise.

Of the services of apprise only these three are loaded. For Slack and Teams only the services' own addresses are taken,
so a setting cannot lead to another host, scheme or file.
"""

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lifelong_core.configuration.notification_fields import MessageChannel
from lifelong_core.runtime.files import read_secret
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.notifications.words import Message

if TYPE_CHECKING:
    from apprise import NotifyBase

_PARAMETERS: Final = {
    "mail": frozenset({"from", "to", "cc", "bcc", "name", "smtp", "mode", "user", "pass", "reply"}),
    "slack": frozenset({"mode"}),
    "teams": frozenset({"api-version", "sp", "sv", "sig", "pa"}),
}
"""Of an address; others of apprise read files (template, pgpkey) or accept any certificate (verify)."""


class Service:
    """Sends messages to the recipients of one channel.

    Args:
        name: of the channel.
        channel: its settings.

    Raises:
        ConfigurationError: apprise is not installed, or the address is not one of the service.
    """

    def __init__(self, name: str, channel: MessageChannel) -> None:
        self._service = _service(channel, f"notifications.messages.{name}")

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            UnavailableError: the service does not take it.
        """
        from apprise import LogCapture

        with LogCapture(level=logging.WARNING, fmt="%(message)s") as said:
            if not self._service.notify(body=message.text, title=message.title):
                said.seek(0)
                raise UnavailableError(" ".join(said.read().split()) or "it was refused.")


def _service(channel: MessageChannel, field: str) -> "NotifyBase":
    try:
        from apprise.plugins.email import NotifyEmail
        from apprise.plugins.slack import NotifySlack
        from apprise.plugins.workflows import NotifyWorkflows
    except ImportError as error:
        hint = 'Install the extra, in the clone of lifelong: pip install -c constraints.txt -e ".[notify]".'
        raise ConfigurationError("apprise is not installed.", field=field, hint=hint) from error
    services: dict[str, Any] = {"mail": NotifyEmail, "slack": NotifySlack, "teams": NotifyWorkflows}
    service, url = services[channel.service], read_secret(channel.url_file, field)
    known: dict[str, Any] | None = None
    if channel.service == "mail" and url.startswith(("mailto://", "mailtos://")):
        known = service.parse_url(url)
    elif channel.service != "mail" and url.startswith("https://"):
        known = service.parse_native_url(url)
    if known and _PARAMETERS[channel.service].issuperset(known["qsd"]):
        with suppress(TypeError):  # AppriseImproperlyConfigured is one; its message may hold the secret
            return service(**{**known, "redirect": False, "include_image": False})
    raise ConfigurationError(
        f"{channel.url_file} holds no address of {channel.service}.",
        field=f"{field}.url_file",
        hint="Of Slack and Teams, copy that of the incoming webhook. Of e-mail:"
        " mailtos://user:password@server:587?from=a@example.org&to=b@example.org,c@example.org.",
    )
