"""The keys of the group hash, by digest: a process with another key refuses to hash groups."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "group_keys",
        sa.Column("position", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_group_keys"),
        sa.UniqueConstraint("digest", name="uq_group_keys_digest"),
    )


def downgrade() -> None:
    op.drop_table("group_keys")
