"""Bearer tokens: a secret is shown once, only its hash is stored."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lifelong_core.entities.access import BOUND_SCOPES, Scope, Token
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.access.console_sessions import end_sessions
from lifelong_core.store.access.token_lookup import hash_secret, named_token, token_of, token_of_secret
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.registry.environments import ensure_environment
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError
from lifelong_core.values.names import check_name

_PREFIX = "ll_"
_SECRET_BYTES = 32
LONGEST_OVERLAP = timedelta(days=90)
_USE_PRECISION = timedelta(minutes=1)
_tokens = tables.tokens


class Tokens(Repository):
    """Creates, verifies, rotates and revokes tokens."""

    def create(
        self,
        name: str,
        scopes: Iterable[Scope],
        *,
        actor: str,
        expires_at: datetime | None = None,
        environments: Iterable[str] | None = None,
        show: Callable[[str], None] | None = None,
    ) -> tuple[Token, str]:
        """Create a token; return it and its secret, which cannot be shown again.

        Args:
            name: identifies the token in lists and commands, and as an actor in the audit log.
            scopes: of the token, at least one.
            actor: name of the creating token or process.
            expires_at: end of its validity; None: never.
            environments: the only ones in which it may predict and label; new ones are added. None: all.
            show: is called with the secret just before the commit; if it fails, there is no token.

        Raises:
            InvalidInputError: the name is invalid, there is no or an unknown scope, `expires_at` is in the past,
                `environments` is empty, or it is given with a scope that environments do not limit.
            ConflictError: a present or past token has that name.
        """
        check_name(name, field="name")
        granted = _check_scopes(scopes)
        if expires_at is not None:
            expires_at = _check_future(expires_at)
        bound = None if environments is None else _check_binding(environments, granted)
        secret = _new_secret()
        values = {
            "name": name,
            "secret_hash": hash_secret(secret),
            "scopes": granted,
            "created_at": now(),
            "expires_at": expires_at,
            "environments": bound,
        }
        with change_registry(self._database) as connection:
            known = sa.select(tables.tokens.c.id).where(tables.tokens.c.name == name)
            if connection.execute(known).first() is not None:
                raise ConflictError(
                    f"there is, or was, a token {name!r}.",
                    field="name",
                    hint="Choose another name: the audit log tells tokens apart by it.",
                )
            for environment in bound or ():
                ensure_environment(connection, environment, actor=actor)
            row = connection.execute(sa.insert(tables.tokens).values(values).returning(tables.tokens)).one()
            details = {
                "scopes": granted,
                "expires_at": expires_at and expires_at.isoformat(),
                "environments": bound,
            }
            write_audit(connection, actor, "tokens.create", name, details)
            if show is not None:
                show(secret)
        return token_of(row), secret

    def verify(self, secret: str) -> Token | None:
        """Return the valid token with this secret; None if there is none, or it is expired or revoked."""
        token = self.find(secret)
        return None if token is None or token.has_ended(now()) else token

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret, expired and revoked ones included; None if there is none."""
        with self._database.read() as connection:
            return token_of_secret(connection, secret)

    def rotate(
        self, name: str, *, actor: str, overlap: timedelta, expires_at: datetime | None = None
    ) -> tuple[Token, str]:
        """Give a token a new secret; name, scopes and environments stay.

        Secrets from before an earlier rotation become invalid, and all console sessions of the token end.

        Args:
            name: of the token.
            actor: name of the rotating token or process.
            overlap: further validity of the present secret, from 0 to 90 days, never beyond its expiry.
            expires_at: end of the validity of the new secret; None: it gets the full validity period of the present
                one, without end if that has none.

        Returns:
            The token, and the new secret, which cannot be shown again.

        Raises:
            NotFoundError: there is no token of that name.
            ConflictError: the token was revoked.
            InvalidInputError: the overlap is out of range, or `expires_at` is in the past.
        """
        if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
            raise InvalidInputError(
                f"expected from nothing to {LONGEST_OVERLAP.days} days.",
                field="overlap",
                hint="Name a shorter time: the old secret is valid until then.",
            )
        if expires_at is not None:
            expires_at = _check_future(expires_at)
        secret, moment = _new_secret(), now()
        with change_registry(self._database) as connection:
            row = named_token(connection, name)
            token = token_of(row)
            if token.revoked_at is not None:
                raise ConflictError(
                    f"the token {name!r} was revoked.", field="name", hint="Create a token of another name."
                )
            if expires_at is None and token.expires_at is not None:
                expires_at = moment + (token.expires_at - (token.rotated_at or token.created_at))
            previous_expires_at = min(moment + overlap, token.expires_at or moment + overlap)
            values = {
                "secret_hash": hash_secret(secret),
                "expires_at": expires_at,
                "rotated_at": moment,
                "previous_secret_hash": row.secret_hash,
                "previous_expires_at": previous_expires_at,
            }
            row = _change(connection, row, values)
            end_sessions(connection, token.id)
            details = {
                "expires_at": expires_at and expires_at.isoformat(),
                "previous_expires_at": previous_expires_at.isoformat(),
            }
            write_audit(connection, actor, "tokens.rotate", name, details)
        return token_of(row), secret

    def note_use(self, uses: Mapping[int, datetime]) -> None:
        """Record the latest use of tokens, by token id, to the minute.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            for token_id, moment in sorted(uses.items()):
                is_older = _tokens.c.last_used_at < moment - _USE_PRECISION
                connection.execute(
                    sa.update(_tokens)
                    .where(_tokens.c.id == token_id, _tokens.c.last_used_at.is_(None) | is_older)
                    .values(last_used_at=moment)
                )

    def revoke(self, name: str, *, actor: str) -> Token:
        """Revoke a token permanently, and end its console sessions; a repeated call changes nothing.

        Raises:
            NotFoundError: there is no token of that name.
        """
        with change_registry(self._database) as connection:
            row = named_token(connection, name)
            if row.revoked_at is None:
                row = _change(connection, row, {"revoked_at": now()})
                end_sessions(connection, row.id)
                write_audit(connection, actor, "tokens.revoke", name)
        return token_of(row)

    def list(self) -> list[Token]:
        """Return all tokens, oldest first, revoked and expired ones included."""
        query = sa.select(tables.tokens).order_by(tables.tokens.c.id)
        return [token_of(row) for row in self._rows(query)]


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _change(connection: sa.Connection, row: Row, values: Mapping[str, Any]) -> Row:
    return connection.execute(
        sa.update(_tokens).where(_tokens.c.id == row.id).values(values).returning(_tokens)
    ).one()


def _check_binding(environments: Iterable[str], scopes: Iterable[str]) -> list[str]:
    bound = sorted({check_name(name, field="environments") for name in environments})
    if not bound:
        raise InvalidInputError(
            "a token that is bound to no environment may do nothing.",
            field="environments",
            hint="Name at least one, or leave them out for all.",
        )
    unlimited = sorted(set(scopes) - BOUND_SCOPES)
    if unlimited:
        raise InvalidInputError(
            f"environments limit the scopes {', '.join(sorted(BOUND_SCOPES))} only, not {', '.join(unlimited)}.",
            field="environments",
            hint="Make two tokens: one for the client of the environment, one to administrate.",
        )
    return bound


def _check_scopes(scopes: Iterable[Scope]) -> list[str]:
    try:
        granted = sorted({Scope(scope).value for scope in scopes})
    except ValueError as error:
        raise InvalidInputError(
            f"{error}.", field="scopes", hint=f"Choose from: {', '.join(scope.value for scope in Scope)}."
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
            hint="Name a later one, or none for a token without end.",
        )
    return utc
