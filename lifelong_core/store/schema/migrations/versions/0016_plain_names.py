"""Columns under the names that the API shows: the log position of a cycle, and the use of the default head."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_cycles_horizon", table_name="cycles")
    op.execute("ALTER TABLE cycles RENAME COLUMN horizon TO log_position")
    op.create_index("ix_cycles_log_position", "cycles", ["model_id", "environment", "log_position"])
    op.execute("ALTER TABLE head_activations RENAME COLUMN inherits TO uses_default_head")


def downgrade() -> None:
    op.execute("ALTER TABLE head_activations RENAME COLUMN uses_default_head TO inherits")
    op.drop_index("ix_cycles_log_position", table_name="cycles")
    op.execute("ALTER TABLE cycles RENAME COLUMN log_position TO horizon")
    op.create_index("ix_cycles_horizon", "cycles", ["model_id", "environment", "horizon"])
