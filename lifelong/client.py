"""The Python client of a service: typed calls, typed answers, the product's errors.

`Client` and `AsyncClient` send the same requests.
"""

import asyncio
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

import httpx
import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.entities.answers import LogitsAnswer, PredictAnswer
from lifelong_core.entities.entity import read_document
from lifelong_core.operations.operation import Answer, Call
from lifelong_core.runtime.addresses import is_this_machine
from lifelong_core.runtime.redaction import redact
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

Library = TypeVar("Library")

TIMEOUT_SECONDS = 30.0
PATIENCE_SECONDS = 10.0
"""How long a request that is safe to repeat is sent again while the service is not available."""
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
        UnavailableError: the same request may succeed later; as below.
        TooManyRequestsError: the same; as below.
        LifelongError: the service refused; kind, message, field, hint and details are the service's own. Or what
            answered is not the service.
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
        raise _error(response, message, None, _proxy_hint(request.url)) from unreadable
    raise refused


def _proxy_hint(url: httpx.URL) -> str | None:
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
class _Sent:
    """One request: what the HTTP library takes, and whether it may be sent again after an answer got lost."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_repeatable: bool = False


def request_of(call: Call[Any]) -> _Sent:
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
    return _Sent(operation.method, path, options, is_repeatable=operation.method == "GET")


def _prediction(
    path: str, content: bytes, media_type: str, parameters: Mapping[str, str | None], request_id: str | None
) -> _Sent:
    """A request for decisions. Its id makes it safe to send it again: the service answers it once."""
    query = {name: value for name, value in parameters.items() if value is not None}
    query["request_id"] = request_id or str(uuid4())
    options = {"params": query, "content": content, "headers": {"Content-Type": media_type}}
    return _Sent("POST", path, options, is_repeatable=True)


def _image(image: bytes, request_id: str | None, parameters: Mapping[str, str | None]) -> _Sent:
    return _prediction("/v1/predict", image, "application/octet-stream", parameters, request_id)


def _logits(logits: ArrayLike, request_id: str | None, parameters: Mapping[str, str | None]) -> _Sent:
    file = BytesIO()
    np.save(file, np.asarray(logits, dtype=np.float32), allow_pickle=False)
    return _prediction("/v1/logits", file.getvalue(), "application/x-npy", parameters, request_id)


def _labels(labels: Sequence[Mapping[str, Any]], *, dry_run: bool) -> _Sent:
    document = {"labels": [dict(label) for label in labels], "partial": True, "dry_run": dry_run}
    return _Sent("POST", "/v1/feedback", {"json": document}, is_repeatable=True)  # feedback is idempotent


class _Connection:
    """What both clients share: address, token, errors and patience.

    Args:
        url: of the service.
        token: for all calls; None: none is sent.
        patience_seconds: how long a request that is safe to repeat is sent again while the service is not available.

    Raises:
        InvalidInputError: the URL is none.
    """

    def __init__(
        self, url: str, token: str | None = None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        try:
            host = httpx.URL(url).host
        except httpx.InvalidURL as error:
            raise InvalidInputError(
                f"{redact(url)!r} is not a URL ({error}).",
                field="--url",
                hint="Use http://host:port; an IPv6 address in brackets.",
            ) from error
        self._url = url
        self._patience_seconds = patience_seconds
        self._options: dict[str, Any] = {
            "base_url": url,
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": TIMEOUT_SECONDS,
            # A proxy of the site reaches another machine under our own addresses, or refuses them.
            "trust_env": not is_this_machine(host),
        }

    def _connected(self, kind: Callable[..., Library]) -> Library:
        """The client of the HTTP library.

        Raises:
            ConfigurationError: the URL takes a proxy that cannot be used.
        """
        try:
            return kind(**self._options, verify=httpx.create_ssl_context())
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                "the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used:"
                f" {redact(str(error)).rstrip('.')}.",
                hint="Correct the variable, or add the host of the service to NO_PROXY.",
            ) from error

    def _unreachable(self, error: httpx.TransportError) -> UnavailableError:
        unreachable = UnavailableError(
            f"{redact(self._url)} does not answer ({error}).",
            hint=_proxy_hint(httpx.URL(self._url)) or "Is `lifelong serve` running there?",
        )
        unreachable.__cause__ = error
        return unreachable

    def _pause(self, sent: _Sent, error: RetryableError, waited: float) -> float:
        """Seconds to wait before the request is sent again.

        Raises:
            RetryableError: it is not sent again.
        """
        if not sent.is_repeatable or waited >= self._patience_seconds:
            raise error
        return min(max(1, error.retry_after_seconds), self._patience_seconds - waited)


class Client(_Connection):
    """A connection to one service; a context manager.

    Examples:
        >>> from lifelong_core.operations.heads import RollBack
        >>> with Client("http://localhost:3000", "ll_...") as client:  # doctest: +SKIP
        ...     head = client.send(RollBack(model="resnet", environment="clinic-a"))
        ...     print(head.version, head.outlook)
    """

    def __init__(
        self, url: str, token: str | None = None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        super().__init__(url, token, patience_seconds=patience_seconds)
        self._client = self._connected(httpx.Client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Carry out an operation (`lifelong_core.operations`) in the service.

        Raises:
            LifelongError: the service refused, or does not answer.
        """
        return _read(call, self._send(request_of(call)))

    def predict(
        self,
        image: bytes,
        *,
        environment: str | None = None,
        group: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> PredictAnswer:
        """Decide about one image. The request has an id, by default a new one, so that it is decided and logged once.

        Args:
            image: bytes of its file.
            environment: where it comes from; None: that of the token, else `default`.
            group: pseudonymous key of the patient or study.
            model: that decides; None: the promoted one.
            request_id: of the caller; a repeated request with the same id gets the first answer.

        Raises:
            LifelongError: the service refused, or does not answer.
        """
        parameters = {"environment": environment, "group": group, "model": model}
        return cast("PredictAnswer", self._send(_image(image, request_id, parameters)))

    def logits(
        self,
        logits: ArrayLike,
        *,
        environment: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> LogitsAnswer:
        """Decide about logits, shape (N, C), of a model that runs elsewhere.

        Raises:
            LifelongError: the service refused, or does not answer.
        """
        parameters = {"environment": environment, "model": model}
        return cast("LogitsAnswer", self._send(_logits(logits, request_id, parameters)))

    def feedback(self, labels: Sequence[Mapping[str, Any]], *, dry_run: bool = False) -> dict[str, Any]:
        """Send the true classes of predictions: `prediction_id` or `request_id` with `label` each.

        Raises:
            LifelongError: the service refused, or does not answer.
        """
        return self._send(_labels(labels, dry_run=dry_run))

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """GET a JSON document."""
        return self._send(_Sent("GET", path, {"params": query}))

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON document."""
        return self._send(_Sent("POST", path, {"json": document}))

    def logits_of(self, model: str, images: Sequence[bytes]) -> tuple[list[list[float]], str]:
        """Compute raw logits of images as for predictions, and the digest of the preprocessing; nothing is logged."""
        files = [("images", (f"{index}", image)) for index, image in enumerate(images)]
        # A connection stays with one worker; a new one for each call reaches others, too, so that a difference shows.
        options = {"files": files, "headers": {"Connection": "close"}}
        answer = self._send(_Sent("POST", f"/v1/admin/models/{model}/logits", options))
        return answer["logits"], answer["preprocessing_digest"]

    def add_calibration_set(
        self, model: str, archive: bytes, *, dry_run: bool = False, force_reason: str | None = None
    ) -> dict[str, Any]:
        """Send labelled logits (npz); the service fits a head on them, checks it and publishes it.

        Args:
            model: reference of the model.
            archive: the npz file.
            dry_run: only judge it.
            force_reason: why a set is taken that the service would refuse.
        """
        query = {"dry_run": "true"} if dry_run else {}
        if force_reason is not None:
            query["force_reason"] = force_reason
        options = {"params": query, "content": archive, "headers": {"Content-Type": "application/x-npz"}}
        return self._send(_Sent("POST", f"/v1/admin/models/{model}/calibration-sets", options))

    def _send(self, sent: _Sent) -> Any:
        waited = 0.0
        while True:
            try:
                return self._answer(sent)
            except RetryableError as error:
                seconds = self._pause(sent, error, waited)
            time.sleep(seconds)
            waited += seconds

    def _answer(self, sent: _Sent) -> Any:
        try:
            return answer_of(self._client.request(sent.method, sent.path, **sent.options))
        except httpx.TransportError as error:
            raise self._unreachable(error) from error


class AsyncClient(_Connection):
    """The same for asynchronous code; see `Client`."""

    def __init__(
        self, url: str, token: str | None = None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        super().__init__(url, token, patience_seconds=patience_seconds)
        self._client = self._connected(httpx.AsyncClient)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Carry out an operation in the service; see `Client.send`."""
        return _read(call, await self._send(request_of(call)))

    async def predict(
        self,
        image: bytes,
        *,
        environment: str | None = None,
        group: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> PredictAnswer:
        """Decide about one image; see `Client.predict`."""
        parameters = {"environment": environment, "group": group, "model": model}
        return cast("PredictAnswer", await self._send(_image(image, request_id, parameters)))

    async def logits(
        self,
        logits: ArrayLike,
        *,
        environment: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> LogitsAnswer:
        """Decide about logits; see `Client.logits`."""
        parameters = {"environment": environment, "model": model}
        return cast("LogitsAnswer", await self._send(_logits(logits, request_id, parameters)))

    async def feedback(self, labels: Sequence[Mapping[str, Any]], *, dry_run: bool = False) -> dict[str, Any]:
        """Send the true classes of predictions; see `Client.feedback`."""
        return await self._send(_labels(labels, dry_run=dry_run))

    async def _send(self, sent: _Sent) -> Any:
        waited = 0.0
        while True:
            try:
                return answer_of(await self._client.request(sent.method, sent.path, **sent.options))
            except httpx.TransportError as error:
                seconds = self._pause(sent, self._unreachable(error), waited)
            except RetryableError as error:
                seconds = self._pause(sent, error, waited)
            await asyncio.sleep(seconds)
            waited += seconds


def _read(call: Call[Answer], document: Any) -> Answer:
    answer = call.operation.answer
    return cast("Answer", None if answer is None else read_document(document, answer))
