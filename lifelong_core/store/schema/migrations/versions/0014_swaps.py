"""Counts of the earlier decisions that each swap would have changed."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "swaps",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("head_version", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("cycle_id", sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql"), nullable=False),
        sa.Column("activated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("affected", sa.JSON),
        sa.Column("is_final", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "head_version", name="pk_swaps"),
        sa.ForeignKeyConstraint(["cycle_id"], ["cycles.id"], name="fk_swaps_cycle_id"),
        sa.UniqueConstraint("cycle_id", name="uq_swaps_cycle_id"),
    )


def downgrade() -> None:
    op.drop_table("swaps")
