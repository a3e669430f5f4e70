"""Figures of cycles in a column of their own: overviews of all populations read no reports."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cycles", sa.Column("figures", sa.JSON(none_as_null=True)))
