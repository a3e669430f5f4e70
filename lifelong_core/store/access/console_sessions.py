"""Sessions of the console: the browser holds a random identifier, the database its SHA-256.

A session ends with its token's secret (expiry, revocation, rotation), after an idle time, after its lifetime, and at
logout. Times are those of the database.
"""

import hmac
import secrets
from collections.abc import Iterable
from datetime import timedelta

import sqlalchemy as sa

from lifelong_core.entities.access import ConsoleSession, Token
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.access.token_lookup import hash_secret, named_token, token_of, valid_token
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Moment, read_record
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnauthenticatedError

MOST_SESSIONS = 20
"""Largest number of open sessions of one token; a further login ends the least recently used one."""
_IDENTIFIER_BYTES = 32
_sessions, _tokens = tables.console_sessions, tables.tokens


class ConsoleSessions(Repository):
    """Begins, finds, prolongs and ends sessions."""

    def begin(self, secret: str, *, address: str, idle: timedelta, lifetime: timedelta) -> str:
        """Log in with the secret of a token.

        Args:
            secret: of the token; the caller checks its scopes.
            address: of the browser, shown in the list of sessions.
            idle: the session ends after this time without a request.
            lifetime: the session ends after this time in any case.

        Returns:
            The identifier of the session, for the browser's cookie; it cannot be retrieved later.

        Raises:
            UnauthenticatedError: the token is unknown, expired or revoked.
            UnavailableError: the database does not answer.
        """
        identifier = secrets.token_urlsafe(_IDENTIFIER_BYTES)
        with self._database.write() as connection:
            # The lock makes a concurrent rotation or revocation see this session and end it.
            token = valid_token(connection, secret, locked=True)
            if token is None:
                raise UnauthenticatedError("the token is unknown, expired or revoked.")
            moment = database_time(connection)
            ends_at = min(moment + lifetime, token.expires_at or moment + lifetime)
            row = {
                "id_hash": hash_secret(identifier),
                "token_id": token.id,
                "created_at": moment,
                "used_at": moment,
                "valid_until": min(moment + idle, ends_at),
                "ends_at": ends_at,
                "address": address[:64],
            }
            _make_room(connection, token.id)
            connection.execute(sa.insert(_sessions), row)
            write_audit(connection, token.name, "console.login", token.name, {"ends_at": ends_at.isoformat()})
        return identifier

    def find(self, identifier: str) -> Token | None:
        """Return the token of a session; None if there is no such session, or it or its token has ended.

        Raises:
            UnavailableError: the database does not answer.
        """
        digest = hash_secret(identifier)
        query = (
            sa.select(_tokens, _sessions.c.id_hash, _sessions.c.valid_until)
            .join(_sessions, _sessions.c.token_id == _tokens.c.id)
            .where(_sessions.c.id_hash == digest, _tokens.c.revoked_at.is_(None))
        )
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
            if row is None or not hmac.compare_digest(bytes(row.id_hash), digest):
                return None
            return token_of(row) if row.valid_until > database_time(connection) else None

    def note_use(self, identifiers: Iterable[str], *, idle: timedelta) -> None:
        """Prolong sessions that were just used, never beyond their lifetime.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            moment = database_time(connection)
            until = sa.case(
                (_sessions.c.ends_at < moment + idle, _sessions.c.ends_at),
                else_=sa.literal(moment + idle, Moment),
            )
            for digest in sorted(hash_secret(identifier) for identifier in identifiers):
                connection.execute(
                    sa.update(_sessions)
                    .where(_sessions.c.id_hash == digest)
                    .values(used_at=moment, valid_until=until)
                )

    def end(self, identifier: str) -> None:
        """Log out; an unknown session is ignored.

        Raises:
            UnavailableError: the database does not answer; the session stays open.
        """
        with self._database.write() as connection:
            ended = sa.delete(_sessions).where(_sessions.c.id_hash == hash_secret(identifier))
            token_id = connection.execute(ended.returning(_sessions.c.token_id)).scalar_one_or_none()
            if token_id is not None:
                named = sa.select(_tokens.c.name).where(_tokens.c.id == token_id)
                name = connection.execute(named).scalar_one()
                write_audit(connection, name, "console.logout", name)

    def end_all(self, name: str, *, actor: str) -> int:
        """End all sessions of the token with this name; return their number.

        Raises:
            NotFoundError: there is no token of that name.
            UnavailableError: the database does not answer; all stay open.
        """
        with self._database.write() as connection:
            ended = end_sessions(connection, named_token(connection, name).id)
            if ended:
                write_audit(connection, actor, "console.logout", name, {"sessions": ended})
        return ended

    def list(self, name: str | None = None) -> list[ConsoleSession]:
        """Return the open sessions of one token or of all, the most recently used first."""
        query = sa.select(_sessions, _tokens.c.name).join(_tokens, _sessions.c.token_id == _tokens.c.id)
        if name is not None:
            query = query.where(_tokens.c.name == name)
        with self._database.read() as connection:
            is_open = _sessions.c.valid_until > database_time(connection)
            rows = connection.execute(query.where(is_open).order_by(_sessions.c.used_at.desc()))
            return [read_record(row, ConsoleSession, token=row.name) for row in rows]

    def delete_expired(self) -> int:
        """Delete sessions that have ended; return their number.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.read() as connection:  # without the write lock of SQLite, which logging needs
            is_over = _sessions.c.valid_until <= database_time(connection)
            if connection.execute(sa.select(_sessions.c.token_id).where(is_over).limit(1)).first() is None:
                return 0
        with self._database.write() as connection:
            is_over = _sessions.c.valid_until <= database_time(connection)
            return connection.execute(sa.delete(_sessions).where(is_over)).rowcount


def _make_room(connection: sa.Connection, token_id: int) -> None:
    """Delete expired sessions of a token, and the least recently used ones above the limit."""
    mine = _sessions.c.token_id == token_id
    connection.execute(sa.delete(_sessions).where(mine, _sessions.c.valid_until <= database_time(connection)))
    newest = sa.select(_sessions.c.id_hash).where(mine).order_by(_sessions.c.used_at.desc())
    kept = list(connection.execute(newest.limit(MOST_SESSIONS - 1)).scalars())
    connection.execute(sa.delete(_sessions).where(mine, _sessions.c.id_hash.not_in(kept)))


def end_sessions(connection: sa.Connection, token_id: int) -> int:
    """End all sessions of a token in this transaction; return the number of open ones."""
    mine = _sessions.c.token_id == token_id
    over = sa.delete(_sessions).where(mine, _sessions.c.valid_until <= database_time(connection))
    connection.execute(over)
    return connection.execute(sa.delete(_sessions).where(mine)).rowcount
