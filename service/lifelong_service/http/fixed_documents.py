"""Documents that are the same for everybody and as long as this process lives: bytes that are made once."""

import hashlib
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response


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
        if any(one.strip().removeprefix("W/") in (self._headers["ETag"], "*") for one in known.split(",")):
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._media_type, headers=self._headers)
