"""Server-sent events (HTML Living Standard, section 9.2): their text, and the response that sends them."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from starlette.responses import StreamingResponse
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
