"""Digests that chain the entries of the audit log, and the source of each change."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from lifelong_core.store.access.audit_chain import GENESIS, chain_entries
from lifelong_core.store.access.records import AuditEntry

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_PAGE = 2000
_DIGESTS = ("previous_digest", "digest")
_audit = sa.table(
    "audit",
    sa.column("id", sa.Integer),
    sa.column("at", sa.DateTime(timezone=True)),
    sa.column("actor", sa.String),
    sa.column("action", sa.String),
    sa.column("subject", sa.String),
    sa.column("details", sa.JSON),
    sa.column("source", sa.String),
    sa.column("previous_digest", sa.String),
    sa.column("digest", sa.String),
)


def upgrade() -> None:
    op.add_column("audit", sa.Column("source", sa.String(64)))
    for name in _DIGESTS:
        op.add_column("audit", sa.Column(name, sa.String(64)))
    _chain_the_entries()
    with op.batch_alter_table("audit") as table:
        for name in _DIGESTS:
            table.alter_column(name, existing_type=sa.String(64), nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("audit") as table:
        for name in ("source", *_DIGESTS):
            table.drop_column(name)


def _chain_the_entries() -> None:
    """Add digests to every entry, and an entry with the last number that got its digests from this migration."""
    connection = op.get_bind()
    number, digest = 0, GENESIS
    change = (
        sa.update(_audit)
        .where(_audit.c.id == sa.bindparam("number"))
        .values({name: sa.bindparam(f"new_{name}") for name in _DIGESTS})
    )
    while True:
        query = sa.select(_audit).where(_audit.c.id > number).order_by(_audit.c.id).limit(_PAGE)
        rows = connection.execute(query).all()
        values: list[dict[str, Any]] = []
        for row in rows:
            entry = chain_entries(_entry_of(row), digest)
            number, digest = entry.id, entry.digest
            values.append({"number": number} | {f"new_{name}": getattr(entry, name) for name in _DIGESTS})
        if values:
            connection.execute(change, values)
        if len(rows) < _PAGE:
            break
    if number:
        details = {"up_to": number}
        note = AuditEntry(
            number + 1, datetime.now(UTC), "migration", "audit.chained", "audit log", details, "local"
        )
        op.bulk_insert(_audit, [vars(chain_entries(note, digest))])  # pyright: ignore[reportArgumentType] - a lightweight table


def _entry_of(row: Any) -> AuditEntry:
    # SQLite stores no time zone: values are UTC.
    at = row.at if row.at.tzinfo is not None else row.at.replace(tzinfo=UTC)
    return AuditEntry(row.id, at, row.actor, row.action, row.subject, row.details)
