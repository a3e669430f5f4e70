"""Tokens and audit entries from rows of their tables."""

from dataclasses import replace

from lifelong_core.store.access.records import AuditEntry, Scope, Token
from lifelong_core.store.engine.columns import Row


def token_of(row: Row) -> Token:
    """A row of `tokens`, without the hash of its secret."""
    return Token(
        id=row.id,
        name=row.name,
        scopes=frozenset(Scope(scope) for scope in row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        environments=None if row.environments is None else frozenset(row.environments),
        rotated_at=row.rotated_at,
        previous_expires_at=row.previous_expires_at,
        last_used_at=row.last_used_at,
    )


def tokens_by_secret(row: Row) -> dict[bytes, Token]:
    """What the secrets of a row of `tokens` give, by their hash: the present one, and the one before a rotation."""
    token = token_of(row)
    found = {bytes(row.secret_hash): token}
    if row.previous_secret_hash is not None:
        found[bytes(row.previous_secret_hash)] = replace(token, expires_at=token.previous_expires_at)
    return found


def audit_entry_of(row: Row) -> AuditEntry:
    """A row of `audit`."""
    return AuditEntry(
        row.id,
        row.at,
        row.actor,
        row.action,
        row.subject,
        row.details,
        row.source,
        row.previous_digest,
        row.digest,
    )
