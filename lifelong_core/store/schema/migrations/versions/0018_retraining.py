"""Retraining: progress of jobs, evaluations, trainings, promotions, rollouts and proposals."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_UUID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")
_DIGEST = sa.String(64)
_NAME = sa.String(128)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("progress", sa.Text))
    op.add_column("jobs", sa.Column("checkpoint", _DIGEST))
    op.add_column("jobs", sa.Column("spare_checkpoint", _DIGEST))
    op.add_column("jobs", sa.Column("cancelled_at", _MOMENT))
    op.add_column("jobs", sa.Column("cancelled_by", _NAME))
    op.create_table(
        "job_log",
        sa.Column("job_id", _UUID, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("written_at", _MOMENT, nullable=False),
        sa.Column("text", sa.String(500), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_job_log"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_log_job_id"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", _UUID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("job_id", _UUID),
        sa.Column("recommendation_version", sa.Integer),
        sa.Column("head", _DIGEST, nullable=False),
        sa.Column("accepted", sa.Boolean),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("result", _DIGEST, nullable=False),
        sa.Column("report", _DIGEST),
        sa.Column("labelled_set", _DIGEST, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_evaluations_model_id"),
    )
    op.create_index("ix_evaluations_model_id_id", "evaluations", ["model_id", "id"])
    op.create_table(
        "trainings",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("job_id", _UUID, nullable=False),
        sa.Column("recipe", sa.Text, nullable=False),
        sa.Column("result", _DIGEST, nullable=False),
        sa.Column("test_set", _DIGEST, nullable=False),
        sa.Column("report", _DIGEST),
        sa.Column("report_page", _DIGEST),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="pk_trainings"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_trainings_model_id"),
        sa.UniqueConstraint("job_id", name="uq_trainings_job_id"),
    )
    _create_promotions()
    _create_rollouts()
    _create_proposals()


def _create_promotions() -> None:
    op.create_table(
        "promotions",
        sa.Column("task_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("sequence", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("previous", sa.Integer),
        sa.Column("promoted_at", _MOMENT, nullable=False),
        sa.Column("promoted_by", _NAME, nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "sequence", name="pk_promotions"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_promotions_task_id"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_promotions_model_id"),
    )
    # When the present model was promoted is in the audit log only; its task's creation is a time before.
    op.execute(
        "INSERT INTO promotions (task_id, sequence, model_id, previous, promoted_at, promoted_by, reason)"
        " SELECT id, 1, promoted_model_id, NULL, created_at, 'migration', 'promote' FROM tasks"
        " WHERE promoted_model_id IS NOT NULL"
    )


def _create_rollouts() -> None:
    op.create_table(
        "rollouts",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("task_id", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("share", sa.Float, nullable=False),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("started_by", _NAME, nullable=False),
        sa.Column("changed_at", _MOMENT, nullable=False),
        sa.Column("ended_at", _MOMENT),
        sa.Column("ended_by", _NAME),
        sa.Column("outcome", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_rollouts"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_rollouts_task_id"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_rollouts_model_id"),
    )
    going_on = sa.text("ended_at IS NULL")
    op.create_index(
        "ix_rollouts_open",
        "rollouts",
        ["task_id"],
        unique=True,
        sqlite_where=going_on,
        postgresql_where=going_on,
    )


def _create_proposals() -> None:
    op.create_table(
        "retraining_proposals",
        sa.Column("id", _UUID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("proposed_at", _MOMENT, nullable=False),
        sa.Column("fine_at", _MOMENT),
        sa.Column("decided_at", _MOMENT),
        sa.Column("decided_by", _NAME),
        sa.Column("decision", sa.String(16)),
        sa.Column("decision_reason", sa.String(200)),
        sa.Column("job_id", _UUID),
        sa.PrimaryKeyConstraint("id", name="pk_retraining_proposals"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_retraining_proposals_model_id"),
    )
    undecided = sa.text("decided_at IS NULL")
    op.create_index(
        "ix_retraining_proposals_open",
        "retraining_proposals",
        ["model_id", "environment", "reason"],
        unique=True,
        sqlite_where=undecided,
        postgresql_where=undecided,
    )


def downgrade() -> None:
    for table in ("retraining_proposals", "rollouts", "promotions", "trainings", "evaluations", "job_log"):
        op.drop_table(table)
    for column in ("cancelled_by", "cancelled_at", "spare_checkpoint", "checkpoint", "progress"):
        op.drop_column("jobs", column)
