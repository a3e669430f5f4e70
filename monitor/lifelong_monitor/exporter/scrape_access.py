"""Access to the monitor's metrics: open, or with a token of the scope `metrics`."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.store import Scope, Store, Token
from lifelong_core.store.access.bearer import bearer_secret, check_scope, invalid_token
from lifelong_core.store.access.token_lookup import hash_secret
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import UnavailableError

PATIENCE_SECONDS = 2.0
"""How long a scrape waits for the database; Prometheus gives up after 10 s."""


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
