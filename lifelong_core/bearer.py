"""Bearer tokens of requests (RFC 6750): the Authorization header, and what a token must allow."""

from lifelong_core.errors import ForbiddenError, UnauthenticatedError
from lifelong_core.store.access.records import Scope, Token

FIELD = "Authorization"
HINT = "Send the header 'Authorization: Bearer TOKEN' with a token that `lifelong init` or an administrator made."


def bearer_secret(header: str | None) -> str:
    """The secret in an Authorization header.

    Raises:
        UnauthenticatedError: there is none.

    Examples:
        >>> bearer_secret("Bearer ll_abc")
        'll_abc'
    """
    kind, _, secret = (header or "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise UnauthenticatedError("a bearer token is needed.", field=FIELD, hint=HINT)
    return secret.strip()


def invalid_token(token: Token | None) -> UnauthenticatedError:
    """The refusal of a token that has ended, or (None) is not known."""
    has_expired = token is not None and token.revoked_at is None
    message = "the token has expired." if has_expired else "the token is unknown, expired or revoked."
    error = UnauthenticatedError(message, field=FIELD, hint=HINT)
    error.actor = None if token is None else token.name
    return error


def check_scope(token: Token, scope: Scope) -> None:
    """Make sure that a token has a scope.

    Raises:
        ForbiddenError: it has not.
    """
    if not token.allows(scope):
        error = ForbiddenError(
            f"the token {token.name!r} lacks the scope {scope.value!r}.",
            field=FIELD,
            hint=f"Use a token with the scope {scope.value!r}.",
        )
        error.actor = token.name
        raise error
