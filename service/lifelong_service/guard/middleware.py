"""Middleware of every request: time limit, metrics, name of the worker, and 500 for unexpected errors."""

import errno
import logging
import re
import time
from functools import partial
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lifelong_core.values.errors import UnavailableError
from lifelong_service import metrics
from lifelong_service.bodies.limits import TIME_LIMIT
from lifelong_service.guard.errors import bad_head_response, error_response, internal_error_response
from lifelong_service.guard.request_counts import RequestCounts
from lifelong_service.process.draining import Draining

logger = logging.getLogger(__name__)
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_NO_THREAD: Final = "can't start new thread"
"""Text of Python's RuntimeError when there is no memory for a stack."""
_SINGLE = frozenset((b"authorization", b"content-encoding", b"content-length", b"content-type", b"host"))
_LENGTH_DIGITS = 20
"""Largest number of digits of a Content-Length, with leading zeros; Python does not convert thousands of them."""
_OWN = b"x-lifelong-"
_HOST = re.compile(rb"(\[[0-9A-Za-z:.%]+\]|[\w.~!$&'()*+,;=%-]*)(:[0-9]*)?", re.ASCII)


class RequestMiddleware:
    """Counts a request and names the worker; answers 503 if it takes too long or there is no room for it, else 500.

    Every answer forbids browsers to guess its content type.

    No exception reaches the server: BentoML would let the client wait until its own timeout.

    Args:
        app: the application.
        timeout_seconds: time limit of a request; below BentoML's `traffic.timeout`, whose answer has another form.
        worker: value of the header X-Lifelong-Worker.
        draining: the end of the worker. While it drains, answers close their connections, so that no later request
            uses a connection that is being closed.
    """

    def __init__(self, app: ASGIApp, *, timeout_seconds: float, worker: str, draining: Draining) -> None:
        self._app = app
        self._draining = draining
        self._timeout = timeout_seconds
        self._worker = worker.encode()
        self._counts = RequestCounts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0
        has_begun = False

        async def send_named(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message["headers"] = [
                    *message["headers"],
                    (b"x-lifelong-worker", self._worker),
                    _NO_SNIFFING,
                ]
                if self._draining.has_begun:
                    message["headers"].append((b"connection", b"close"))
            await send(message)
            if message["type"] == "http.response.start":  # not before: an earlier answer may hold it up
                status = message["status"]

        try:
            async with self._draining.limit(self._timeout) as limit:
                scope[TIME_LIMIT] = partial(self._draining.put_off, limit)
                try:
                    answer = head_refusal(scope) or self._app
                    await answer(scope, receive, send_named)
                finally:
                    self._draining.forget(limit)
        except TimeoutError:
            await self._give_up(scope, receive, send_named, started=status != 0)
        except ClientDisconnect:
            status = metrics.CLIENT_CLOSED_REQUEST
        except Exception as error:  # the last line of defence
            logger.exception("a request failed", extra={"details": {"path": scope["path"]}})
            if not has_begun:
                await _response_to(error)(scope, receive, send_named)
        finally:
            route = getattr(scope.get("route"), "path", "unmatched")
            self._counts.note(route, status or metrics.NO_ANSWER, time.perf_counter() - began)

    async def _give_up(self, scope: Scope, receive: Receive, send: Send, *, started: bool) -> None:
        logger.warning("a request timed out", extra={"details": {"path": scope["path"]}})
        if started:
            return
        if not scope["path"].startswith(("/v1/admin/", "/console")):
            hint = "Try again later; send a request_id to make that safe."
        elif scope["method"] == "GET":
            hint = "Try again later."
        else:
            hint = "The change may still take effect: look whether it did before you repeat it."
        reason = "this worker stops" if self._draining.has_begun else f"no answer within {self._timeout:g} s"
        error = UnavailableError(f"{reason}.", hint=hint)
        await error_response(error)(scope, receive, send)


def _response_to(error: Exception) -> ASGIApp:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "Free some space on the disks of LIFELONG_DATA_DIRECTORY and of temporary files."
        return error_response(UnavailableError("a disk of the service is full.", hint=hint))
    if isinstance(error, MemoryError) or str(error) == _NO_THREAD:
        hint = "Try again later. Operators: raise LIFELONG_MAXIMUM_WORKER_MEMORY_BYTES, or set fewer LIFELONG_WORKERS."
        return error_response(UnavailableError("the worker has no memory left for this request.", hint=hint))
    return internal_error_response()


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
