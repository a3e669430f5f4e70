"""A request whose body follows our rules, for the framework and for our own endpoints."""

import json
from io import BytesIO
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from lifelong_core.values.errors import PayloadTooLargeError
from lifelong_service.bodies.json_documents import NUL, field_with_nul, read_values
from lifelong_service.bodies.parsing import parse_in_turn


class StrictRequest(Request):
    """A request whose JSON body follows the standard, stays within limits, and holds no U+0000.

    The framework replaces errors while it reads the body; so an error about its size is kept in `error`.
    """

    error: PayloadTooLargeError | None = None

    async def body(self) -> bytes:
        """Return the whole body, joined as it arrives: a list of its parts would double the memory."""
        if not hasattr(self, "_body"):
            message = await self._message()
            self._body = message.get("body", b"")
            if message.get("more_body", False):
                content = BytesIO()
                content.write(self._body)
                while message.get("more_body", False):
                    message = await self._message()
                    content.write(message.get("body", b""))
                self._body = content.getvalue()
        return self._body

    async def _message(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message

    async def json(self) -> Any:
        """Return the document in the body.

        Raises:
            json.JSONDecodeError: it is not JSON; the framework answers it with 422.
            PayloadTooLargeError: it has too many parts.
        """
        body = await self.body()
        return await parse_in_turn(lambda: self._values(body), len(body))

    def _values(self, body: bytes) -> Any:
        try:
            values = read_values(body)
        except PayloadTooLargeError as error:
            self.error = error
            raise
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        if (field := field_with_nul(body)) is not None:
            raise json.JSONDecodeError(f"{NUL}: {field}", "", 0)
        return values
