"""Labelling propensities, and the history of labels."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_UUID = sa.LargeBinary(16).with_variant(sa.Uuid(), "postgresql")


def upgrade() -> None:
    op.add_column("labels", sa.Column("propensity", sa.Float))
    op.create_table(
        "label_revisions",
        sa.Column("logged_on", sa.Date, nullable=False),
        sa.Column("prediction_id", _UUID, nullable=False),
        sa.Column("revision", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("previous_label", sa.Integer),
        sa.Column("label", sa.Integer, nullable=False),
        sa.Column("propensity", sa.Float),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("actor", sa.String(128)),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("logged_on", "prediction_id", "revision", name="pk_label_revisions"),
    )
    # Earlier corrections and actors are unknown: the history begins with the present label.
    op.execute(
        "INSERT INTO label_revisions (logged_on, prediction_id, revision, label, source, recorded_at)"
        " SELECT logged_on, prediction_id, 1, label, source, recorded_at FROM labels"
    )


def downgrade() -> None:
    op.drop_table("label_revisions")
    op.drop_column("labels", "propensity")
