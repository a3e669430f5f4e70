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
"""One row. Every change of the registry adds 1, so a worker polls one number."""

commit_clock = sa.Table(
    "commit_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("value", sa.BigInteger, nullable=False),
)
"""One row. On SQLite the commit order of the last transaction that wrote to the log; on PostgreSQL an offset that is
added to transaction ids, so that a log restored on a new server continues in order."""

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("class_names", sa.JSON, nullable=False),
    sa.Column("costs", sa.JSON, nullable=False),
    # No foreign key: the two tables refer to each other, and SQLite cannot add a constraint later.
    sa.Column("promoted_model_id", sa.Integer),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("decision_rule", sa.JSON, nullable=False),
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
    # The row of a removed model stays, so that its id and version are never used again.
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
    # Digest of the arrays, independent of the file format; in the provenance of heads.
    sa.Column("content_digest", sa.String(64), nullable=False),
    # How the images were decoded and preprocessed; null: unknown.
    sa.Column("preprocessing_digest", sa.String(64)),
    sa.UniqueConstraint("model_id", "digest"),
)

environments = sa.Table(
    "environments",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("created_at", Moment, nullable=False),
    # Name of the token or person; null: created from the spool.
    sa.Column("created_by", sa.String(128)),
    # Time from which predictions are refused; null: not disabled.
    sa.Column("disabled_at", Moment),
)

heads = sa.Table(
    "heads",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    # Text, not a JSON type, keeps the document unchanged.
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
    # The activation that a rollback restores; null: the state before the first own head of this environment.
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
"""Pins of heads in force; a row is deleted with its pin, the audit log keeps both changes."""

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
    # No foreign key, as for the model. Null: a request without a token.
    sa.Column("token_id", sa.Integer),
    sa.Index("ix_predictions_window", "model_id", "environment", "id"),
    sa.Index("ix_predictions_commit_order", "commit_order", "id"),
    postgresql_partition_by="RANGE (logged_on)",
)
"""The log. PostgreSQL has one partition for each UTC day, and a default one so that it never refuses a row."""

