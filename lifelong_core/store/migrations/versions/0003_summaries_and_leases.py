"""Window summaries, leases of the monitors, what workers serve, and erased groups."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_UUID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")


def upgrade() -> None:
    op.create_index("ix_requests_logged_on", "requests", ["logged_on"])
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
        sa.PrimaryKeyConstraint("model_id", "environment", "quantifier_digest", name="pk_summary_cursors"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_summary_cursors_model_id"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
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


def downgrade() -> None:
    for table in ("erased_groups", "workers", "leases", "summary_cursors", "window_summaries"):
        op.drop_table(table)
    op.drop_index("ix_requests_logged_on", "requests")
