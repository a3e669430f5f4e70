"""Finds tokens by the hash of a secret, or by name."""

import hashlib
import hmac

import sqlalchemy as sa

from lifelong_core.entities.access import Token
from lifelong_core.store.access.rows import tokens_by_secret
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

_tokens = tables.tokens


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
