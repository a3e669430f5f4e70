"""Workers report which models they have loaded; a removed model keeps its row."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("models", sa.JSON(none_as_null=True)))
    op.add_column("models", sa.Column("removed_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("models", "removed_at")
    op.drop_column("workers", "models")
