"""Heartbeats of the monitors."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("seen_at", _MOMENT, nullable=False),
        sa.Column("interval_seconds", sa.Float, nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("environment_modes", sa.JSON, nullable=False),
        sa.Column("tick_due_at", _MOMENT),
        sa.Column("tick_started_at", _MOMENT),
        sa.Column("tick_finished_at", _MOMENT),
        sa.Column("tick_problem", sa.Text),
        sa.Column("visits", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_monitors"),
    )


def downgrade() -> None:
    op.drop_table("monitors")
