"""Settings of the monitors, to detect monitors with different ones."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitors", sa.Column("settings", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("monitors", "settings")
