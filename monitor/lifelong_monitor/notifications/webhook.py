"""Webhooks: signed POST requests by the Standard Webhooks specification (standardwebhooks.com), to allowed addresses.

The host is looked up once; the request goes to exactly the address that was checked, so a second answer of a name
server cannot lead elsewhere. Redirects are not followed, and proxies of the environment are not used.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict

import httpx

from lifelong_core.configuration.notification_fields import WebhookChannel
from lifelong_core.runtime.addresses import is_public, is_within
from lifelong_core.runtime.files import read_secret
from lifelong_core.runtime.tracing import carried_context
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.notifications.words import Message

SEND_SECONDS = 10.0
"""Longest duration of one attempt."""
LEAST_KEY_BYTES = 24
_PREFIX = "whsec_"


class Webhook:
    """Sends messages to one receiver.

    Args:
        name: of the channel.
        channel: its settings.
        networks: that may be reached beside public addresses.

    Raises:
        ConfigurationError: the key cannot be read, or is too short.
    """

    def __init__(self, name: str, channel: WebhookChannel, networks: Sequence[str]) -> None:
        self._url = httpx.URL(channel.url)
        self._networks = networks
        field = f"notifications.webhooks.{name}.secret_file"
        try:
            self._key = base64.b64decode(read_secret(channel.secret_file, field).removeprefix(_PREFIX))
        except binascii.Error:
            self._key = b""
        if len(self._key) < LEAST_KEY_BYTES:
            raise ConfigurationError(
                f"{channel.secret_file} holds no key of at least {LEAST_KEY_BYTES} bytes in base64.",
                field=field,
                hint="Make one: openssl rand -base64 32.",
            )
        self._trust = httpx.create_ssl_context()

    def send(self, message: Message) -> None:
        """Send a message; any answer with a status of 2xx is a success.

        Raises:
            UnavailableError: the address is not allowed, the receiver does not answer, or it answers otherwise.
        """
        body = json.dumps(asdict(message)).encode()
        try:
            status = asyncio.run(
                self._post(body, signature_headers(self._key, message.id, int(time.time()), body))
            )
        except TimeoutError as error:
            raise UnavailableError(f"no answer within {SEND_SECONDS:g} s.") from error
        except (httpx.HTTPError, OSError) as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from error
        if not 200 <= status < 300:
            raise UnavailableError(f"the receiver answered {status}; redirects are not followed.")

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        # The timeout of httpx is for each step: a receiver that sends a byte at a time would hold up the others.
        async with asyncio.timeout(SEND_SECONDS):
            address = await self._allowed_address()
            async with httpx.AsyncClient(verify=self._trust, trust_env=False, timeout=SEND_SECONDS) as client:
                request = client.build_request(
                    "POST",
                    self._url.copy_with(host=address),
                    content=body,
                    headers={**headers, **carried_context(), "Host": self._url.netloc.decode()},
                    extensions={"sni_hostname": self._url.host},
                )
                response = await client.send(request, stream=True)  # the body of the answer is not read
                await response.aclose()
                return response.status_code

    async def _allowed_address(self) -> str:
        """The first address of the host that the settings allow."""
        found = await asyncio.get_running_loop().getaddrinfo(self._url.host, None, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in found]
        is_encrypted = self._url.scheme == "https"
        for address in addresses:
            if is_within(address, self._networks) or (is_encrypted and is_public(address)):
                return address
        raise UnavailableError(
            f"{self._url.host} is {', '.join(addresses)}: not in LIFELONG_NOTIFICATIONS__NETWORKS"
            + (", and not public." if is_encrypted else ", which http:// needs.")
        )


def signature_headers(key: bytes, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Headers with id, time in seconds since 1970 and signature: HMAC-SHA256 of `id.timestamp.body` in base64."""
    content = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
