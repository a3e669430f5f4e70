"""How the images of each calibration set were decoded and preprocessed; null: unknown."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calibration_sets", sa.Column("preprocessing_digest", sa.String(64)))


def downgrade() -> None:
    op.drop_column("calibration_sets", "preprocessing_digest")
