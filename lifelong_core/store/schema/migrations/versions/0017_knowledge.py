"""The knowledge base: entries, fingerprints, trusted signers and the fitted ranker."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    revisions = op.create_table(
        "knowledge_revision",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_knowledge_revision"),
    )
    op.bulk_insert(revisions, [{"id": 1, "revision": 0}])
    op.create_table(
        "knowledge_entries",
        sa.Column("task", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("transfers", sa.Integer, nullable=False),
        sa.Column("origin", sa.String(64), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("changed_at", _MOMENT, nullable=False),
        sa.Column("changed_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("task", name="pk_knowledge_entries"),
    )
    op.create_table(
        "fingerprints",
        sa.Column("task", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("artifact", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("extractor", sa.String(64)),
        sa.Column("bins", sa.Integer),
        sa.Column("samples", sa.Integer),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("task", "digest", name="pk_fingerprints"),
        sa.ForeignKeyConstraint(["task"], ["knowledge_entries.task"], name="fk_fingerprints_task"),
    )
    op.create_index("ix_fingerprints_artifact", "fingerprints", ["artifact"])
    op.create_table(
        "trusted_signers",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("public_key", sa.String(128), nullable=False),
        sa.Column("added_at", _MOMENT, nullable=False),
        sa.Column("added_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_trusted_signers"),
        sa.UniqueConstraint("public_key", name="uq_trusted_signers_public_key"),
    )
    op.create_table(
        "rankers",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("outcomes_digest", sa.String(64), nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("fitted_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_rankers"),
    )


def downgrade() -> None:
    for table in ("rankers", "trusted_signers", "fingerprints", "knowledge_entries", "knowledge_revision"):
        op.drop_table(table)
