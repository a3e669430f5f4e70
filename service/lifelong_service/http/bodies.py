"""Request bodies within limits: the declared length is checked first, received bytes are counted."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.types import Message, Receive

from lifelong_core.values.errors import (
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_core.values.validation_errors import read_json
from lifelong_service.http.json_structure import check_structure
from lifelong_service.http.memory_release import MemoryRelease
from lifelong_service.limits.body_budget import BodyShare

TIME_LIMIT = "lifelong.time_limit"
"""Key of the scope of a request: a function that takes the new end of its time limit, in seconds of the event loop."""

Document = TypeVar("Document", bound=BaseModel)
Parsed = TypeVar("Parsed")

SMALL_BODY = 16_384
"""Largest body in bytes that is parsed in the event loop; larger ones would delay other requests."""

_PARSER = ThreadPoolExecutor(1, "parser")
"""Parses one large body at a time, because parsers hold the interpreter's lock, and always in the same thread, because
each thread keeps its largest memory."""
MEMORY_RELEASE = MemoryRelease(_PARSER)
"""Notified of the end of every body."""

NUL = "a text holds the character U+0000, which no database keeps"
SEE_OPENAPI = "See /openapi.json for what is expected."
_ESCAPED_NUL = b"\\u0000"
_HOLDING_TEXTS = frozenset((str, list, dict))


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


async def parse_in_turn(parse: Callable[[], Parsed], size: int) -> Parsed:
    """Return the result of `parse`: small bodies are parsed at once, others in a thread, one at a time.

    Args:
        parse: reads the body.
        size: size of the body in bytes.
    """
    if size <= SMALL_BODY:
        return parse()
    return await asyncio.get_running_loop().run_in_executor(_PARSER, parse)


def read_values(body: bytes) -> Any:
    """Return the values in a JSON body, by the rules of the standard.

    Python's own reader accepts NaN and lone surrogates, which a later JSON answer cannot contain.

    Raises:
        ValueError: it is not JSON.
        PayloadTooLargeError: it has too many parts.
    """
    _check_size(body)
    return from_json(body, allow_inf_nan=False, cache_strings="none")


def parse_document(body: bytes, document: type[Document]) -> Document:
    """Return the JSON body as a validated document.

    Raises:
        PayloadTooLargeError: it has too many parts.
        InvalidInputError: it is not JSON, or does not fit; the message names the first field at fault.
    """
    _check_size(body)
    try:
        found = read_json(document, body, is_request=True)
    except InvalidInputError as error:
        raise body_error(error) from error
    if (field := field_with_nul(body)) is not None:
        raise InvalidInputError(f"{NUL}.", field=field, hint="Send it without.")
    return found


def _check_size(body: bytes) -> None:
    if len(body) > SMALL_BODY:  # a smaller one cannot exceed the limits
        check_structure(body)


def body_error(error: InvalidInputError) -> InvalidInputError:
    """Return an error of a document as an error of the request body."""
    field = "body" if error.field in (None, "document") else error.field
    return InvalidInputError(error.message, field=field, hint=error.hint or SEE_OPENAPI)


def field_with_nul(body: bytes) -> str | None:
    """Return the place of a text or field name with U+0000, which PostgreSQL refuses and SQLite truncates."""
    if _ESCAPED_NUL not in body:
        return None
    place = _place_of_nul(from_json(body))
    return None if place is None else ".".join(map(str, place)) or "body"


def _place_of_nul(value: Any) -> tuple[int | str, ...] | None:
    """Names and indices that lead to the text; those of the object where it is a name."""
    if isinstance(value, str):
        return () if "\0" in value else None
    parts: Iterable[tuple[int | str, Any]] = ()
    if isinstance(value, dict):
        if any("\0" in name for name in value):
            return ()
        parts = value.items()
    elif isinstance(value, list) and _HOLDING_TEXTS.intersection(map(type, value)):
        parts = enumerate(value)
    for name, part in parts:
        if (place := _place_of_nul(part)) is not None:
            return (name, *place)
    return None
