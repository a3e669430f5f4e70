"""Messages of the clients: requests as the HTTP library takes them, and answers and errors of the service."""

import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

import httpx
import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.entities.entity import read_document
from lifelong_core.operations.operation import Answer, Call
from lifelong_core.runtime.addresses import is_this_machine
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import (
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

_RETRYABLE: Mapping[int, type[RetryableError]] = {
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}
"""By status; 502 and 504 are answers of a proxy."""
_REFUSED: Mapping[int, type[LifelongError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    422: InvalidInputError,
}


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON document of a successful response.

    Raises:
        UnavailableError, TooManyRequestsError: the same request may succeed later.
        LifelongError: the service refused the request, with its kind, message, field, hint and details; or another
            program answered.
    """
    try:
        if response.is_success:
            return response.json() if response.content else {}
        error = response.json()["error"]
        refused = _error(response, error["message"], error.get("field"), error.get("hint"))
        refused.details = error.get("details")
    except (ValueError, KeyError, TypeError) as unreadable:
        request = response.request
        message = (
            f"{request.method} {redact(str(request.url))} answered {response.status_code},"
            " and not with a document of the service."
        )
        raise _error(response, message, None, proxy_hint(request.url)) from unreadable
    raise refused


def proxy_hint(url: httpx.URL) -> str | None:
    """Hint at the proxy that a request to this URL takes; None: it takes none."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if proxy is None or is_this_machine(url.host) or urllib.request.proxy_bypass(url.host):
        return None
    return f"The proxy {redact(proxy)} was asked; to reach {url.host} without it, add that to NO_PROXY."


def _error(response: httpx.Response, message: str, field: str | None, hint: str | None) -> LifelongError:
    kind = _RETRYABLE.get(response.status_code)
    if kind is None:
        return _REFUSED.get(response.status_code, LifelongError)(message, field=field, hint=hint)
    given = response.headers.get("Retry-After", "")
    seconds = int(given) if given.isdecimal() else 1
    return kind(message, field=field, hint=hint, retry_after_seconds=seconds)


@dataclass(frozen=True)
class SentRequest:
    """The arguments that the HTTP library takes for one request."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_repeatable: bool = False
    """whether it may be sent again after its answer was lost"""


def request_of(call: Call[Any]) -> SentRequest:
    """The HTTP request of an operation's call."""
    operation = call.operation
    given = call.model_dump(mode="json", exclude_unset=True)
    path = operation.path.format(
        **{name: quote(str(given[name]), safe="@") for name in operation.path_fields}
    )
    options: dict[str, Any] = {}
    if operation.body_fields:
        options["json"] = {name: value for name, value in given.items() if name in operation.body_fields}
    if operation.query_fields:
        options["params"] = {
            name: value
            for name, value in given.items()
            if name in operation.query_fields and value is not None
        }
    return SentRequest(operation.method, path, options, is_repeatable=operation.method == "GET")


def _prediction(
    path: str, content: bytes, media_type: str, parameters: Mapping[str, str | None], request_id: str | None
) -> SentRequest:
    """A request for decisions. Because of its id it may be sent again: the service decides once."""
    query = {name: value for name, value in parameters.items() if value is not None}
    query["request_id"] = request_id or str(uuid4())
    options = {"params": query, "content": content, "headers": {"Content-Type": media_type}}
    return SentRequest("POST", path, options, is_repeatable=True)


def image_request(image: bytes, request_id: str | None, parameters: Mapping[str, str | None]) -> SentRequest:
    """The request that decides about an image."""
    return _prediction("/v1/predict", image, "application/octet-stream", parameters, request_id)


def logits_request(
    logits: ArrayLike, request_id: str | None, parameters: Mapping[str, str | None]
) -> SentRequest:
    """The request that decides about logits, (N, C)."""
    file = BytesIO()
    np.save(file, np.asarray(logits, dtype=np.float32), allow_pickle=False)
    return _prediction("/v1/logits", file.getvalue(), "application/x-npy", parameters, request_id)


def labels_request(labels: Sequence[Mapping[str, Any]], *, dry_run: bool) -> SentRequest:
    """The request that sends labels; feedback is idempotent."""
    document = {"labels": [dict(label) for label in labels], "partial": True, "dry_run": dry_run}
    return SentRequest("POST", "/v1/feedback", {"json": document}, is_repeatable=True)


def read_answer(call: Call[Answer], document: Any) -> Answer:
    """The answer of an operation from the JSON document of its response."""
    answer = call.operation.answer
    return cast("Answer", None if answer is None else read_document(document, answer))
