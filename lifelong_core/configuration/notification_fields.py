"""The settings of notifications: channels, the kinds that each of them gets, and the addresses of links."""

import ipaddress
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lifelong_core.values.names import Name


def _check_network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError as error:
        raise ValueError("expected an IP address or a network, such as 10.0.0.0/24") from error


def _check_url(value: str) -> str:
    parts = urllib.parse.urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("expected https://host/path, or http://, without user and password")
    return value.rstrip("/")


NotificationKind: TypeAlias = Literal[
    "swap",
    "refuse",
    "head_proposal",
    "retraining_proposal",
    "target_missed",
    "acceptance_failed",
    "job_failed",
    "test",
]
KINDS: tuple[NotificationKind, ...] = get_args(NotificationKind)
Network = Annotated[str, AfterValidator(_check_network)]
Url = Annotated[str, AfterValidator(_check_url)]
_STRICT = ConfigDict(extra="forbid", frozen=True)


class WebhookChannel(BaseModel):
    """A receiver of signed POST requests."""

    model_config = _STRICT
    url: Url = Field(description="Address; http:// only to an address in `networks`.")
    secret_file: Path = Field(description="File with the signing key, 24 bytes or more in base64.")
    kinds: tuple[NotificationKind, ...] = Field(default=KINDS, description="What it gets.")


class MessageChannel(BaseModel):
    """Recipients of e-mail, or a room of Slack or Teams; needs the extra `notify`."""

    model_config = _STRICT
    service: Literal["mail", "slack", "teams"] = Field(description="How messages are sent.")
    url_file: Path = Field(
        description="File with mailtos://... of apprise, or the address of the incoming webhook."
    )
    kinds: tuple[NotificationKind, ...] = Field(default=KINDS, description="What it gets.")


class NotificationSettings(BaseModel):
    """Channels of notifications; none: nothing is sent."""

    model_config = _STRICT
    webhooks: dict[Name, WebhookChannel] = Field(
        default_factory=dict[str, WebhookChannel],
        description="Receivers of signed POST requests, by name: [notifications.webhooks.pager] with url, secret_file"
        " and, if not all, kinds in the file, or as JSON.",
    )
    messages: dict[Name, MessageChannel] = Field(
        default_factory=dict[str, MessageChannel],
        description="E-mail, Slack and Teams, by name: [notifications.messages.team] with service (mail, slack, teams),"
        " url_file and, if not all, kinds in the file, or as JSON; needs the extra notify.",
    )
    networks: tuple[Network, ...] = Field(
        default=(),
        description="Addresses or networks that webhooks may reach beside public ones, such as 10.0.0.0/24.",
    )
    console_url: Url | None = Field(
        default=None,
        description="Address of the console for people, such as https://lifelong.example.org/console, for links to it"
        " and to its runbooks; None: no links.",
    )

    @property
    def channels(self) -> Mapping[str, WebhookChannel | MessageChannel]:
        """All channels by their names, such as webhooks.pager."""
        webhooks = {f"webhooks.{name}": channel for name, channel in self.webhooks.items()}
        return webhooks | {f"messages.{name}": channel for name, channel in self.messages.items()}

    @property
    def secret_files(self) -> list[Path]:
        """The files that only monitors may read."""
        webhooks = [channel.secret_file for channel in self.webhooks.values()]
        return webhooks + [channel.url_file for channel in self.messages.values()]
