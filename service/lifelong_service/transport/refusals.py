"""Answers to requests that a connection refuses before they reach the application."""

import json
from http import HTTPStatus
from typing import NamedTuple

MAXIMUM_HEAD_BYTES = 65_536
"""Largest head of a request: URL, names and values, and `HEADER_BYTES` for each header. Also the limit of an incomplete
head, and of framing and trailers of a body, without the received piece in which the request begins; the last piece may
exceed it."""
MAXIMUM_LOGIN_BYTES = 16_384
"""Largest form of a login, which needs no token."""
MAXIMUM_PIPELINED = 32
"""Largest number of requests of a connection that wait for the answer to an earlier one."""


def _answer(status: HTTPStatus, message: str, hint: str, headers: str = "") -> bytes:
    """Return a complete answer for a connection that is then closed."""
    code = status.phrase.lower().replace(" ", "_")
    body = json.dumps({"error": {"code": code, "field": None, "message": message, "hint": hint}})
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{headers}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    ).encode()


class Refusal(NamedTuple):
    """Why a connection is closed, and its last answer."""

    reason: str
    """as the metric counts it"""
    answer: bytes
    """empty: the connection is closed without one"""


MALFORMED = Refusal(
    "malformed",
    _answer(
        HTTPStatus.BAD_REQUEST,
        "this is not a request of HTTP/1.1.",
        "End every line of its head with CR LF, and declare the length of its body once.",
    ),
)
PIPELINED = Refusal(
    "malformed",
    _answer(
        HTTPStatus.BAD_REQUEST,
        f"more than {MAXIMUM_PIPELINED} requests of this connection wait for an earlier answer.",
        "Read answers before you send further requests, or use several connections.",
    ),
)
LARGE_HEAD = Refusal(
    "large_head",
    _answer(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"the head of the request is larger than {MAXIMUM_HEAD_BYTES} bytes.",
        "Send fewer or shorter headers, and data in the body.",
    ),
)
LARGE_FRAMING = Refusal("large_head", b"")
TIMED_OUT = Refusal(
    "header_timeout",
    _answer(
        HTTPStatus.REQUEST_TIMEOUT,
        "the head of the request did not arrive in time.",
        "Send all headers at once (LIFELONG_HEADER_TIMEOUT_SECONDS).",
    ),
)
NEVER_BEGUN = Refusal("header_timeout", b"")
NO_ROOM = Refusal(
    "refused",
    _answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "too many connections.",
        "Use fewer connections, or try again later.",
        "Retry-After: 1\r\n",
    ),
)
EVICTED = Refusal(
    "evicted",
    _answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "this connection was slow and made room for others.",
        "Send the whole request at once, or try again later.",
        "Retry-After: 1\r\n",
    ),
)
SLOW_LOGIN = Refusal(
    "login",
    _answer(
        HTTPStatus.REQUEST_TIMEOUT,
        "the form of the login did not arrive in time.",
        "Send it at once (LIFELONG_LOGIN_TIMEOUT_SECONDS).",
    ),
)
LARGE_LOGIN = Refusal(
    "login",
    _answer(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the form of the login is larger than {MAXIMUM_LOGIN_BYTES} bytes.",
        "Send the token and the next page only.",
    ),
)
