"""Proposals that a person rejected."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cycles", sa.Column("rejection_reason", sa.String(200)))
    op.add_column("cycles", sa.Column("rejected_at", sa.DateTime(timezone=True)))
    op.add_column("cycles", sa.Column("rejected_by", sa.String(128)))


def downgrade() -> None:
    for column in ("rejected_by", "rejected_at", "rejection_reason"):
        op.drop_column("cycles", column)
