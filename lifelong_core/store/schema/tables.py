"""All tables, as declared. The migrations must build exactly these (a test compares them on both databases)."""

import sqlalchemy as sa

from lifelong_core.store.engine.columns import Moment, OrderedUuid

DEFAULT_HEAD = ""
"""`head_activations.environment` of the model's default head: a part of the key cannot be null."""

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

registry_revision = sa.Table(
    "registry_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""One row. Every change of what a serving worker must know adds one, so a worker asks for one number only."""

commit_clock = sa.Table(
    "commit_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("value", sa.BigInteger, nullable=False),
)
"""One row. On SQLite the commit order of the last transaction that wrote to the log; on PostgreSQL an offset that is
added to transaction ids, so that a log restored on a new server goes on in order."""

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("class_names", sa.JSON, nullable=False),
    sa.Column("costs", sa.JSON, nullable=False),
    # No foreign key: the two tables point at each other, and SQLite cannot add a constraint later.
    sa.Column("promoted_model_id", sa.Integer),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("name"),
)

models = sa.Table(
    "models",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("artifact", sa.String(64)),
    sa.Column("preprocessing", sa.JSON(none_as_null=True)),
    # No foreign key, for the same reason as above.
    sa.Column("calibration_set_id", sa.Integer),
    sa.Column("created_at", Moment, nullable=False),
    # The row of a removed model stays: neither its id nor its version is ever used again.
    sa.Column("removed_at", Moment),
    sa.UniqueConstraint("name", "version"),
)

