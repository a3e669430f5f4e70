"""Window summaries, leases, heartbeats of workers, erased groups, and an audit log without gaps in its numbers."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_UUID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")


def upgrade() -> None:
    op.create_index("ix_requests_environment_logged_on", "requests", ["environment", "logged_on"])
    _number_the_audit_log()
    op.add_column("calibration_sets", sa.Column("content_digest", sa.String(64)))
    op.create_table(
        "window_summaries",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("quantifier_digest", sa.String(64), nullable=False),
        sa.Column("bucket", _MOMENT, nullable=False),
        sa.Column("summary", sa.LargeBinary),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("quarantined", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint(
            "model_id", "environment", "quantifier_digest", "bucket", name="pk_window_summaries"
        ),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_window_summaries_model_id"),
    )
    op.create_table(
        "summary_cursors",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("quantifier_digest", sa.String(64), nullable=False),
        sa.Column("commit_order", sa.BigInteger, nullable=False),
        sa.Column("last_id", _UUID),
        sa.Column("is_grouped", sa.Boolean, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "environment", "quantifier_digest", name="pk_summary_cursors"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_summary_cursors_model_id"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("seen_at", _MOMENT, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("heads", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_table(
        "erased_groups",
        sa.Column("group_hash", sa.LargeBinary(16), nullable=False),
        sa.Column("erased_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("group_hash", name="pk_erased_groups"),
    )


def _number_the_audit_log() -> None:
    """Number entries without gaps from here on; if there are earlier gaps, add an entry with the last old number."""
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE audit ALTER COLUMN id DROP DEFAULT")
        op.execute("DROP SEQUENCE audit_id_seq")
    entries, newest = op.get_bind().execute(sa.text("SELECT count(*), coalesce(max(id), 0) FROM audit")).one()
    if entries != newest:
        audit = sa.table(
            "audit",
            sa.column("id", sa.Integer),
            sa.column("at", _MOMENT),
            sa.column("actor", sa.String),
            sa.column("action", sa.String),
            sa.column("subject", sa.String),
            sa.column("details", sa.JSON),
        )
        entry = {
            "id": newest + 1,
            "at": datetime.now(UTC),
            "actor": "migration",
            "action": "audit.numbered",
            "subject": "audit log",
            "details": {"up_to": newest, "missing": newest - entries},
        }
        op.bulk_insert(audit, [entry])


def _number_the_audit_log_by_a_sequence() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE audit_id_seq AS integer OWNED BY audit.id")
        op.execute("SELECT setval('audit_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM audit), false)")
        op.execute("ALTER TABLE audit ALTER COLUMN id SET DEFAULT nextval('audit_id_seq')")


def downgrade() -> None:
    _number_the_audit_log_by_a_sequence()
    for table in ("erased_groups", "workers", "leases", "summary_cursors", "window_summaries"):
        op.drop_table(table)
    op.drop_column("calibration_sets", "content_digest")
    op.drop_index("ix_requests_environment_logged_on", "requests")
