"""The Python client of a service: typed calls, typed answers, the product's errors.

`Client` and `AsyncClient` send the same requests.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import httpx
from numpy.typing import ArrayLike

from lifelong.client_messages import (
    SentRequest,
    answer_of,
    image_request,
    labels_request,
    logits_request,
    proxy_hint,
    read_answer,
    request_of,
)
from lifelong_core.entities.answers import LogitsAnswer, PredictAnswer
from lifelong_core.operations.operation import Answer, Call
from lifelong_core.runtime.addresses import is_this_machine
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import (
    ConfigurationError,
    InvalidInputError,
    RetryableError,
    UnavailableError,
)

Library = TypeVar("Library")

TIMEOUT_SECONDS = 30.0
PATIENCE_SECONDS = 10.0
"""How long a request that is safe to repeat is sent again while the service is not available."""


class _Connection:
    """Address, token, errors and patience of both clients.

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
            hint=proxy_hint(httpx.URL(self._url)) or "Is `lifelong serve` running there?",
        )
        unreachable.__cause__ = error
        return unreachable

    def _pause(self, sent: SentRequest, error: RetryableError, waited: float) -> float:
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
        return read_answer(call, self._send(request_of(call)))

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
        return cast("PredictAnswer", self._send(image_request(image, request_id, parameters)))

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
        return cast("LogitsAnswer", self._send(logits_request(logits, request_id, parameters)))

    def feedback(self, labels: Sequence[Mapping[str, Any]], *, dry_run: bool = False) -> dict[str, Any]:
        """Send the true classes of predictions: `prediction_id` or `request_id` with `label` each.

        Raises:
            LifelongError: the service refused, or does not answer.
        """
        return self._send(labels_request(labels, dry_run=dry_run))

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """GET a JSON document."""
        return self._send(SentRequest("GET", path, {"params": query}))

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON document."""
        return self._send(SentRequest("POST", path, {"json": document}))

    def logits_of(self, model: str, images: Sequence[bytes]) -> tuple[list[list[float]], str]:
        """Compute raw logits of images as for predictions, and the digest of the preprocessing; nothing is logged."""
        files = [("images", (f"{index}", image)) for index, image in enumerate(images)]
        # A connection stays with one worker; a new one for each call reaches others, too, so that a difference shows.
        options = {"files": files, "headers": {"Connection": "close"}}
        answer = self._send(SentRequest("POST", f"/v1/admin/models/{model}/logits", options))
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
        return self._send(SentRequest("POST", f"/v1/admin/models/{model}/calibration-sets", options))

    def _send(self, sent: SentRequest) -> Any:
        waited = 0.0
        while True:
            try:
                return self._answer(sent)
            except RetryableError as error:
                seconds = self._pause(sent, error, waited)
            time.sleep(seconds)
            waited += seconds

    def _answer(self, sent: SentRequest) -> Any:
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
        return read_answer(call, await self._send(request_of(call)))

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
        return cast("PredictAnswer", await self._send(image_request(image, request_id, parameters)))

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
        return cast("LogitsAnswer", await self._send(logits_request(logits, request_id, parameters)))

    async def feedback(self, labels: Sequence[Mapping[str, Any]], *, dry_run: bool = False) -> dict[str, Any]:
        """Send the true classes of predictions; see `Client.feedback`."""
        return await self._send(labels_request(labels, dry_run=dry_run))

    async def _send(self, sent: SentRequest) -> Any:
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
