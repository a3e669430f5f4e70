"""Sessions of the console."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("id_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("token_id", sa.Integer, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("used_at", _MOMENT, nullable=False),
        sa.Column("valid_until", _MOMENT, nullable=False),
        sa.Column("ends_at", _MOMENT, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id_hash", name="pk_console_sessions"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_console_sessions_token_id"),
    )


def downgrade() -> None:
    op.drop_table("console_sessions")
