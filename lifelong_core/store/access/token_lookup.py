"""Finds tokens by the hash of a secret, or by name; the bearer token of a request (RFC 6750) and its scope."""

import hashlib
import hmac
from dataclasses import replace

import sqlalchemy as sa

from lifelong_core.entities.access import Scope, Token
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ForbiddenError, NotFoundError, UnauthenticatedError

_tokens = tables.tokens
FIELD = "Authorization"
HINT = "Send the header 'Authorization: Bearer TOKEN' with a token that `lifelong init` or an administrator made."


def hash_secret(secret: str) -> bytes:
    """Return the hash of a secret, which is the stored form and the search key of a token.

    The secret has 256 random bits, so one round of SHA-256 suffices.
    """
    return hashlib.sha256(secret.encode()).digest()


def token_of_secret(connection: sa.Connection, secret: str, *, locked: bool = False) -> Token | None:
    """Return the token with this secret, expired and revoked ones included; None if there is none.

    Args:
        connection: a transaction.
        secret: as received from the client.
        locked: as for `valid_token`.
    """
    digest = hash_secret(secret)
    query = sa.select(_tokens).where(
        (_tokens.c.secret_hash == digest) | (_tokens.c.previous_secret_hash == digest)
    )
    if locked:
        query = query.with_for_update(read=True)
    row = connection.execute(query).one_or_none()
    known = {} if row is None else tokens_by_secret(row)
    return next((token for one, token in known.items() if hmac.compare_digest(one, digest)), None)


def valid_token(connection: sa.Connection, secret: str, *, locked: bool = False) -> Token | None:
    """Return the valid token with this secret; None if there is none, or it is expired or revoked.

    Args:
        connection: a transaction.
        secret: as received from the client.
        locked: lock the row against changes until this transaction ends (PostgreSQL; SQLite has one writer at a time).
    """
    token = token_of_secret(connection, secret, locked=locked)
    return None if token is None or token.has_ended(now()) else token


def named_token(connection: sa.Connection, name: str) -> Row:
    """Return the row of the token with this name.

    Raises:
        NotFoundError: there is none.
    """
    row = connection.execute(sa.select(_tokens).where(_tokens.c.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(
            f"there is no token {name[:80]!r}.", field="name", hint="List them: `lifelong tokens list`."
        )
    return row


def token_of(row: Row) -> Token:
    """The token of a row of `tokens`, without the hash of its secret."""
    scopes = frozenset(Scope(scope) for scope in row.scopes)
    environments = None if row.environments is None else frozenset(row.environments)
    return read_record(row, Token, scopes=scopes, environments=environments)


def tokens_by_secret(row: Row) -> dict[bytes, Token]:
    """The token of a row of `tokens`, by the hashes of its present and its previous secret."""
    token = token_of(row)
    tokens = {bytes(row.secret_hash): token}
    if row.previous_secret_hash is not None:
        tokens[bytes(row.previous_secret_hash)] = replace(token, expires_at=token.previous_expires_at)
    return tokens


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
