"""Responses that the framework lacks: server-sent events, and documents that are the same for all clients."""

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = ": \n\n"
"""A comment, which clients ignore: it keeps proxies from closing an idle connection."""


def event_text(name: str, values: Mapping[str, Any], *, identifier: str) -> str:
    """Return an event with JSON values; a client that reconnects sends its identifier as `Last-Event-ID`."""
    return f"id: {identifier}\nevent: {name}\ndata: {json.dumps(values, allow_nan=False)}\n\n"


def retry_text(milliseconds: int) -> str:
    """Return the time after which a client reconnects when the stream has ended."""
    return f"retry: {milliseconds}\n\n"


class EventStream(StreamingResponse):
    """Sends events until their generator ends or the client leaves.

    Args:
        events: texts of events.
        close: called at the end of the stream.
    """

    def __init__(self, events: AsyncGenerator[str, None], close: Callable[[], None]) -> None:
        self._events = events
        self._close = close
        # Proxies must pass each event on at once.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type=MEDIA_TYPE, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, then call `close`."""
        try:
            async with aclosing(self._events):
                await super().__call__(scope, receive, send)
        finally:
            self._close()


class FixedDocument:
    """A document with its entity tag.

    Args:
        content: its bytes.
        media_type: its type.
        headers: further headers of every answer.
    """

    def __init__(self, content: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        self._content = content
        self._media_type = media_type
        self.version = hashlib.sha256(content).hexdigest()[:12]
        """Changes with the content."""
        self._headers = {"ETag": f'"{self.version}"', **(headers or {})}

    def answer(self, request: Request) -> Response:
        """Return the document, or 304 to a client that has it."""
        known = request.headers.get("if-none-match", "")
        if any(tag.strip().removeprefix("W/") in (self._headers["ETag"], "*") for tag in known.split(",")):
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._media_type, headers=self._headers)
