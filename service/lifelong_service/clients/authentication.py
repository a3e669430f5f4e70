"""Authentication by bearer tokens with scopes, from the served registry or looked up in the database."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import anyio
import anyio.to_thread

from lifelong_core.entities.access import Scope, Token
from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.store.access.token_lookup import bearer_secret, check_scope, hash_secret, invalid_token
from lifelong_core.values.errors import ForbiddenError, UnavailableError
from lifelong_service.clients.addresses import network_of
from lifelong_service.clients.sharing import FairSlots

PATIENCE_SECONDS = 1.0
"""Time limit of one look-up."""
MOST_WAITING = 32
"""Largest number of waiting look-ups; one more gets 503. A single client fills half of them."""
Result = TypeVar("Result")


class Lookups:
    """Makes look-ups in a separate thread, one at a time. Used in the event loop only.

    Args:
        name: name of the thread.
        what: object of the look-ups in error messages, e.g. "unknown tokens".
        field: field of the request in error messages.
    """

    def __init__(self, name: str, what: str, *, field: str) -> None:
        self._what = what
        self._field = field
        self._thread = DeadlineThread(name)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._waiting = FairSlots(MOST_WAITING)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def ask(self, question: Callable[[], Result], *, client: str = "") -> Result:
        """Return the result of the question.

        Args:
            question: asks the database.
            client: address of the client; one of many gets a share of the waiting look-ups.

        Raises:
            UnavailableError: the database does not answer in time, or too many questions wait.
        """
        network = network_of(client)
        if not self._waiting.has_room(network):
            raise UnavailableError(
                f"too many {self._what} are being looked up.",
                field=self._field,
                hint="Try again in a second.",
            )
        with self._waiting.hold(network):
            return await anyio.to_thread.run_sync(
                lambda: self._thread.call(question, PATIENCE_SECONDS), limiter=self._one_at_a_time
            )


def check_binding(token: Token, environment: str, *, field: str = "environment") -> None:
    """Check that a token may predict and label in an environment.

    Raises:
        ForbiddenError: the token is bound to other environments; the message names them.
    """
    if not token.may_use(environment):
        raise ForbiddenError(
            f"the token {token.name!r} may not be used in the environment {environment!r}.",
            field=field,
            hint=f"It is bound to: {token.binding}. Name one of these, or use another token.",
        )


class Authenticator:
    """Verifies tokens without a database, by the hashes of all valid tokens.

    An unknown token may be new, so it is looked up in the database, in a separate thread and one at a time: a slow
    database or a flood of wrong tokens delays no other request.

    Args:
        tokens: returns the valid tokens by the hash of the secret.
        ask: looks up a secret in the database, also of an expired or revoked token; None: it is unknown.
    """

    def __init__(
        self, tokens: Callable[[], Mapping[bytes, Token]], ask: Callable[[str], Token | None]
    ) -> None:
        self._tokens = tokens
        self._ask = ask
        self._lookups = Lookups("token-asker", "unknown tokens", field="Authorization")
        self._uses: dict[int, datetime] = {}

    async def authenticate(self, header: str | None, *, client: str = "") -> Token:
        """Return the token in an Authorization header.

        Args:
            header: its value.
            client: address of the client, which gets a fair share of the look-ups.

        Raises:
            UnauthenticatedError: no token, or one that is unknown, expired or revoked.
            UnavailableError: the token is not known here, and the database cannot be asked.
        """
        secret = bearer_secret(header)
        token = self._tokens().get(hash_secret(secret)) or await self._lookups.ask(
            lambda: self._ask(secret), client=client
        )
        moment = datetime.now(UTC)
        if token is None or token.has_ended(moment):
            raise invalid_token(token)
        self._uses[token.id] = moment
        return token

    def note_use(self, token: Token) -> None:
        """Record the use of a token by a session of the console."""
        self._uses[token.id] = datetime.now(UTC)

    def take_uses(self) -> dict[int, datetime]:
        """Return the times of the latest uses by token id, since the previous call."""
        uses, self._uses = self._uses, {}
        return uses

    async def authorize(self, header: str | None, scope: Scope, *, client: str = "") -> Token:
        """Return the token in the header if it has the scope.

        Raises:
            UnauthenticatedError: as `authenticate`.
            UnavailableError: as `authenticate`.
            ForbiddenError: the token lacks the scope.
        """
        token = await self.authenticate(header, client=client)
        check_scope(token, scope)
        return token

    def start(self) -> None:
        """Start the thread that looks up unknown tokens."""
        self._lookups.start()

    def close(self) -> None:
        """End the thread."""
        self._lookups.close()
