"""The tables of the first slice: registry, prediction log, labels, cycles, tokens, audit."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")


def upgrade() -> None:
    _clocks()
    _registry()
    _heads()
    _log()
    _cycles()
    _access()


def downgrade() -> None:
    for table in (
        "audit", "tokens", "cycles", "labels", "requests", "predictions", "head_activations", "heads",
        "environments", "calibration_sets", "models", "tasks", "commit_clock", "registry_revision",
    ):  # fmt: skip
        op.drop_table(table)


def _clocks() -> None:
    for name, column in (("registry_revision", "revision"), ("commit_clock", "value")):
        table = op.create_table(
            name,
            sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
            sa.Column(column, sa.BigInteger, nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        )
        op.bulk_insert(table, [{"id": 1, column: 0}])


def _registry() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("class_names", sa.JSON, nullable=False),
        sa.Column("costs", sa.JSON, nullable=False),
        sa.Column("promoted_model_id", sa.Integer),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("name", name="uq_tasks_name"),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("task_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("artifact", sa.String(64)),
        sa.Column("preprocessing", sa.JSON),
        sa.Column("calibration_set_id", sa.Integer),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_models_task_id"),
        sa.UniqueConstraint("name", "version", name="uq_models_name_version"),
    )
    op.create_table(
        "calibration_sets",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("prevalence", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_calibration_sets"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_calibration_sets_model_id"),
        sa.UniqueConstraint("model_id", "digest", name="uq_calibration_sets_model_id_digest"),
    )
    environments = op.create_table(
        "environments",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_environments"),
    )
    op.bulk_insert(environments, [{"name": "default", "created_at": datetime.now(UTC)}])


def _heads() -> None:
    op.create_table(
        "heads",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_heads"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_heads_model_id"),
    )
    op.create_table(
        "head_activations",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("sequence", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("previous", sa.Integer),
        sa.Column("inherits", sa.Boolean, nullable=False),
        sa.Column("activated_at", MOMENT, nullable=False),
        sa.Column("activated_by", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "environment", "sequence", name="pk_head_activations"),
        sa.ForeignKeyConstraint(
            ["model_id", "head_version"],
            ["heads.model_id", "heads.version"],
            name="fk_head_activations_model_id_head_version",
        ),
    )


def _log() -> None:
    op.create_table(
        "predictions",
        sa.Column("logged_on", sa.Date, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("commit_order", sa.BigInteger, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("decision", sa.Integer, nullable=False),
        sa.Column("logits", sa.LargeBinary, nullable=False),
        sa.Column("group_hash", sa.LargeBinary),
        sa.PrimaryKeyConstraint("logged_on", "id", name="pk_predictions"),
        postgresql_partition_by="RANGE (logged_on)",
    )
    op.create_index("ix_predictions_window", "predictions", ["model_id", "environment", "id"])
    op.create_index("ix_predictions_commit_order", "predictions", ["commit_order", "id"])
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE TABLE predictions_default PARTITION OF predictions DEFAULT")
    op.create_table(
        "requests",
        sa.Column("model_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("body_digest", sa.LargeBinary, nullable=False),
        sa.Column("prediction_ids", sa.LargeBinary, nullable=False),
        sa.Column("logged_on", sa.Date, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "request_id", "environment", name="pk_requests"),
    )
    op.create_table(
        "labels",
        sa.Column("logged_on", sa.Date, nullable=False),
        sa.Column("prediction_id", UUID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("label", sa.Integer, nullable=False),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("logged_on", "prediction_id", name="pk_labels"),
    )
    op.create_index("ix_labels_newest", "labels", ["model_id", "environment", "prediction_id"])


def _cycles() -> None:
    op.create_table(
        "cycles",
        sa.Column("id", UUID, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("report", sa.JSON, nullable=False),
        sa.Column("window_samples", sa.Integer, nullable=False),
        sa.Column("horizon", sa.BigInteger, nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("published_version", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_cycles"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_cycles_model_id"),
        sa.UniqueConstraint(
            "model_id", "environment", "due_at", name="uq_cycles_model_id_environment_due_at"
        ),
    )


def _access() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("secret_hash", name="uq_tokens_secret_hash"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(256), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