calibration_sets = sa.Table(
    "calibration_sets",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("samples", sa.Integer, nullable=False),
    sa.Column("prevalence", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    # Of the arrays, whatever file holds them: what a head's provenance names. Null: added by an older version.
    sa.Column("content_digest", sa.String(64)),
    sa.UniqueConstraint("model_id", "digest"),
)

environments = sa.Table(
    "environments",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("created_at", Moment, nullable=False),
    # Name of the token or person; null: created by an older version, or by a delivery of the spool.
    sa.Column("created_by", sa.String(128)),
    # From then on no prediction is made there; null: it is in use.
    sa.Column("disabled_at", Moment),
)

heads = sa.Table(
    "heads",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    # Text, not a JSON type: the document is kept to the letter.
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
)

head_activations = sa.Table(
    "head_activations",
    metadata,
    sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    # Counts up from 1 within a population: of two changes to the same state, one fails.
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("head_version", sa.Integer, nullable=False),
    # The activation that a rollback brings back; null: what served before this environment had a head of its own.
    sa.Column("previous", sa.Integer),
    # True: the environment uses the model's default head again.
    sa.Column("uses_default_head", sa.Boolean, nullable=False),
    sa.Column("activated_at", Moment, nullable=False),
    sa.Column("activated_by", sa.String(128), nullable=False),
    sa.Column("reason", sa.String(16), nullable=False),
    sa.ForeignKeyConstraint(["model_id", "head_version"], ["heads.model_id", "heads.version"]),
)

head_pins = sa.Table(
    "head_pins",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    sa.Column("reason", sa.String(200), nullable=False),
    sa.Column("pinned_at", Moment, nullable=False),
    sa.Column("pinned_by", sa.String(128), nullable=False),
)
"""Where a person holds the head that is in force; a row goes when the pin goes, the audit log keeps both."""

predictions = sa.Table(
    "predictions",
    metadata,
    sa.Column("logged_on", sa.Date, primary_key=True),
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("commit_order", sa.BigInteger, nullable=False),
    sa.Column("model_id", sa.Integer, nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    sa.Column("head_version", sa.Integer, nullable=False),
    sa.Column("decision", sa.Integer, nullable=False),
    sa.Column("logits", sa.LargeBinary, nullable=False),
    sa.Column("group_hash", sa.LargeBinary),
    # No foreign key, as for the model. Null: it came without a token, or an older version logged it.
    sa.Column("token_id", sa.Integer),
    sa.Index("ix_predictions_window", "model_id", "environment", "id"),
    sa.Index("ix_predictions_commit_order", "commit_order", "id"),
    postgresql_partition_by="RANGE (logged_on)",
)
"""The log. On PostgreSQL one partition for each UTC day, and a default one so that no row is ever refused."""

requests = sa.Table(
    "requests",
    metadata,
    # The environment comes last, so that one index also finds a request whose environment is not known.
    sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("environment", sa.String(64), primary_key=True),
    sa.Column("body_digest", sa.LargeBinary, nullable=False),
    # 16 bytes for each prediction, in the order of the answer.
    sa.Column("prediction_ids", sa.LargeBinary, nullable=False),
    sa.Column("logged_on", sa.Date, nullable=False),
    # Retention deletes by environment and day.
    sa.Index("ix_requests_environment_logged_on", "environment", "logged_on"),
)

labels = sa.Table(
    "labels",
    metadata,
    # No foreign key to the log: it is partitioned, and its old days are dropped as a whole.
    sa.Column("logged_on", sa.Date, primary_key=True),
    sa.Column("prediction_id", OrderedUuid, primary_key=True),
    # As in the log, repeated here so that the newest labelled predictions are found by one index.
    sa.Column("model_id", sa.Integer, nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    sa.Column("label", sa.Integer, nullable=False),
    sa.Column("source", sa.String(128), nullable=False),
    sa.Column("recorded_at", Moment, nullable=False),
    sa.Index("ix_labels_newest", "model_id", "environment", "prediction_id"),
)

cycles = sa.Table(
    "cycles",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("finished_at", Moment, nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("report", sa.JSON, nullable=False),
    sa.Column("window_samples", sa.Integer, nullable=False),
    sa.Column("log_position", sa.BigInteger, nullable=False),
    sa.Column("head_version", sa.Integer, nullable=False),
    sa.Column("published_version", sa.Integer),
    # The head that waits, or waited, for a person's approval; text, like that of `heads`.
    sa.Column("proposal", sa.Text),
    # All three are null, or none; null: the proposal was not rejected.
    sa.Column("rejection_reason", sa.String(200)),
    sa.Column("rejected_at", Moment),
    sa.Column("rejected_by", sa.String(128)),
    # A cycle that is due runs once, however many monitors try.
    sa.UniqueConstraint("model_id", "environment", "due_at"),
    sa.Index("ix_cycles_log_position", "model_id", "environment", "log_position"),
)

swaps = sa.Table(
    "swaps",
    metadata,
    # Versions count up over all environments of a model, so that this names one swap.
    sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("head_version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cycle_id", OrderedUuid, sa.ForeignKey("cycles.id"), nullable=False),
    sa.Column("activated_at", Moment, nullable=False),
    # Counts of the decisions before the swap that the new head would make otherwise; null: not counted yet.
    sa.Column("affected", sa.JSON(none_as_null=True)),
    # Whether `affected` covers all of its period.
    sa.Column("is_final", sa.Boolean, nullable=False),
    sa.UniqueConstraint("cycle_id"),
)
"""Heads that cycles published, by themselves or when a person approved it."""

window_summaries = sa.Table(
    "window_summaries",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    sa.Column("quantifier_digest", sa.String(64), primary_key=True),
    # The beginning of the UTC hour in which the predictions were made.
    sa.Column("bucket", Moment, primary_key=True),
    # The bytes of a WindowSummary; null: rows of this hour were deleted since, and it has to be made anew.
    sa.Column("summary", sa.LargeBinary),
    sa.Column("samples", sa.Integer, nullable=False),
    # Rows of this hour that no estimate may use; they are not in the summary.
    sa.Column("quarantined", sa.Integer, nullable=False),
    sa.Index(
        "ix_window_summaries_stale",
        "model_id",
        "environment",
        sqlite_where=sa.text("summary IS NULL"),
        postgresql_where=sa.text("summary IS NULL"),
    ),
)

summary_cursors = sa.Table(
    "summary_cursors",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    sa.Column("quantifier_digest", sa.String(64), primary_key=True),
    # Rows up to this place in commit order are in the summaries, later ones are not; null id: no row of that order.
    sa.Column("commit_order", sa.BigInteger, nullable=False),
    sa.Column("last_id", OrderedUuid),
    # Whether the summaries know which samples belong together: from the first row with a group on.
    sa.Column("is_grouped", sa.Boolean, nullable=False),
    # Grows with every change of these summaries, and when rows below them are deleted: whoever read before it changed
    # must not write.
    sa.Column("revision", sa.BigInteger, nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("holder", sa.String(128), nullable=False),
    # Fencing token of the holder: it grows with every holder, and older tokens are rejected.
    sa.Column("token", sa.BigInteger, nullable=False),
    # For how long it was given: one that ends much later comes from a clock that was set back.
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
)

interviews = sa.Table(
    "interviews",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    # Null: for no task yet.
    sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id")),
    # Grows with every change: of two changes to the same state, one fails.
    sa.Column("revision", sa.Integer, nullable=False),
    # Text, like that of `heads`.
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Column("updated_by", sa.String(128), nullable=False),
)

recommendations = sa.Table(
    "recommendations",
    metadata,
    sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), primary_key=True, autoincrement=False),
    # Counts up from 1 within the task; the last one is in force.
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    # Text, like that of `heads`; the digest is over both.
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("thresholds", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # Number of starts, without those that were released.
    sa.Column("attempts", sa.Integer, nullable=False),
    # Fencing token of the latest claim: it grows with every claim, and older tokens are rejected.
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String(128)),
    # The claim holds between these two: at an earlier time, it comes from a clock that was set back.
    sa.Column("held_from", Moment),
    sa.Column("held_until", Moment),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    # Of the newest attempt.
    sa.Column("started_at", Moment),
    sa.Column("finished_at", Moment),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    sa.Index("ix_jobs_state_id", "state", "id"),
)
"""Work that a request only asks for; the monitor does it."""

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
    # Of the registry that it serves.
    sa.Column("revision", sa.BigInteger, nullable=False),
    # What it serves: [{"model_id", "environment" (null: default head), "version"}].
    sa.Column("heads", sa.JSON, nullable=False),
    # What became of each graph: [{"model_id", "provider" (null: not loaded), "failure" (null: loaded)}]. Null: an older
    # version of the service does not tell.
    sa.Column("models", sa.JSON(none_as_null=True)),
)
"""Serving processes, by their own word."""

monitors = sa.Table(
    "monitors",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
    sa.Column("interval_seconds", sa.Float, nullable=False),
    # What a cycle that wants another head does: auto, propose or shadow; by environment where it differs.
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("environment_modes", sa.JSON, nullable=False),
    # Of the newest tick; all null before the first one.
    sa.Column("tick_due_at", Moment),
    sa.Column("tick_started_at", Moment),
    # Null: it runs.
    sa.Column("tick_finished_at", Moment),
    # Null: it did not fail as a whole.
    sa.Column("tick_problem", sa.Text),
    # Its newest visit of each population: [{"model_id", "environment", "visited_at", "outcome", "reason",
    # "watched_at" (null: never)}].
    sa.Column("visits", sa.JSON, nullable=False),
    # What it watches with: {"policy.mode": "auto", ...}. Null: a monitor of a version before schema 0010.
    sa.Column("settings", sa.JSON(none_as_null=True)),
)
"""Heartbeats of the monitors."""

erased_groups = sa.Table(
    "erased_groups",
    metadata,
    sa.Column("group_hash", sa.LargeBinary(16), primary_key=True),
    sa.Column("erased_at", Moment, nullable=False),
)
"""What was made of these groups before that time never comes back, not even from the spool of another machine."""

group_keys = sa.Table(
    "group_keys",
    metadata,
    # 0 is the current key, then the older ones.
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.UniqueConstraint("digest"),
)
"""The keys of the group hash, by digest; the keys themselves are only in the key file of each host."""

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("secret_hash", sa.LargeBinary(32), nullable=False),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment),
    sa.Column("revoked_at", Moment),
    # The only environments in which it may predict and label; null: all.
    sa.Column("environments", sa.JSON(none_as_null=True)),
    sa.Column("rotated_at", Moment),
    # The secret before the last rotation, and until when it is valid.
    sa.Column("previous_secret_hash", sa.LargeBinary(32)),
    sa.Column("previous_expires_at", Moment),
    # To a minute; null: never, or only before there was this column.
    sa.Column("last_used_at", Moment),
    sa.UniqueConstraint("name"),
    sa.UniqueConstraint("secret_hash"),
)

console_sessions = sa.Table(
    "console_sessions",
    metadata,
    # SHA-256 of the browser's cookie.
    sa.Column("id_hash", sa.LargeBinary(32), primary_key=True),
    sa.Column("token_id", sa.Integer, sa.ForeignKey("tokens.id"), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("used_at", Moment, nullable=False),
    # Without a request it ends then; each one moves this on, never beyond `ends_at`.
    sa.Column("valid_until", Moment, nullable=False),
    sa.Column("ends_at", Moment, nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
)
"""Who is logged in to the console. A token has few rows here, so no index but that of the key is needed."""

audit = sa.Table(
    "audit",
    metadata,
    # No sequence: it would leave gaps.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("actor", sa.String(128), nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("subject", sa.String(256), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    # Address of the client, or `local`. Null: an older version wrote it.
    sa.Column("source", sa.String(64)),
    # Of the entry before, and of this one with that: SHA-256, see audit_chain.
    sa.Column("previous_digest", sa.String(64), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
)
