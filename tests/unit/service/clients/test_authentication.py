"""Tokens are checked without the database; only an unknown token is looked up, without delay for other requests."""

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lifelong_core.store import Scope, Token
from lifelong_core.store.access.token_lookup import hash_secret
from lifelong_core.values.errors import ForbiddenError, UnauthenticatedError, UnavailableError
from lifelong_service.clients import authentication
from lifelong_service.clients.authentication import Authenticator
from tests.unit.service.waiting import eventually

NOW = datetime.now(UTC)


def token(name: str = "ci", **changes: Any) -> Token:
    return Token(id=1, name=name, scopes=frozenset({Scope.PREDICT}), created_at=NOW, **changes)


class Tokens:
    """What the worker knows and what the database knows; counts how often that is asked."""

    def __init__(self) -> None:
        self.known: dict[bytes, Token] = {}
        self.stored: dict[str, Token] = {}
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()

    def ask(self, secret: str) -> Token | None:
        self.asked += 1
        self.gate.wait(10)
        return self.stored.get(secret)


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


@pytest.fixture
def authenticator(tokens: Tokens) -> Iterator[Authenticator]:
    made = Authenticator(lambda: tokens.known, tokens.ask)
    made.start()
    yield made
    tokens.gate.set()
    made.close()


def outcomes(authenticator: Authenticator, *secrets: str) -> list[Any]:
    """What becomes of these secrets, sent at once: tokens and errors."""

    async def together() -> list[Any]:
        calls = [authenticator.authorize(f"Bearer {secret}", Scope.PREDICT) for secret in secrets]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(together())


def test_a_known_token_is_never_asked_for(authenticator: Authenticator, tokens: Tokens) -> None:
    tokens.known[hash_secret("s3cret")] = token()
    assert outcomes(authenticator, *["s3cret"] * 20) == [token()] * 20
    assert tokens.asked == 0


def test_a_revocation_takes_effect_with_the_registry(authenticator: Authenticator, tokens: Tokens) -> None:
    tokens.known[hash_secret("s3cret")] = token()
    assert outcomes(authenticator, "s3cret") == [token()]
    tokens.known = {}
    assert isinstance(outcomes(authenticator, "s3cret")[0], UnauthenticatedError)


def test_expiry_is_looked_up_on_the_clock_each_time(
    authenticator: Authenticator, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=2)

    tokens.known[hash_secret("s3cret")] = token(expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert not isinstance(outcomes(authenticator, "s3cret")[0], Exception)
    monkeypatch.setattr(authentication, "datetime", Later)
    assert "expired" in str(outcomes(authenticator, "s3cret")[0])


def test_a_token_that_was_made_a_moment_ago_is_asked_for(
    authenticator: Authenticator, tokens: Tokens
) -> None:
    tokens.stored["fresh"] = token("fresh")
    assert outcomes(authenticator, "fresh") == [token("fresh")]
    assert isinstance(outcomes(authenticator, "wrong")[0], UnauthenticatedError)


def test_a_known_token_without_the_scope_is_forbidden(authenticator: Authenticator, tokens: Tokens) -> None:
    tokens.known[hash_secret("reader")] = Token(
        id=1, name="reader", scopes=frozenset({Scope.READ}), created_at=NOW
    )
    assert isinstance(outcomes(authenticator, "reader")[0], ForbiddenError)


def test_a_database_that_hangs_holds_up_nobody_who_is_known(
    authenticator: Authenticator, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "PATIENCE_SECONDS", 0.1)
    tokens.known[hash_secret("known")] = token()
    tokens.gate.clear()
    first, second, known = outcomes(authenticator, "wrong", "wrong too", "known")
    assert known == token()
    assert isinstance(first, UnavailableError)
    assert isinstance(second, UnavailableError)
    assert tokens.asked == 1, "the second one was not begun while the first one hung"
    assert isinstance(outcomes(authenticator, "later")[0], UnavailableError)
    tokens.gate.set()
    tokens.stored["later"] = token("later")
    eventually(lambda: outcomes(authenticator, "later") == [token("later")])


def test_a_flood_of_wrong_tokens_is_turned_away_and_the_known_ones_are_not(
    authenticator: Authenticator, tokens: Tokens
) -> None:
    tokens.known[hash_secret("known")] = token()
    tokens.gate.clear()
    threading.Timer(0.2, tokens.gate.set).start()
    tokens.stored["fresh"] = token("fresh")

    async def flood() -> list[Any]:
        secrets = (f"wrong {index}" for index in range(100))
        calls = [ask(secret, client=f"2001:db8::{index}") for index, secret in enumerate(secrets)]
        others = (ask("known", client="2001:db8::1"), ask("fresh", client="192.0.2.1"))
        return await asyncio.gather(*calls, *others, return_exceptions=True)

    def ask(secret: str, *, client: str) -> Awaitable[Token]:
        return authenticator.authorize(f"Bearer {secret}", Scope.PREDICT, client=client)

    *wrong, known, fresh = asyncio.run(flood())
    assert (known, fresh) == (token(), token("fresh")), "another client has a share of the look-ups"
    kinds = [type(one) for one in wrong]
    assert kinds.count(UnauthenticatedError) == authentication.MOST_WAITING // 2
    assert kinds.count(UnavailableError) == 100 - authentication.MOST_WAITING // 2
