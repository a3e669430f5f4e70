"""Bearer tokens: the secret is shown once, only its hash is stored."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime

import sqlalchemy as sa

from lifelong_core.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.store import tables
from lifelong_core.store.audit import write_audit
from lifelong_core.store.engine import Database
from lifelong_core.store.records import Scope, Token, check_name
from lifelong_core.store.registry import changing_registry
from lifelong_core.store.rows import now, token_of

_PREFIX = "ll_"
_SECRET_BYTES = 32


class Tokens:
    """Creates, verifies and revokes tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, name: str, scopes: Iterable[Scope], *, actor: str, expires_at: datetime | None = None
    ) -> tuple[Token, str]:
        """A new token, and its secret, which cannot be shown again.

        Args:
            name: by which it is listed and revoked; also that of the actor in the audit log.
            scopes: what it may do, at least one.
            actor: who creates it.
            expires_at: from when on it is no longer valid; None: never.

        Raises:
            InvalidInputError: the name is not legal, there is no or an unknown scope, or the token would have
                expired already.
            ConflictError: there is, or was, a token of that name.
        """
        check_name(name, field="name")
        granted = _check_scopes(scopes)
        if expires_at is not None:
            expires_at = _check_future(expires_at)
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        values = {
            "name": name,
            "secret_hash": hash_secret(secret),
            "scopes": granted,
            "created_at": now(),
            "expires_at": expires_at,
        }
        with changing_registry(self._database) as connection:
            known = sa.select(tables.tokens.c.id).where(tables.tokens.c.name == name)
            if connection.execute(known).first() is not None:
                raise ConflictError(
                    f"there is, or was, a token {name!r}.",
                    field="name",
                    mend="Choose another name: the audit log tells tokens apart by it.",
                )
            row = connection.execute(sa.insert(tables.tokens).values(values).returning(tables.tokens)).one()
            details = {"scopes": granted, "expires_at": expires_at and expires_at.isoformat()}
            write_audit(connection, actor=actor, action="tokens.create", subject=name, details=details)
        return token_of(row), secret

    def verify(self, secret: str) -> Token | None:
        """The token with this secret; None if there is none, or it has expired or been revoked."""
        digest = hash_secret(secret)
        query = sa.select(tables.tokens).where(tables.tokens.c.secret_hash == digest)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(bytes(row.secret_hash), digest):
            return None
        token = token_of(row)
        expired = token.expires_at is not None and token.expires_at <= now()
        return None if expired or token.revoked_at is not None else token

    def revoke(self, name: str, *, actor: str) -> Token:
        """Make a token invalid for good; doing it again changes nothing.

        Raises:
            NotFoundError: there is no token of that name.
        """
        table = tables.tokens
        with changing_registry(self._database) as connection:
            row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
            if row is None:
                raise NotFoundError(f"there is no token {name[:80]!r}.", field="name")
            if row.revoked_at is None:
                change = (
                    sa.update(table).where(table.c.id == row.id).values(revoked_at=now()).returning(table)
                )
                row = connection.execute(change).one()
                write_audit(connection, actor=actor, action="tokens.revoke", subject=name)
        return token_of(row)

    def list(self) -> list[Token]:
        """All tokens, oldest first, the revoked and expired ones included."""
        with self._database.read() as connection:
            query = sa.select(tables.tokens).order_by(tables.tokens.c.id)
            return [token_of(row) for row in connection.execute(query)]


def hash_secret(secret: str) -> bytes:
    """What is kept of a secret, and by what a token is found.

    The secret has 256 random bits, so one round of SHA-256 is as good as a slow hash.
    """
    return hashlib.sha256(secret.encode()).digest()


def _check_scopes(scopes: Iterable[Scope]) -> list[str]:
    try:
        granted = sorted({Scope(scope).value for scope in scopes})
    except ValueError as error:
        raise InvalidInputError(
            f"{error}.", field="scopes", mend=f"Choose from: {', '.join(scope.value for scope in Scope)}."
        ) from error
    if not granted:
        raise InvalidInputError("a token needs at least one scope.", field="scopes")
    return granted


def _check_future(moment: datetime) -> datetime:
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInputError("this is no time of our calendar.", field="expires_at") from error
    if utc <= now():
        raise InvalidInputError(
            "this time is over.",
            field="expires_at",
            mend="Name a later one, or none for a token without end.",
        )
    return utc
