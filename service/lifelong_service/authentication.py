"""Who may do what: bearer tokens with scopes, as the registry that this worker serves knows them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import anyio
import anyio.to_thread

from lifelong_core.errors import ForbiddenError, UnauthenticatedError, UnavailableError
from lifelong_core.store.records import Scope, Token
from lifelong_core.store.tokens import hash_secret
from lifelong_service.deadline import DeadlineThread

PATIENCE_SECONDS = 1.0
"""How long the database may take to say whether it knows a token."""
MOST_WAITING = 32
"""Unknown tokens that wait until the database is asked about them; more are a flood."""
_MEND = "Send the header 'Authorization: Bearer TOKEN' with a token that `lifelong init` or an administrator made."


def bearer_secret(header: str | None) -> str:
    """The secret in an Authorization header.

    Raises:
        UnauthenticatedError: there is none.
    """
    kind, _, secret = (header or "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise UnauthenticatedError("a bearer token is needed.", field="Authorization", mend=_MEND)
    return secret.strip()


def check_binding(token: Token, environment: str, *, field: str = "environment") -> None:
    """Make sure that a token may predict and label in an environment.

    Raises:
        ForbiddenError: the token is bound to other environments; the message names them.
    """
    if not token.may_use(environment):
        raise ForbiddenError(
            f"the token {token.name!r} may not be used in the environment {environment!r}.",
            field=field,
            mend=f"It is bound to: {token.binding}. Name one of these, or use another token.",
        )


class Authenticator:
    """Verifies tokens without a database: it holds the hashes of all that are valid.

    A token that it does not know may have been made a moment ago, so the database is asked for it, in a thread of its
    own and one at a time: neither a slow database nor a flood of wrong tokens holds up anybody else.

    Args:
        tokens: what the worker knows now, by the hash of the secret; a revocation takes a token away from there.
        ask: looks a secret up in the database; None when it is unknown, expired or revoked.
    """

    def __init__(
        self, tokens: Callable[[], Mapping[bytes, Token]], ask: Callable[[str], Token | None]
    ) -> None:
        self._tokens = tokens
        self._ask = ask
        self._asker = DeadlineThread("token-asker")
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._waiting = 0
        self._uses: dict[int, datetime] = {}

    async def authenticate(self, header: str | None) -> Token:
        """The token that an Authorization header holds.

        Raises:
            UnauthenticatedError: no token, or one that is unknown, expired or revoked.
            UnavailableError: the token is not known here, and the database cannot be asked.
        """
        secret = bearer_secret(header)
        token = self._tokens().get(hash_secret(secret)) or await self._asked(secret)
        if token is None:
            raise UnauthenticatedError(
                "the token is unknown, expired or revoked.", field="Authorization", mend=_MEND
            )
        moment = datetime.now(UTC)
        if token.expires_at is not None and token.expires_at <= moment:
            raise UnauthenticatedError("the token has expired.", field="Authorization", mend=_MEND)
        self._uses[token.id] = moment
        return token

    def take_uses(self) -> dict[int, datetime]:
        """When tokens were used last, by token id, since this was asked before."""
        uses, self._uses = self._uses, {}
        return uses

    async def authorize(self, header: str | None, scope: Scope) -> Token:
        """The token in the header, if it has the scope.

        Raises:
            UnauthenticatedError: as `authenticate`.
            UnavailableError: as `authenticate`.
            ForbiddenError: the token lacks the scope.
        """
        token = await self.authenticate(header)
        if not token.allows(scope):
            raise ForbiddenError(
                f"the token {token.name!r} lacks the scope {scope.value!r}.",
                field="Authorization",
                mend=f"Use a token with the scope {scope.value!r}.",
            )
        return token

    def start(self) -> None:
        """Begin to ask for tokens that are not known."""
        self._asker.start()

    def close(self) -> None:
        """End the thread."""
        self._asker.close()

    async def _asked(self, secret: str) -> Token | None:
        if self._waiting >= MOST_WAITING:
            raise UnavailableError(
                "too many unknown tokens are being looked up.",
                field="Authorization",
                mend="Try again in a second.",
            )
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(
                lambda: self._asker.call(lambda: self._ask(secret), PATIENCE_SECONDS),
                limiter=self._one_at_a_time,
            )
        finally:
            self._waiting -= 1