requests = sa.Table(
    "requests",
    metadata,
    # The environment is last, so that one index also finds a request of unknown environment.
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
    # As in the log, repeated here so that one index finds the newest labelled predictions.
    sa.Column("model_id", sa.Integer, nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    sa.Column("label", sa.Integer, nullable=False),
    sa.Column("source", sa.String(128), nullable=False),
    sa.Column("recorded_at", Moment, nullable=False),
    # Probability in (0, 1] with which the prediction was chosen for labelling; null: unknown.
    sa.Column("propensity", sa.Float),
    sa.Index("ix_labels_newest", "model_id", "environment", "prediction_id"),
)
"""The present labels."""

label_revisions = sa.Table(
    "label_revisions",
    metadata,
    # As in `labels`; a row is deleted with its label.
    sa.Column("logged_on", sa.Date, primary_key=True),
    sa.Column("prediction_id", OrderedUuid, primary_key=True),
    # Counts up from 1 within a prediction: of two changes to the same state, one fails.
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    # Null: there was no label.
    sa.Column("previous_label", sa.Integer),
    sa.Column("label", sa.Integer, nullable=False),
    # Of the label since this revision, as in `labels`.
    sa.Column("propensity", sa.Float),
    sa.Column("source", sa.String(128), nullable=False),
    # Name of the token or person.
    sa.Column("actor", sa.String(128), nullable=False),
    sa.Column("recorded_at", Moment, nullable=False),
)
"""Every change of a label, its first value included."""

labelling_plans = sa.Table(
    "labelling_plans",
    metadata,
    # That of the job that made it.
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    # Of the head whose decisions are judged.
    sa.Column("head_version", sa.Integer, nullable=False),
    # The window: the newest `window_limit` predictions since that time that were committed before `log_position`, and
    # the number of usable ones. Times, not ids: an id could be of an erased prediction.
    sa.Column("since", Moment, nullable=False),
    sa.Column("until", Moment, nullable=False),
    sa.Column("window_limit", sa.Integer, nullable=False),
    sa.Column("log_position", sa.BigInteger, nullable=False),
    sa.Column("window_samples", sa.Integer, nullable=False),
    # Number of labels wanted, and of predictions of the window that had a label before.
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("labelled_before", sa.Integer, nullable=False),
    # Expected widths of the interval on expected cost, a JSON object.
    sa.Column("expected_widths", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    # The newest estimate with the labels that have arrived, a JSON object. Both are null, or none.
    sa.Column("estimate", sa.Text),
    sa.Column("estimated_at", Moment),
    sa.Index("ix_labelling_plans_newest", "model_id", "environment", "id"),
)
"""Which predictions of a window to label; the newest ones of each population are kept."""

labelling_samples = sa.Table(
    "labelling_samples",
    metadata,
    # No foreign keys: to the log as above; the rows of a plan are written in several transactions, before its own row.
    sa.Column("logged_on", sa.Date, primary_key=True),
    sa.Column("prediction_id", OrderedUuid, primary_key=True),
    sa.Column("plan_id", OrderedUuid, primary_key=True),
    # Of the prediction.
    sa.Column("model_id", sa.Integer, nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    # Place in the random order in which the chosen ones are labelled; null: it had a label before.
    sa.Column("position", sa.Integer),
    # Probability in (0, 1] with which it was chosen; 1 where it had a label before.
    sa.Column("propensity", sa.Float, nullable=False),
    sa.Column("decision", sa.Integer, nullable=False),
    # Of the decision, under the estimated probabilities of the classes.
    sa.Column("expected_cost", sa.Float, nullable=False),
    sa.Index("ix_labelling_samples_plan", "plan_id", "position"),
    sa.Index("ix_labelling_samples_population", "model_id", "environment", "prediction_id"),
)
"""The predictions of labelling plans: the chosen ones, and those of the window that had a label before."""

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
    # The proposed head; text, as in `heads`.
    sa.Column("proposal", sa.Text),
    # All three are null, or none; null: not rejected.
    sa.Column("rejection_reason", sa.String(200)),
    sa.Column("rejected_at", Moment),
    sa.Column("rejected_by", sa.String(128)),
    # The few numbers of the report that overviews show; null: an earlier version recorded the cycle.
    sa.Column("figures", sa.JSON(none_as_null=True)),
    # A due cycle is recorded once, even with several monitors.
    sa.UniqueConstraint("model_id", "environment", "due_at"),
    sa.Index("ix_cycles_log_position", "model_id", "environment", "log_position"),
)

swaps = sa.Table(
    "swaps",
    metadata,
    # Versions count up over all environments of a model, so this identifies one swap.
    sa.Column("model_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("head_version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cycle_id", OrderedUuid, sa.ForeignKey("cycles.id"), nullable=False),
    sa.Column("activated_at", Moment, nullable=False),
    # Counts of earlier decisions that the new head would change; null: not counted yet.
    sa.Column("affected", sa.JSON(none_as_null=True)),
    # Whether `affected` covers its whole period.
    sa.Column("is_final", sa.Boolean, nullable=False),
    sa.UniqueConstraint("cycle_id"),
)
"""Heads that cycles published, automatically or after approval."""

performance_comparisons = sa.Table(
    "performance_comparisons",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    # Text, like that of `heads`.
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("computed_at", Moment, nullable=False),
)
"""Estimated beside realised performance of each population; monitors compute them."""

window_summaries = sa.Table(
    "window_summaries",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    sa.Column("environment", sa.String(64), primary_key=True),
    sa.Column("quantifier_digest", sa.String(64), primary_key=True),
    # The beginning of the UTC hour of the predictions.
    sa.Column("bucket", Moment, primary_key=True),
    # The bytes of a WindowSummary; null: stale after a deletion of rows, and to be rebuilt.
    sa.Column("summary", sa.LargeBinary),
    sa.Column("samples", sa.Integer, nullable=False),
    # Number of unusable rows of this hour; they are not in the summary.
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
    # The summaries hold the rows up to this position in commit order; null id: no row with this commit order.
    sa.Column("commit_order", sa.BigInteger, nullable=False),
    sa.Column("last_id", OrderedUuid),
    # Whether the summaries keep the groups of samples: from the first row with a group on.
    sa.Column("is_grouped", sa.Boolean, nullable=False),
    # Grows with every change of these summaries and every deletion of their rows: a writer that read an older revision
    # is refused.
    sa.Column("revision", sa.BigInteger, nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("holder", sa.String(128), nullable=False),
    # Fencing token of the holder: it grows with every new holder; older tokens are rejected.
    sa.Column("token", sa.BigInteger, nullable=False),
    # Duration of the lease: an end much further in the future comes from a clock that was set back.
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
)

interviews = sa.Table(
    "interviews",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    # Null: no task yet.
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
    # Counts up from 1 within the task; the newest one is in force.
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
    # Number of starts since the last checkpoint, without those that were released.
    sa.Column("attempts", sa.Integer, nullable=False),
    # Fencing token of the latest claim: it grows with every claim, and older tokens are rejected.
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String(128)),
    # The claim is valid between these times; a claim from the future comes from a clock that was set back.
    sa.Column("held_from", Moment),
    sa.Column("held_until", Moment),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    # Of the newest attempt.
    sa.Column("started_at", Moment),
    sa.Column("finished_at", Moment),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    # The latest report of the work on itself, a JSON object; null: it has reported nothing.
    sa.Column("progress", sa.Text),
    # Digest of the artifact from which the next attempt goes on; null: it begins anew.
    sa.Column("checkpoint", sa.String(64)),
    # Digest of another checkpoint, which is being stored or deleted.
    sa.Column("spare_checkpoint", sa.String(64)),
    # Both are null, or none; null: its cancellation was never requested.
    sa.Column("cancelled_at", Moment),
    sa.Column("cancelled_by", sa.String(128)),
    sa.Index("ix_jobs_state_id", "state", "id"),
)
"""Work that a request submits and a monitor runs."""

job_log = sa.Table(
    "job_log",
    metadata,
    sa.Column("job_id", OrderedUuid, sa.ForeignKey("jobs.id"), primary_key=True),
    # Counts up from 1 within a job; a follower reads on after the number that it has.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("written_at", Moment, nullable=False),
    sa.Column("text", sa.String(500), nullable=False),
)
"""The last lines that the work of a job has written for people; deleted with the job."""

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    # No foreign key: jobs are deleted after their retention time.
    sa.Column("job_id", OrderedUuid),
    # Of the recommendations that were attached to the task; null: none was.
    sa.Column("recommendation_version", sa.Integer),
    # Digest of the head that decided.
    sa.Column("head", sa.String(64), nullable=False),
    # Verdict of the acceptance thresholds; null: there are none.
    sa.Column("accepted", sa.Boolean),
    sa.Column("samples", sa.Integer, nullable=False),
    # Digests of artifacts: the validation result, its page, and the labelled set that it was computed on.
    sa.Column("result", sa.String(64), nullable=False),
    sa.Column("report", sa.String(64)),
    sa.Column("labelled_set", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    sa.Index("ix_evaluations_model_id_id", "model_id", "id"),
)
"""How good models were on labelled sets: of validations, and of the test sets of trainings."""

trainings = sa.Table(
    "trainings",
    metadata,
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
    # No foreign key, as above. Unique: a job that is begun again registers no second model.
    sa.Column("job_id", OrderedUuid, nullable=False, unique=True),
    # The recipe as JSON text.
    sa.Column("recipe", sa.Text, nullable=False),
    # Digests of artifacts: the training result, and the labelled test set.
    sa.Column("result", sa.String(64), nullable=False),
    sa.Column("test_set", sa.String(64), nullable=False),
    # Of the promotion report, and of its page; null: the task had no promoted model.
    sa.Column("report", sa.String(64)),
    sa.Column("report_page", sa.String(64)),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
)
"""How the models that were trained here came about."""

promotions = sa.Table(
    "promotions",
    metadata,
    sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), primary_key=True, autoincrement=False),
    # Counts up from 1 within a task: of two changes to the same state, one fails.
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    # The promotion that a roll-back restores; null: there is none before.
    sa.Column("previous", sa.Integer),
    sa.Column("promoted_at", Moment, nullable=False),
    sa.Column("promoted_by", sa.String(128), nullable=False),
    sa.Column("reason", sa.String(16), nullable=False),
)
"""Every change of the promoted model of a task."""

rollouts = sa.Table(
    "rollouts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task_id", sa.Integer, sa.ForeignKey("tasks.id"), nullable=False),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    sa.Column("stage", sa.String(16), nullable=False),
    # Of the requests, 0 in the stage shadow.
    sa.Column("share", sa.Float, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("started_by", sa.String(128), nullable=False),
    # Of the stage or share.
    sa.Column("changed_at", Moment, nullable=False),
    # All three are null, or none; null: it goes on.
    sa.Column("ended_at", Moment),
    sa.Column("ended_by", sa.String(128)),
    sa.Column("outcome", sa.String(16)),
    sa.Index(
        "ix_rollouts_open",
        "task_id",
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
)
"""Models on trial beside the promoted one; at most one of a task goes on."""

retraining_proposals = sa.Table(
    "retraining_proposals",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("model_id", sa.Integer, sa.ForeignKey("models.id"), nullable=False),
    sa.Column("environment", sa.String(64), nullable=False),
    sa.Column("reason", sa.String(32), nullable=False),
    # What was seen, as JSON values.
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("proposed_at", Moment, nullable=False),
    # When a later cycle found the reason gone; null: it holds, as far as is known.
    sa.Column("fine_at", Moment),
    # All three are null, or none; null: the proposal is open.
    sa.Column("decided_at", Moment),
    sa.Column("decided_by", sa.String(128)),
    sa.Column("decision", sa.String(16)),
    sa.Column("decision_reason", sa.String(200)),
    # Of the retraining that was started for it; no foreign key, as above.
    sa.Column("job_id", OrderedUuid),
    sa.Index(
        "ix_retraining_proposals_open",
        "model_id",
        "environment",
        "reason",
        unique=True,
        sqlite_where=sa.text("decided_at IS NULL"),
        postgresql_where=sa.text("decided_at IS NULL"),
    ),
)
"""Retrainings that monitors propose and people decide on."""

knowledge_revision = sa.Table(
    "knowledge_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""One row. Every change of the knowledge base adds 1, so that a process notices it by one number."""

knowledge_entries = sa.Table(
    "knowledge_entries",
    metadata,
    # No foreign key: most of these tasks are of other institutions, and not in `tasks`.
    sa.Column("task", sa.String(64), primary_key=True),
    # Text, like that of `heads`.
    sa.Column("document", sa.Text, nullable=False),
    # Of the document.
    sa.Column("digest", sa.String(64), nullable=False),
    # Number of its trainings with transfer: without any, there is nothing to fit a ranker on.
    sa.Column("transfers", sa.Integer, nullable=False),
    # Name of the signer whose bundle it came with, or `local`.
    sa.Column("origin", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("changed_at", Moment, nullable=False),
    sa.Column("changed_by", sa.String(128), nullable=False),
)
"""What is known of tasks: their cards and trainings."""

fingerprints = sa.Table(
    "fingerprints",
    metadata,
    sa.Column("task", sa.String(64), sa.ForeignKey("knowledge_entries.task"), primary_key=True),
    # Of the fingerprint's values; its file is an artifact.
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("artifact", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    # Digest of the extractor's reference; null: a fingerprint without features.
    sa.Column("extractor", sa.String(64)),
    # Null: a fingerprint without bins, or without images.
    sa.Column("bins", sa.Integer),
    sa.Column("samples", sa.Integer),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(128), nullable=False),
    # An artifact is deleted with the last row that refers to it.
    sa.Index("ix_fingerprints_artifact", "artifact"),
)
"""Fingerprints of the tasks of the knowledge base."""

trusted_signers = sa.Table(
    "trusted_signers",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # Public key in hexadecimal.
    sa.Column("public_key", sa.String(128), nullable=False),
    sa.Column("added_at", Moment, nullable=False),
    sa.Column("added_by", sa.String(128), nullable=False),
    sa.UniqueConstraint("public_key"),
)
"""Institutions whose bundles are imported."""

rankers = sa.Table(
    "rankers",
    metadata,
    # SHA-256 of the fitted ranker's bytes, which are an artifact.
    sa.Column("digest", sa.String(64), primary_key=True),
    # Of the outcomes that it was fitted on.
    sa.Column("outcomes_digest", sa.String(64), nullable=False),
    # Revision of the knowledge base that these were read from.
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("fitted_at", Moment, nullable=False),
)
"""At most one row: the ranker that suggestions use."""

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
    # Revision of its registry.
    sa.Column("revision", sa.BigInteger, nullable=False),
    # Heads that it applies: [{"model_id", "environment" (null: default head), "version"}].
    sa.Column("heads", sa.JSON, nullable=False),
    # Results of loading graphs: [{"model_id", "provider" (null: not loaded), "failure" (null: loaded)}].
    sa.Column("models", sa.JSON, nullable=False),
)
"""Heartbeats of the serving processes."""

monitors = sa.Table(
    "monitors",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
    sa.Column("interval_seconds", sa.Float, nullable=False),
    # Action of a cycle that selects another head: auto, propose or shadow; and by environment where it differs.
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("environment_modes", sa.JSON, nullable=False),
    # Of the newest tick; all null before the first one.
    sa.Column("tick_due_at", Moment),
    sa.Column("tick_started_at", Moment),
    # Null: not ended.
    sa.Column("tick_finished_at", Moment),
    # Null: it did not fail as a whole.
    sa.Column("tick_problem", sa.Text),
    # Its newest visit of each population: [{"model_id", "environment", "visited_at", "outcome", "reason",
    # "watched_at" (null: never)}].
    sa.Column("visits", sa.JSON, nullable=False),
    # Settings: {"policy.mode": "auto", ...}.
    sa.Column("settings", sa.JSON, nullable=False),
)
"""Heartbeats of the monitors."""

notifications = sa.Table(
    "notifications",
    metadata,
    sa.Column("id", OrderedUuid, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("subject", sa.String(256), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    # Of the next attempt; null: nothing is left to do.
    sa.Column("due_at", Moment),
    # One for each channel: [{"channel", "state", "attempts", "due_at", "problem"}]; empty until a monitor looks at it.
    sa.Column("deliveries", sa.JSON, nullable=False),
    sa.Index("ix_notifications_due_at", "due_at"),
)
"""Messages to people, written in the transaction of their event."""

erased_groups = sa.Table(
    "erased_groups",
    metadata,
    sa.Column("group_hash", sa.LargeBinary(16), primary_key=True),
    sa.Column("erased_at", Moment, nullable=False),
)
"""Erased groups: their predictions before that time are never stored again, not even from another machine's spool."""

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
    # Environments in which the token may predict and label; null: all.
    sa.Column("environments", sa.JSON(none_as_null=True)),
    sa.Column("rotated_at", Moment),
    # The secret before the latest rotation, and the end of its validity.
    sa.Column("previous_secret_hash", sa.LargeBinary(32)),
    sa.Column("previous_expires_at", Moment),
    # To the minute; null: never used.
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
    # End of the session without requests; each request moves it, up to `ends_at`.
    sa.Column("valid_until", Moment, nullable=False),
    sa.Column("ends_at", Moment, nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
)
"""Sessions of the console. A token has few rows, so the primary key is the only index."""

audit = sa.Table(
    "audit",
    metadata,
    # No sequence, because it would leave gaps.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("actor", sa.String(128), nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("subject", sa.String(256), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    # Address of the client, or `local`.
    sa.Column("source", sa.String(64), nullable=False),
    # SHA-256 of the previous entry, and of this one with it; see `audit_chain`.
    sa.Column("previous_digest", sa.String(64), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
)
