"""An index of the stale hours of all populations."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_NAME = "ix_window_summaries_stale"
_STALE = sa.text("summary IS NULL")


def upgrade() -> None:
    op.create_index(
        _NAME,
        "window_summaries",
        ["model_id", "environment"],
        sqlite_where=_STALE,
        postgresql_where=_STALE,
    )


def downgrade() -> None:
    op.drop_index(_NAME, table_name="window_summaries")
