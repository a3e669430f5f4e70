"""Limits of request bodies: the declared length is checked first, received bytes are counted."""

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from lifelong_core.values.errors import (
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_service.clients.sharing import BodyShare

TIME_LIMIT = "lifelong.time_limit"
"""Key of the scope of a request: a function that takes the new end of its time limit, in seconds of the event loop."""


class BodyPace:
    """Extends the time limit of a request whose body arrives in parts, as long as they arrive at the lowest rate.

    Args:
        put_off: moves the end of the time limit.
        seconds: time limit of a request; the body may be late by as much.
        rate: lowest rate, bytes per second.
    """

    def __init__(self, put_off: Callable[[float], None], *, seconds: float, rate: float) -> None:
        self._put_off = put_off
        self._seconds = seconds
        self._rate = rate
        self._due: float | None = None
        """When the bytes so far would have arrived at the lowest rate; an early part earns nothing for later."""

    def note(self, count: int, *, more: bool) -> None:
        """Note the bytes of another part, and whether more follow."""
        if not more and self._due is None:
            return
        now = asyncio.get_running_loop().time()
        due = now if self._due is None else self._due + count / self._rate
        self._due = min(now, due) if more else now
        self._put_off(self._due + self._seconds)


class LimitedReceive:
    """An ASGI `receive` that stops a body at `maximum_bytes`.

    Frameworks suppress exceptions while they parse a body; so the error is kept in `error` as well.
    """

    def __init__(
        self, receive: Receive, headers: Headers, *, maximum_bytes: int, setting: str, hint: str = "Send less"
    ) -> None:
        self._receive = receive
        self._headers = headers
        self._maximum = maximum_bytes
        self._hint = f"{hint}, or raise LIFELONG_{setting.upper()}."
        self._received = 0
        self.error: LifelongError | None = None
        self.share: BodyShare | None = None
        """Its share of the budget of all bodies; None: it is not counted."""
        self.pace: BodyPace | None = None
        """Extends the time limit of the request while the body arrives; None: it is not extended."""

    @property
    def received(self) -> int:
        """Bytes of the body so far."""
        return self._received

    def check_declared(self) -> int:
        """Check Content-Length before a byte is read.

        Returns:
            Its value; 0 where there is none.

        Raises:
            PayloadTooLargeError: it is above the limit.
            InvalidInputError: it is not a number.
        """
        declared = self._headers.get("content-length")
        if declared is None:
            return 0
        if not declared.isdecimal():
            raise InvalidInputError(
                "expected a number.", field="Content-Length", hint="Send the size in bytes."
            )
        if int(declared) > self._maximum:
            raise self._too_large()
        return int(declared)

    async def discard(self, maximum_bytes: int) -> None:
        """Read a refused body to its end, up to a limit, so that its client reads the answer.

        A connection that is closed while the client sends would be reset, and the answer lost.
        """
        if "expect" in self._headers or int(self._headers.get("content-length", "0")) > maximum_bytes:
            return
        more = True
        while more:
            more = (await self._receive()).get("more_body", False)

    async def __call__(self) -> Message:
        """Return the next message.

        Raises:
            PayloadTooLargeError: the body has grown above the limit.
            UnavailableError: the budget of all bodies is exhausted.
        """
        message = await self._receive()
        count = len(message.get("body", b""))
        self._received += count
        if self._received > self._maximum:
            raise self._too_large()
        if self.share is not None:
            try:
                self.share.add(count)
            except UnavailableError as error:
                self.error = error
                raise
        if self.pace is not None:
            self.pace.note(count, more=message.get("more_body", False))
        return message

    def _too_large(self) -> PayloadTooLargeError:
        error = self.error = PayloadTooLargeError(
            f"the body is larger than {self._maximum} bytes.",
            field="body",
            hint=self._hint,
        )
        return error


def media_type(headers: Headers) -> str:
    """The content type in lower case without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
