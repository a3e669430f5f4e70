"""The HTTP server of the monitor's metrics, and the access to it: open, or with a token of the scope `metrics`."""

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.store import Scope, Store, Token
from lifelong_core.store.access.token_lookup import bearer_secret, check_scope, hash_secret, invalid_token
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import (
    ForbiddenError,
    LifelongError,
    RetryableError,
    UnauthenticatedError,
    UnavailableError,
)

logger = logging.getLogger(__name__)

Check: TypeAlias = Callable[[str | None], None]
"""Raises where an Authorization header does not allow a scrape."""

SILENCE_SECONDS = 10
"""A client that sends nothing for so long is cut off."""
_NO_SNIFFING = ("X-Content-Type-Options", "nosniff")

PATIENCE_SECONDS = 2.0
"""Longest time that a scrape waits for the database; Prometheus gives up after 10 s."""


def allow_everybody(authorization: str | None) -> None:
    """Allow every scrape: no token is needed."""


class MetricsServer:
    """Serves a registry until it is closed.

    Args:
        registry: what is shown.
        host: IP address to listen on.
        port: to listen on.
        check: of the Authorization header.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(self, registry: CollectorRegistry, host: str, port: int, *, check: Check) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server = type("Server", (_Server,), {"address_family": family})
        self._server = make_server(host, port, _application(registry, check), server, handler_class=_Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="exporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _application(registry: CollectorRegistry, check: Check) -> Any:
    metrics = make_wsgi_app(registry)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]]) -> Any:
            return start_response(status, [*headers, _NO_SNIFFING])

        try:
            check(environ.get("HTTP_AUTHORIZATION"))
        except (UnauthenticatedError, ForbiddenError, RetryableError) as error:
            return _refused(error, start)
        return metrics(environ, start)

    return application


def _refused(error: LifelongError, start: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    headers = [("Content-Type", "application/json")]
    if isinstance(error, UnauthenticatedError):
        status = HTTPStatus.UNAUTHORIZED
        headers.append(("WWW-Authenticate", 'Bearer realm="lifelong"'))
    elif isinstance(error, RetryableError):
        status = HTTPStatus.SERVICE_UNAVAILABLE
        headers.append(("Retry-After", str(error.retry_after_seconds)))
    else:
        status = HTTPStatus.FORBIDDEN
    body = {"code": error.code, "field": error.field, "message": error.message, "hint": error.hint}
    start(f"{status.value} {status.phrase}", headers)
    return [json.dumps({"error": body}).encode()]


class _Server(ThreadingWSGIServer):
    """A server that expects clients to disconnect."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log errors, except errors of the connection."""
        del request, client_address
        if not isinstance(sys.exception(), OSError):
            logger.exception("a scrape failed")


class _Handler(WSGIRequestHandler):
    """Handles requests with a timeout, without log lines."""

    timeout = SILENCE_SECONDS
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d: %(message)s\n"

    def end_headers(self) -> None:
        """Add our header to the answers to malformed requests, which reach no application."""
        self.send_header(*_NO_SNIFFING)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is that of the base class
        """Log no request."""


class ScrapeAccess:
    """Checks the tokens of scrapes; threads may share it.

    Scrapes go on while the database does not answer. Then a token is valid if it was valid at its last scrape, or if a
    service on this data directory knows it.

    Args:
        settings: whether a token is needed.
        store: the open store; None while there is none.
    """

    def __init__(self, settings: Settings, store: Callable[[], Store | None]) -> None:
        self._is_open = settings.open_metrics
        self._store = store
        self._cache = RegistryCache(settings.registry_cache_file, database_url=settings.resolved_database_url)
        self._scraped: dict[bytes, Token] = {}
        self._one_at_a_time = threading.Lock()
        self._asker = DeadlineThread("token-asker")
        self._asker.start()

    def check(self, authorization: str | None) -> None:
        """Make sure that a scrape with this Authorization header is allowed.

        Raises:
            UnauthenticatedError: it names no valid token.
            ForbiddenError: the token lacks the scope.
            UnavailableError: the token is not known here, and the database cannot be asked.
        """
        if self._is_open:
            return
        secret = bearer_secret(authorization)
        digest = hash_secret(secret)
        try:
            token = self._asked(secret)
        except UnavailableError:
            token = self._scraped.get(digest) or self._kept(digest)
            if token is None:
                raise
        if token is None or token.has_ended(datetime.now(UTC)):
            self._scraped.pop(digest, None)
            raise invalid_token(token)
        check_scope(token, Scope.METRICS)
        self._scraped[digest] = token

    def _asked(self, secret: str) -> Token | None:
        if not self._one_at_a_time.acquire(timeout=PATIENCE_SECONDS):
            raise UnavailableError("too many tokens are being looked up.", hint="Try again in a second.")
        try:
            store = self._store()
            if store is None:
                raise UnavailableError("the database has not been opened yet.", hint="Try again in a second.")
            return self._asker.call(lambda: store.tokens.verify(secret), PATIENCE_SECONDS)
        finally:
            self._one_at_a_time.release()

    def _kept(self, digest: bytes) -> Token | None:
        try:
            registry = self._cache.load()
        except UnavailableError:
            return None
        return None if registry is None else registry.tokens.get(digest)
