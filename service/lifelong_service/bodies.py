"""Reading request bodies within limits: what is declared is checked first, what arrives is counted."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.types import Message, Receive

from lifelong_core.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.errors import sentence

Document = TypeVar("Document", bound=BaseModel)


class LimitedReceive:
    """An ASGI `receive` that stops a body at `maximum_bytes`.

    Frameworks swallow what is raised while they parse a body; so the error is kept in `error` as well.
    """

    def __init__(self, receive: Receive, headers: Headers, *, maximum_bytes: int, setting: str) -> None:
        self._receive = receive
        self._headers = headers
        self._maximum = maximum_bytes
        self._setting = setting
        self._received = 0
        self.error: PayloadTooLargeError | None = None

    def check_declared(self) -> None:
        """Look at Content-Length before a byte is read.

        Raises:
            PayloadTooLargeError: it is above the limit.
            InvalidInputError: it is not a number.
        """
        declared = self._headers.get("content-length")
        if declared is None:
            return
        if not declared.isdecimal():
            raise InvalidInputError(
                "expected a number.", field="Content-Length", mend="Send the size in bytes."
            )
        if int(declared) > self._maximum:
            raise self._too_large()

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            PayloadTooLargeError: the body has grown above the limit.
        """
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._maximum:
            raise self._too_large()
        return message

    def _too_large(self) -> PayloadTooLargeError:
        self.error = PayloadTooLargeError(
            f"the body is larger than {self._maximum} bytes.",
            field="body",
            mend=f"Send less, or raise LIFELONG_{self._setting.upper()}.",
        )
        return self.error


def media_type(headers: Headers) -> str:
    """The content type in lower case without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def parsed(body: bytes, document: type[Document]) -> Document:
    """The JSON body as a checked document.

    Raises:
        InvalidInputError: it is not JSON, or does not fit; the message names the first field at fault.
    """
    try:
        return document.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidInputError(
            sentence(first["msg"]),
            field=".".join(str(part) for part in first["loc"]) or "body",
            mend="See /openapi.json for what is expected.",
        ) from error
