"""Checks of a request's head that need no route: what two servers, or two readers of one, may understand otherwise."""

import re

from starlette.responses import Response
from starlette.types import Scope

from lifelong_service.http.errors import bad_head_response

_SINGLE = frozenset((b"authorization", b"content-encoding", b"content-length", b"content-type", b"host"))
_LENGTH_DIGITS = 20
"""Largest number of digits of a Content-Length, with leading zeros; Python does not convert thousands of them."""
_OWN = b"x-lifelong-"
_HOST = re.compile(rb"(\[[0-9A-Za-z:.%]+\]|[\w.~!$&'()*+,;=%-]*)(:[0-9]*)?", re.ASCII)


def head_refusal(scope: Scope) -> Response | None:
    """Return 400 for a head whose token, host, body or end is ambiguous; None for any other.

    After it the connection is closed.
    """
    seen: set[bytes] = set()
    encodings: list[bytes] = []
    for name, value in scope["headers"]:
        if name in _SINGLE or name.startswith(_OWN):
            if name in seen:
                return bad_head_response(name.decode().title(), "the header is given twice.", "Give it once.")
            seen.add(name)
            if name == b"host" and not _HOST.fullmatch(value):
                return bad_head_response(
                    "Host", "expected a host, with or without a port.", "Send Host: HOST."
                )
            if name == b"content-length" and len(value) > _LENGTH_DIGITS:
                return bad_head_response(
                    "Content-Length",
                    f"expected at most {_LENGTH_DIGITS} digits.",
                    "Send the size in bytes without leading zeros.",
                )
        elif name == b"transfer-encoding":
            encodings.append(value.lower())
    if b"host" not in seen and scope["http_version"] != "1.0":
        return bad_head_response("Host", "the header is missing.", "Send Host: HOST.")
    if encodings and (
        # A proxy may read another body length, and so another next request (RFC 9112, 6.1).
        b"content-length" in seen or scope["http_version"] == "1.0" or encodings != [b"chunked"]
    ):
        return bad_head_response(
            "Transfer-Encoding",
            "the request declares the length of its body in two ways, or in one that its HTTP version lacks,"
            " or encodes its body.",
            "Send either Content-Length or, with HTTP/1.1, Transfer-Encoding: chunked.",
        )
    return None
