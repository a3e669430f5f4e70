"""Labelling plans, and the predictions that they choose."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_ID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "labelling_plans",
        sa.Column("id", _ID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("since", _MOMENT, nullable=False),
        sa.Column("until", _MOMENT, nullable=False),
        sa.Column("window_limit", sa.Integer, nullable=False),
        sa.Column("log_position", sa.BigInteger, nullable=False),
        sa.Column("window_samples", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("labelled_before", sa.Integer, nullable=False),
        sa.Column("expected_widths", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("estimate", sa.Text),
        sa.Column("estimated_at", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_labelling_plans"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_labelling_plans_model_id"),
    )
    op.create_index("ix_labelling_plans_newest", "labelling_plans", ["model_id", "environment", "id"])
    op.create_table(
        "labelling_samples",
        sa.Column("logged_on", sa.Date, nullable=False),
        sa.Column("prediction_id", _ID, nullable=False),
        sa.Column("plan_id", _ID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer),
        sa.Column("propensity", sa.Float, nullable=False),
        sa.Column("decision", sa.Integer, nullable=False),
        sa.Column("expected_cost", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("logged_on", "prediction_id", "plan_id", name="pk_labelling_samples"),
    )
    op.create_index("ix_labelling_samples_plan", "labelling_samples", ["plan_id", "position"])
    op.create_index(
        "ix_labelling_samples_population", "labelling_samples", ["model_id", "environment", "prediction_id"]
    )


def downgrade() -> None:
    op.drop_table("labelling_samples")
    op.drop_table("labelling_plans")
