"""Who may do what: bearer tokens with scopes, as the registry that this worker serves knows them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lifelong_core.bearer import bearer_secret, check_scope, invalid_token
from lifelong_core.errors import ForbiddenError
from lifelong_core.store.access.records import Scope, Token
from lifelong_core.store.access.token_lookup import hash_secret
from lifelong_service.prediction.lookups import Lookups


def check_binding(token: Token, environment: str, *, field: str = "environment") -> None:
    """Make sure that a token may predict and label in an environment.

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
    """Verifies tokens without a database: it holds the hashes of all that are valid.

    A token that it does not know may have been made a moment ago, so the database is asked for it, in a thread of its
    own and one at a time: neither a slow database nor a flood of wrong tokens holds up anybody else.

    Args:
        tokens: what the worker knows now, by the hash of the secret; a revocation takes a token away from there.
        ask: looks a secret up in the database, also that of a token that has ended; None when it is unknown.
    """

    def __init__(
        self, tokens: Callable[[], Mapping[bytes, Token]], ask: Callable[[str], Token | None]
    ) -> None:
        self._tokens = tokens
        self._ask = ask
        self._lookups = Lookups("token-asker", "unknown tokens", field="Authorization")
        self._uses: dict[int, datetime] = {}

    async def authenticate(self, header: str | None) -> Token:
        """The token that an Authorization header holds.

        Raises:
            UnauthenticatedError: no token, or one that is unknown, expired or revoked.
            UnavailableError: the token is not known here, and the database cannot be asked.
        """
        secret = bearer_secret(header)
        token = self._tokens().get(hash_secret(secret)) or await self._lookups.ask(lambda: self._ask(secret))
        moment = datetime.now(UTC)
        if token is None or token.has_ended(moment):
            raise invalid_token(token)
        self._uses[token.id] = moment
        return token

    def note_use(self, token: Token) -> None:
        """Note that a token was used, by a session of the console."""
        self._uses[token.id] = datetime.now(UTC)

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
        check_scope(token, scope)
        return token

    def start(self) -> None:
        """Begin to ask for tokens that are not known."""
        self._lookups.start()

    def close(self) -> None:
        """End the thread."""
        self._lookups.close()
