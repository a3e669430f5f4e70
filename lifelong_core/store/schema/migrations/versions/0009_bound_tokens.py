"""Tokens that are bound to environments and can be rotated; environments that can be disabled."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_TOKENS = (
    ("environments", sa.JSON(none_as_null=True)),
    ("rotated_at", _MOMENT),
    ("previous_secret_hash", sa.LargeBinary(32)),
    ("previous_expires_at", _MOMENT),
    ("last_used_at", _MOMENT),
)
_ENVIRONMENTS = (("created_by", sa.String(128)), ("disabled_at", _MOMENT))


def upgrade() -> None:
    for name, kind in _TOKENS:
        op.add_column("tokens", sa.Column(name, kind))
    for name, kind in _ENVIRONMENTS:
        op.add_column("environments", sa.Column(name, kind))


def downgrade() -> None:
    for name, _ in reversed(_TOKENS):
        op.drop_column("tokens", name)
    for name, _ in reversed(_ENVIRONMENTS):
        op.drop_column("environments", name)
