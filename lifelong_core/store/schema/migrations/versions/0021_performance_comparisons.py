"""Estimated beside realised performance of each population."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "performance_comparisons",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "environment", name="pk_performance_comparisons"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_performance_comparisons_model_id"),
    )


def downgrade() -> None:
    op.drop_table("performance_comparisons")
