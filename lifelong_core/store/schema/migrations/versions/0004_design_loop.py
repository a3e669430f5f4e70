"""Interviews, the recommendations that are attached to tasks, and jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_UUID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "interviews",
        sa.Column("id", _UUID, nullable=False),
        sa.Column("task_id", sa.Integer),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.Column("updated_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_interviews"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_interviews_task_id"),
    )
    op.create_table(
        "recommendations",
        sa.Column("task_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("thresholds", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "version", name="pk_recommendations"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_recommendations_task_id"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", _UUID, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String(128)),
        sa.Column("held_from", _MOMENT),
        sa.Column("held_until", _MOMENT),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("started_at", _MOMENT),
        sa.Column("finished_at", _MOMENT),
        sa.Column("result", sa.Text),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"])


def downgrade() -> None:
    for table in ("jobs", "recommendations", "interviews"):
        op.drop_table(table)
