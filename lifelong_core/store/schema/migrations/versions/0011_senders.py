"""The token of each prediction's request."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("predictions", sa.Column("token_id", sa.Integer))


def downgrade() -> None:
    op.drop_column("predictions", "token_id")
