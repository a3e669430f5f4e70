"""Bearer tokens of requests (RFC 6750): the Authorization header and the scope of a token."""

from lifelong_core.entities.access import Scope, Token
from lifelong_core.values.errors import ForbiddenError, UnauthenticatedError

FIELD = "Authorization"
HINT = "Send the header 'Authorization: Bearer TOKEN' with a token that `lifelong init` or an administrator made."


def bearer_secret(header: str | None) -> str:
    """The secret in an Authorization header.

    Raises:
        UnauthenticatedError: there is no secret.

    Examples:
        >>> bearer_secret("Bearer ll_abc")
        'll_abc'
    """
    kind, _, secret = (header or "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise UnauthenticatedError("a bearer token is needed.", field=FIELD, hint=HINT)
    return secret.strip()


def invalid_token(token: Token | None) -> UnauthenticatedError:
    """The error that a token has expired or, if None, is unknown."""
    has_expired = token is not None and token.revoked_at is None
    message = "the token has expired." if has_expired else "the token is unknown, expired or revoked."
    error = UnauthenticatedError(message, field=FIELD, hint=HINT)
    error.actor = None if token is None else token.name
    return error


def check_scope(token: Token, scope: Scope) -> None:
    """Make sure that a token has a scope.

    Raises:
        ForbiddenError: it lacks the scope.
    """
    if not token.allows(scope):
        error = ForbiddenError(
            f"the token {token.name!r} lacks the scope {scope.value!r}.",
            field=FIELD,
            hint=f"Use a token with the scope {scope.value!r}.",
        )
        error.actor = token.name
        raise error
