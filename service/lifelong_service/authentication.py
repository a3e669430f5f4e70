"""Who may do what: bearer tokens with scopes, looked up once per registry revision."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

import anyio.to_thread

from lifelong_core.errors import ForbiddenError, UnauthenticatedError
from lifelong_core.store.records import Scope, Token

_REMEMBERED = 1024
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


class Authenticator:
    """Verifies tokens against the store and remembers the good ones until the registry changes.

    Bad ones are not remembered, so that a token works as soon as it was made.

    Args:
        verify: looks a secret up in the store; None when it is unknown, expired or revoked.
        revision: the registry's revision that this worker has seen; every revocation changes it.
    """

    def __init__(self, verify: Callable[[str], Token | None], revision: Callable[[], int]) -> None:
        self._verify = verify
        self._revision = revision
        self._known: OrderedDict[bytes, tuple[int, Token]] = OrderedDict()

    async def authenticate(self, header: str | None) -> Token:
        """The token that an Authorization header holds.

        Raises:
            UnauthenticatedError: no token, or one that is unknown, expired or revoked.
            UnavailableError: the store cannot be asked.
        """
        secret = bearer_secret(header)
        key = hashlib.sha256(secret.encode()).digest()
        revision = self._revision()
        seen = self._known.get(key)
        if seen is not None and seen[0] == revision:
            token = seen[1]
        else:
            found = await anyio.to_thread.run_sync(self._verify, secret)
            if found is None:
                self._known.pop(key, None)
                raise UnauthenticatedError(
                    "the token is unknown, expired or revoked.", field="Authorization", mend=_MEND
                )
            token = found
            self._remember(key, revision, token)
        if token.expires_at is not None and token.expires_at <= datetime.now(UTC):
            raise UnauthenticatedError("the token has expired.", field="Authorization", mend=_MEND)
        return token

    async def authorize(self, header: str | None, scope: Scope) -> Token:
        """The token in the header, if it has the scope.

        Raises:
            UnauthenticatedError: as `authenticate`.
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

    def _remember(self, key: bytes, revision: int, token: Token) -> None:
        self._known[key] = (revision, token)
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
