"""Access to the monitor's metrics, also while the database is away."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Scope, Store, Token
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import ForbiddenError, UnauthenticatedError, UnavailableError
from lifelong_monitor.exporter import server
from lifelong_monitor.exporter.server import ScrapeAccess


@pytest.fixture
def closed(settings: Settings) -> Settings:
    return settings.model_copy(update={"open_metrics": False})


def made(store: Store, *scopes: Scope, **options: Any) -> str:
    names = [token.name for token in store.tokens.list()]
    return store.tokens.create(f"token-{len(names)}", scopes, actor="test", **options)[1]


def away() -> Any:
    """A store whose database does not answer."""

    def verify(_: str) -> Token | None:
        raise UnavailableError("it is away.")

    return SimpleNamespace(tokens=SimpleNamespace(verify=verify))


class Switch:
    """The store that is open now."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __call__(self) -> Any:
        return self.store


def test_by_default_everybody_may_scrape(settings: Settings) -> None:
    for header in (None, "", "Bearer wrong"):
        ScrapeAccess(settings, lambda: None).check(header)


def test_otherwise_it_takes_a_token_with_the_scope(closed: Settings, store: Store) -> None:
    access = ScrapeAccess(closed, lambda: store)
    for scope in (Scope.METRICS, Scope.ADMIN):
        access.check(f"Bearer {made(store, scope)}")
    for scope in (Scope.READ, Scope.OPERATE, Scope.PREDICT, Scope.FEEDBACK):
        with pytest.raises(ForbiddenError, match="lacks the scope 'metrics'"):
            access.check(f"Bearer {made(store, scope)}")
    for header in (None, "", "Bearer", "Bearer ll_wrong", f"Basic {made(store, Scope.METRICS)}"):
        with pytest.raises(UnauthenticatedError):
            access.check(header)


def test_a_revocation_holds_at_once(closed: Settings, store: Store) -> None:
    access = ScrapeAccess(closed, lambda: store)
    header = f"Bearer {made(store, Scope.METRICS)}"
    access.check(header)
    store.tokens.revoke("token-0", actor="test")
    with pytest.raises(UnauthenticatedError):
        access.check(header)


def test_while_the_database_is_away_a_token_that_scraped_before_goes_on(
    closed: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=2)

    switch = Switch(store)
    access = ScrapeAccess(closed, switch)
    known, revoked = (f"Bearer {made(store, Scope.METRICS)}" for _ in range(2))
    brief = f"Bearer {made(store, Scope.METRICS, expires_at=datetime.now(UTC) + timedelta(hours=1))}"
    for header in (known, revoked, brief):
        access.check(header)
    store.tokens.revoke("token-1", actor="test")
    with pytest.raises(UnauthenticatedError):
        access.check(revoked)
    switch.store = away()
    access.check(known)
    for header in (revoked, "Bearer ll_unknown"):
        with pytest.raises(UnavailableError):
            access.check(header)
    monkeypatch.setattr(server, "datetime", Later)
    with pytest.raises(UnauthenticatedError):
        access.check(brief)


@pytest.mark.parametrize("open_store", [away, lambda: None])
def test_a_monitor_that_starts_meanwhile_asks_the_registry_of_this_machine(
    closed: Settings, store: Store, open_store: Callable[[], Any]
) -> None:
    header = f"Bearer {made(store, Scope.METRICS)}"
    access = ScrapeAccess(closed, open_store)
    with pytest.raises(UnavailableError):
        access.check(header)
    registry = store.registry()
    assert registry is not None
    RegistryCache(closed.registry_cache_file, database_url=closed.resolved_database_url).save(registry)
    access.check(header)
    with pytest.raises(UnavailableError):
        access.check("Bearer ll_unknown")


def test_a_database_that_hangs_holds_up_no_scrape_for_long(
    closed: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 0.1)
    switch = Switch(store)
    access = ScrapeAccess(closed, switch)
    header = f"Bearer {made(store, Scope.METRICS)}"
    access.check(header)
    switch.store = SimpleNamespace(tokens=SimpleNamespace(verify=lambda _: time.sleep(20)))
    for _ in range(3):
        access.check(header)
    with pytest.raises(UnavailableError):
        access.check("Bearer ll_unknown")
