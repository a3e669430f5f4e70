"""Tokens and audit entries from rows of their tables."""

from dataclasses import replace

from lifelong_core.entities.access import AuditEntry, Scope, Token
from lifelong_core.store.engine.columns import Row, read_record


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


def audit_entry_of(row: Row) -> AuditEntry:
    """The entry of a row of `audit`."""
    return read_record(row, AuditEntry)
