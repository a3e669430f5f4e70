"""The decision rule of each task; null: the Bayes rule, by which all decided before."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("decision_rule", sa.JSON))


def downgrade() -> None:
    op.drop_column("tasks", "decision_rule")
