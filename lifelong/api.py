"""HTTP client of a running service: sends the bearer token, and raises the product's errors."""

import urllib.request
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from lifelong_core.runtime.addresses import is_this_machine
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import (
    ConfigurationError,
    InvalidInputError,
    LifelongError,
    RetryableError,
    TooManyRequestsError,
    UnavailableError,
)

TIMEOUT_SECONDS = 30.0
_RETRYABLE: Mapping[int, type[RetryableError]] = {
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}
"""By status; 502 and 504 are answers of a proxy."""


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON document of a successful response.

    Raises:
        UnavailableError: the same request may succeed later; as below.
        TooManyRequestsError: the same; as below.
        LifelongError: the service refused; message, field, hint and details are the service's own. Or what answered is
            not the service.
    """
    try:
        if response.is_success:
            return response.json()
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
        return LifelongError(message, field=field, hint=hint)
    given = response.headers.get("Retry-After", "")
    seconds = int(given) if given.isdecimal() else 1
    return kind(message, field=field, hint=hint, retry_after_seconds=seconds)


class Api:
    """A connection to one service; a context manager.

    Args:
        url: of the service.
        token: for all calls; None: none is sent.

    Raises:
        InvalidInputError: the URL is none.
        ConfigurationError: the URL takes a proxy that cannot be used.
    """

    def __init__(self, url: str, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            # A proxy of the site reaches another machine under our own addresses, or refuses them.
            self._client = httpx.Client(
                base_url=url,
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                trust_env=not is_this_machine(httpx.URL(url).host),
                verify=httpx.create_ssl_context(),
            )
        except httpx.InvalidURL as error:
            raise InvalidInputError(
                f"{redact(url)!r} is not a URL ({error}).",
                field="--url",
                hint="Use http://host:port; an IPv6 address in brackets.",
            ) from error
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                "the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used:"
                f" {redact(str(error)).rstrip('.')}.",
                hint="Correct the variable, or add the host of the service to NO_PROXY.",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """GET a JSON document."""
        return self._call("GET", path, params=query)

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON document."""
        return self._call("POST", path, json=document)

    def logits_of(self, model: str, images: Sequence[bytes]) -> tuple[list[list[float]], str]:
        """Compute raw logits of images as for predictions; nothing is logged.

        Returns:
            The logits, and the digest of the preprocessing.
        """
        files = [("images", (f"{index}", image)) for index, image in enumerate(images)]
        # A connection stays with one worker; a new one for each call reaches others, too, so that a difference shows.
        headers = {"Connection": "close"}
        answer = self._call("POST", f"/v1/admin/models/{model}/logits", files=files, headers=headers)
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
        return self._call(
            "POST",
            f"/v1/admin/models/{model}/calibration-sets",
            params=query,
            content=archive,
            headers={"Content-Type": "application/x-npz"},
        )

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        try:
            return answer_of(self._client.request(method, path, **arguments))
        except httpx.TransportError as error:
            raise UnavailableError(
                f"{redact(str(self._client.base_url))} does not answer ({error}).",
                hint=_proxy_hint(self._client.base_url) or "Is `lifelong serve` running there?",
            ) from error
