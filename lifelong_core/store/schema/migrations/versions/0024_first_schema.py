"""All tables of the first schema, and its rows: three counters and the default environment."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")


def upgrade() -> None:
    _counters()
    _registry()
    _log()
    _cycles()
    _design_and_jobs()
    _retraining()
    _knowledge()
    _processes()
    _access()


def _counters() -> None:
    for name, column in (
        ("registry_revision", "revision"),
        ("commit_clock", "value"),
        ("knowledge_revision", "revision"),
    ):
        table = op.create_table(
            name,
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column(column, sa.BigInteger, nullable=False),
        )
        op.bulk_insert(table, [{"id": 1, column: 0}])


def _registry() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("class_names", sa.JSON, nullable=False),
        sa.Column("costs", sa.JSON, nullable=False),
        sa.Column("promoted_model_id", sa.Integer),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("decision_rule", sa.JSON, nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("artifact", sa.String(64)),
        sa.Column("preprocessing", sa.JSON(none_as_null=True)),
        sa.Column("calibration_set_id", sa.Integer),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("removed_at", MOMENT),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_table(
        "calibration_sets",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("prevalence", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("content_digest", sa.String(64), nullable=False),
        sa.Column("preprocessing_digest", sa.String(64)),
        sa.UniqueConstraint("model_id", "digest"),
    )
    environments = op.create_table(
        "environments",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128)),
        sa.Column("disabled_at", MOMENT),
    )
    op.bulk_insert(environments, [{"name": "default", "created_at": datetime.now(UTC)}])
    op.create_table(
        "heads",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
    )
    op.create_table(
        "head_activations",
        sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("previous", sa.Integer),
        sa.Column("uses_default_head", sa.Boolean, nullable=False),
        sa.Column("activated_at", MOMENT, nullable=False),
        sa.Column("activated_by", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.ForeignKeyConstraint(["model_id", "head_version"], ["heads.model_id", "heads.version"]),
    )
    op.create_table(
        "head_pins",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("pinned_at", MOMENT, nullable=False),
        sa.Column("pinned_by", sa.String(128), nullable=False),
    )


def _log() -> None:
    op.create_table(
        "predictions",
        sa.Column("logged_on", sa.Date, primary_key=True),
        sa.Column("id", UUID, primary_key=True),
        sa.Column("commit_order", sa.BigInteger, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("decision", sa.Integer, nullable=False),
        sa.Column("logits", sa.LargeBinary, nullable=False),
        sa.Column("group_hash", sa.LargeBinary),
        sa.Column("token_id", sa.Integer),
        postgresql_partition_by="RANGE (logged_on)",
    )
    op.create_index("ix_predictions_commit_order", "predictions", ["commit_order", "id"])
    op.create_index("ix_predictions_window", "predictions", ["model_id", "environment", "id"])
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE TABLE predictions_default PARTITION OF predictions DEFAULT")
    op.create_table(
        "requests",
        sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("body_digest", sa.LargeBinary, nullable=False),
        sa.Column("prediction_ids", sa.LargeBinary, nullable=False),
        sa.Column("logged_on", sa.Date, nullable=False),
    )
    op.create_index("ix_requests_environment_logged_on", "requests", ["environment", "logged_on"])
    op.create_table(
        "labels",
        sa.Column("logged_on", sa.Date, primary_key=True),
        sa.Column("prediction_id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("label", sa.Integer, nullable=False),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
        sa.Column("propensity", sa.Float),
    )
    op.create_index("ix_labels_newest", "labels", ["model_id", "environment", "prediction_id"])
    op.create_table(
        "label_revisions",
        sa.Column("logged_on", sa.Date, primary_key=True),
        sa.Column("prediction_id", UUID, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("previous_label", sa.Integer),
        sa.Column("label", sa.Integer, nullable=False),
        sa.Column("propensity", sa.Float),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
    )
    op.create_table(
        "labelling_plans",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.Column("window_limit", sa.Integer, nullable=False),
        sa.Column("log_position", sa.BigInteger, nullable=False),
        sa.Column("window_samples", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("labelled_before", sa.Integer, nullable=False),
        sa.Column("expected_widths", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("estimate", sa.Text),
        sa.Column("estimated_at", MOMENT),
    )
    op.create_index("ix_labelling_plans_newest", "labelling_plans", ["model_id", "environment", "id"])
    op.create_table(
        "labelling_samples",
        sa.Column("logged_on", sa.Date, primary_key=True),
        sa.Column("prediction_id", UUID, primary_key=True),
        sa.Column("plan_id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer),
        sa.Column("propensity", sa.Float, nullable=False),
        sa.Column("decision", sa.Integer, nullable=False),
        sa.Column("expected_cost", sa.Float, nullable=False),
    )
    op.create_index("ix_labelling_samples_plan", "labelling_samples", ["plan_id", "position"])
    op.create_index(
        "ix_labelling_samples_population", "labelling_samples", ["model_id", "environment", "prediction_id"]
    )


def _cycles() -> None:
    op.create_table(
        "cycles",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("report", sa.JSON, nullable=False),
        sa.Column("window_samples", sa.Integer, nullable=False),
        sa.Column("log_position", sa.BigInteger, nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("published_version", sa.Integer),
        sa.Column("proposal", sa.Text),
        sa.Column("rejection_reason", sa.String(200)),
        sa.Column("rejected_at", MOMENT),
        sa.Column("rejected_by", sa.String(128)),
        sa.UniqueConstraint("model_id", "environment", "due_at"),
    )
    op.create_index("ix_cycles_log_position", "cycles", ["model_id", "environment", "log_position"])
    op.create_table(
        "swaps",
        sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("head_version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cycle_id", UUID, sa.ForeignKey("cycles.id"), nullable=False),
        sa.Column("activated_at", MOMENT, nullable=False),
        sa.Column("affected", sa.JSON(none_as_null=True)),
        sa.Column("is_final", sa.Boolean, nullable=False),
        sa.UniqueConstraint("cycle_id"),
    )
    op.create_table(
        "performance_comparisons",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("computed_at", MOMENT, nullable=False),
    )
    op.create_table(
        "window_summaries",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("quantifier_digest", sa.String(64), primary_key=True),
        sa.Column("bucket", MOMENT, primary_key=True),
        sa.Column("summary", sa.LargeBinary),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("quarantined", sa.Integer, nullable=False),
    )
    op.create_index(
        "ix_window_summaries_stale",
        "window_summaries",
        ["model_id", "environment"],
        sqlite_where=sa.text("summary IS NULL"),
        postgresql_where=sa.text("summary IS NULL"),
    )
    op.create_table(
        "summary_cursors",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("environment", sa.String(64), primary_key=True),
        sa.Column("quantifier_digest", sa.String(64), primary_key=True),
        sa.Column("commit_order", sa.BigInteger, nullable=False),
        sa.Column("last_id", UUID),
        sa.Column("is_grouped", sa.Boolean, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
    )


def _design_and_jobs() -> None:
    op.create_table(
        "interviews",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id")),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("updated_by", sa.String(128), nullable=False),
    )
    op.create_table(
        "recommendations",
        sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("thresholds", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String(128)),
        sa.Column("held_from", MOMENT),
        sa.Column("held_until", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.Column("result", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("progress", sa.Text),
        sa.Column("checkpoint", sa.String(64)),
        sa.Column("spare_checkpoint", sa.String(64)),
        sa.Column("cancelled_at", MOMENT),
        sa.Column("cancelled_by", sa.String(128)),
    )
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"])
    op.create_table(
        "job_log",
        sa.Column("job_id", UUID, sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("written_at", MOMENT, nullable=False),
        sa.Column("text", sa.String(500), nullable=False),
    )


def _retraining() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("job_id", UUID),
        sa.Column("recommendation_version", sa.Integer),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("accepted", sa.Boolean),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("result", sa.String(64), nullable=False),
        sa.Column("report", sa.String(64)),
        sa.Column("labelled_set", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
    )
    op.create_index("ix_evaluations_model_id_id", "evaluations", ["model_id", "id"])
    op.create_table(
        "trainings",
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("job_id", UUID, nullable=False),
        sa.Column("recipe", sa.Text, nullable=False),
        sa.Column("result", sa.String(64), nullable=False),
        sa.Column("test_set", sa.String(64), nullable=False),
        sa.Column("report", sa.String(64)),
        sa.Column("report_page", sa.String(64)),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.UniqueConstraint("job_id"),
    )
    op.create_table(
        "promotions",
        sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("previous", sa.Integer),
        sa.Column("promoted_at", MOMENT, nullable=False),
        sa.Column("promoted_by", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
    )
    op.create_table(
        "rollouts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), nullable=False),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("share", sa.Float, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("started_by", sa.String(128), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.Column("ended_by", sa.String(128)),
        sa.Column("outcome", sa.String(16)),
    )
    op.create_index(
        "ix_rollouts_open",
        "rollouts",
        ["task_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "retraining_proposals",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("proposed_at", MOMENT, nullable=False),
        sa.Column("fine_at", MOMENT),
        sa.Column("decided_at", MOMENT),
        sa.Column("decided_by", sa.String(128)),
        sa.Column("decision", sa.String(16)),
        sa.Column("decision_reason", sa.String(200)),
        sa.Column("job_id", UUID),
    )
    op.create_index(
        "ix_retraining_proposals_open",
        "retraining_proposals",
        ["model_id", "environment", "reason"],
        unique=True,
        sqlite_where=sa.text("decided_at IS NULL"),
        postgresql_where=sa.text("decided_at IS NULL"),
    )


def _knowledge() -> None:
    op.create_table(
        "knowledge_entries",
        sa.Column("task", sa.String(64), primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("transfers", sa.Integer, nullable=False),
        sa.Column("origin", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("changed_by", sa.String(128), nullable=False),
    )
    op.create_table(
        "fingerprints",
        sa.Column("task", sa.String(64), sa.ForeignKey("knowledge_entries.task"), primary_key=True),
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("artifact", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("extractor", sa.String(64)),
        sa.Column("bins", sa.Integer),
        sa.Column("samples", sa.Integer),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
    )
    op.create_index("ix_fingerprints_artifact", "fingerprints", ["artifact"])
    op.create_table(
        "trusted_signers",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("public_key", sa.String(128), nullable=False),
        sa.Column("added_at", MOMENT, nullable=False),
        sa.Column("added_by", sa.String(128), nullable=False),
        sa.UniqueConstraint("public_key"),
    )
    op.create_table(
        "rankers",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("outcomes_digest", sa.String(64), nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("fitted_at", MOMENT, nullable=False),
    )


def _processes() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("heads", sa.JSON, nullable=False),
        sa.Column("models", sa.JSON, nullable=False),
    )
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("interval_seconds", sa.Float, nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("environment_modes", sa.JSON, nullable=False),
        sa.Column("tick_due_at", MOMENT),
        sa.Column("tick_started_at", MOMENT),
        sa.Column("tick_finished_at", MOMENT),
        sa.Column("tick_problem", sa.Text),
        sa.Column("visits", sa.JSON, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
    )


def _access() -> None:
    op.create_table(
        "erased_groups",
        sa.Column("group_hash", sa.LargeBinary(16), primary_key=True),
        sa.Column("erased_at", MOMENT, nullable=False),
    )
    op.create_table(
        "group_keys",
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.Column("environments", sa.JSON(none_as_null=True)),
        sa.Column("rotated_at", MOMENT),
        sa.Column("previous_secret_hash", sa.LargeBinary(32)),
        sa.Column("previous_expires_at", MOMENT),
        sa.Column("last_used_at", MOMENT),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("secret_hash"),
    )
    op.create_table(
        "console_sessions",
        sa.Column("id_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("token_id", sa.Integer, sa.ForeignKey("tokens.id"), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("used_at", MOMENT, nullable=False),
        sa.Column("valid_until", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(256), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("previous_digest", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
