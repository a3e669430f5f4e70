"""Pinned heads, and cycles that propose a head instead of publishing it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "head_pins",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("pinned_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pinned_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "environment", name="pk_head_pins"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_head_pins_model_id"),
    )
    op.add_column("cycles", sa.Column("proposal", sa.Text))
    op.create_index("ix_cycles_horizon", "cycles", ["model_id", "environment", "horizon"])


def downgrade() -> None:
    op.drop_index("ix_cycles_horizon", "cycles")
    op.drop_column("cycles", "proposal")
    op.drop_table("head_pins")
