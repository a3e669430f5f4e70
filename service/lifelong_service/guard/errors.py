"""Errors as answers: every body is `{"error": {code, field, message, hint}}`, some with `details`."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from lifelong_core.values.errors import (
    ConfigurationError,
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    LifelongError,
    NotFoundError,
    PayloadTooLargeError,
    RetryableError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from lifelong_core.values.validation_errors import describe_problems
from lifelong_service.bodies.json_documents import body_error
from lifelong_service.clients.limits import MENDING_SECONDS

logger = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[LifelongError], int], ...] = (
    # The first class that fits decides, so the special ones come before InvalidInputError.
    (PayloadTooLargeError, 413),
    (UnsupportedMediaTypeError, 415),
    (InvalidInputError, 422),
    (NotFoundError, 404),
    (ConflictError, 409),
    (UnauthenticatedError, 401),
    (ForbiddenError, 403),
    (TooManyRequestsError, 429),
    (UnavailableError, 503),
    # At run time: a database file became unreadable or read-only, which operators can fix without a restart.
    (ConfigurationError, 503),
)


def error_response(error: LifelongError) -> Response:
    """Return the answer to an error: message and hint; 500 without details for a fault of the service."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if status == 500:
        logger.error("a request failed", exc_info=error)
        return internal_error_response()
    headers: dict[str, str] = {}
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = 'Bearer realm="lifelong"'
    if isinstance(error, RetryableError):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, ConfigurationError):
        details = {"reason": str(error)}
        logger.error("the configuration keeps a request from being answered", extra={"details": details})
        headers["Retry-After"] = str(MENDING_SECONDS)
    if isinstance(error, PayloadTooLargeError):
        headers["Connection"] = "close"  # the rest of the body is not read
    return _response(
        status, error.code, error.message, error.field, error.hint, headers, details=error.details
    )


def sentence(text: str) -> str:
    """Return the message of another library with one full stop at its end."""
    return text.rstrip(". ") + "."


def internal_error_response() -> Response:
    """Return 500 for a fault of the service; only the log names the cause."""
    return _response(
        500,
        "internal",
        "the service failed on this request.",
        None,
        "Tell the operators: their log says why.",
    )


def bad_head_response(header: str, message: str, hint: str) -> Response:
    """Return 400 for a request with an ambiguous head; the connection is closed."""
    return _response(400, "bad_request", message, header, hint, {"Connection": "close"})


async def on_lifelong_error(_: Request, error: Exception) -> Response:
    """Answer an error of the product."""
    return error_response(_as(error, LifelongError))


async def on_validation_error(request: Request, error: Exception) -> Response:
    """Answer a validation error of FastAPI about parameters or a JSON body."""
    invalid = _as(error, RequestValidationError)
    problems = [problem | {"loc": _inside(problem)} for problem in invalid.errors()]
    route = request.scope.get("route")
    body = route.body_field if isinstance(route, APIRoute) else None
    described = describe_problems(
        problems, None if body is None else body.field_info.annotation, is_request=True
    )
    return error_response(body_error(described))


def _inside(problem: dict[str, Any]) -> tuple[int | str, ...]:
    """Return the location of a problem in its body, or the name of its parameter."""
    return () if problem["type"] == "json_invalid" else tuple(problem["loc"][1:])


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a rejection by the framework: unknown path, wrong method, broken multipart body."""
    http = _as(error, HTTPException)
    code = HTTPStatus(http.status_code).phrase.lower().replace(" ", "_")
    headers = dict(http.headers or {})
    match http.status_code:
        case 404:
            field, message, hint = "path", "there is no such path.", _nearest_path(request)
        case 405:
            headers["Allow"] = ", ".join(_methods_at(request, request.url.path))
            field, message = "method", f"{request.method[:80]} is not possible here."
            hint = f"Use {headers['Allow']}."
        case 400:
            field, message = "body", sentence(http.detail)
            hint = "Send a well-formed body of the content type that is declared."
        case _:
            field, message, hint = None, sentence(http.detail), "See /openapi.json."
    return _response(http.status_code, code, message, field, hint, headers)


def _nearest_path(request: Request) -> str:
    path = request.url.path.rstrip("/")
    if path != request.url.path and _methods_at(request, path):
        return "Leave out the slash at the end."
    return "See /openapi.json for the paths."


def _methods_at(request: Request, path: str) -> list[str]:
    """Return the methods of all routes of a path; the framework names only those of one route."""
    methods: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches({**request.scope, "path": path})
        if match is not Match.NONE:
            methods |= route.methods
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _response(  # noqa: PLR0913, RUF100 - the parts of every error body
    status: int,
    code: str,
    message: str,
    field: str | None,
    hint: str | None,
    headers: dict[str, str] | None = None,
    *,
    details: Mapping[str, Any] | None = None,
) -> Response:
    error: dict[str, Any] = {"code": code, "field": field, "message": message, "hint": hint}
    if details is not None:
        error["details"] = dict(details)
    return JSONResponse({"error": error}, status_code=status, headers=headers)


_Kind = Any


def _as(error: Exception, kind: _Kind) -> _Kind:
    if not isinstance(error, kind):  # the framework calls each handler only for its own kind
        raise TypeError(f"expected {kind.__name__}, got {error!r}")
    return error
