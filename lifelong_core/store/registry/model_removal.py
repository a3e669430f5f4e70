"""Removes an unused model.

Its calibration sets, its default heads, its evaluations, its training and the artifacts that nothing else refers to are
deleted too. Its row stays, so that its id and version are never used again.
"""

from collections.abc import Iterator

import sqlalchemy as sa

from lifelong_core.entities.registry import Model
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.database import Database
from lifelong_core.store.evaluations.evaluations import artifacts_of, evaluations_of
from lifelong_core.store.jobs.rows import is_needed
from lifelong_core.store.registry.models import model_referenced
from lifelong_core.store.registry.registry import active_versions, change_registry
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.rollouts.history import open_rollouts, rollback_models
from lifelong_core.store.schema import tables
from lifelong_core.store.trainings.trainings import artifacts_of_training
from lifelong_core.values.errors import ConflictError

_OF_MODEL = (
    tables.summary_cursors,
    tables.window_summaries,
    tables.performance_comparisons,
    tables.head_pins,
    tables.head_activations,
    tables.heads,
    tables.calibration_sets,
    tables.evaluations,
    tables.trainings,
    tables.labelling_plans,
    tables.labelling_samples,
)
"""Tables whose rows are deleted with a model, referring tables first."""


def remove_model(database: Database, artifacts: Artifacts, reference: str, *, actor: str) -> Model:
    """Remove a model permanently.

    Args:
        database: the database of the model.
        artifacts: the artifacts of its graph and calibration sets.
        reference: `name@version`; a name alone means the promoted or the newest version.
        actor: name for the audit log.

    Raises:
        NotFoundError: there is no such model.
        ConflictError: it is in use; the message lists the uses.
        UnavailableError: database or artifacts do not answer; the database is unchanged.
    """
    with change_registry(database) as connection:
        model = model_referenced(connection, reference)
        uses = list(_uses(connection, model))
        if uses:
            raise ConflictError(
                f"the model {model.reference} is in use: {'; '.join(uses)}.",
                field="model",
                hint="A model that has answered or serves stays, so that its decisions can be explained.",
            )
        sets = tables.calibration_sets
        digests = set(
            connection.execute(sa.select(sets.c.digest).where(sets.c.model_id == model.id)).scalars()
        )
        digests |= {model.artifact} - {None}
        digests |= artifacts_of(evaluations_of(connection, model.id))
        digests |= artifacts_of_training(connection, model.id)
        for table in _OF_MODEL:
            connection.execute(sa.delete(table).where(table.c.model_id == model.id))
        moment, models = now(), tables.models
        gone = {"removed_at": moment, "artifact": None, "calibration_set_id": None}
        connection.execute(sa.update(models).where(models.c.id == model.id).values(gone))
        unneeded = sorted(digest for digest in digests if not is_needed(connection, digest, moment))
        details = {"kind": model.kind, "artifact": model.artifact, "artifacts_removed": unneeded}
        write_audit(connection, actor, "models.remove", model.reference, details)
        # Within the transaction: a simultaneous `add` of the same bytes waits for it and stores them again.
        for digest in unneeded:
            artifacts.remove(digest)
    return model


def _uses(connection: sa.Connection, model: Model) -> Iterator[str]:
    """Uses of the model that prevent its removal."""
    tasks = tables.tasks
    promoted = sa.select(tasks.c.name).where(tasks.c.promoted_model_id == model.id)
    for task in connection.execute(promoted).scalars():
        yield f"the task {task} serves it"
    for task_id, model_id in rollback_models(connection).items():
        if model_id == model.id:
            yield f"a roll-back of the task {task_with_id(connection, task_id).name} restores it"
    if any(rollout.model_id == model.id for rollout in open_rollouts(connection).values()):
        yield "it is on trial"
    for table, what in (
        (tables.predictions, "predictions of it are logged"),
        (tables.cycles, "cycles of it are recorded"),
    ):
        found = sa.select(sa.literal(1)).where(table.c.model_id == model.id).limit(1)
        if connection.execute(found).first() is not None:
            yield what
    environments = sorted(
        environment
        for model_id, environment in active_versions(connection)
        if model_id == model.id and environment is not None
    )
    if environments:
        yield f"heads of it are in force in {', '.join(environments)}"
    jobs = tables.jobs
    waiting = sa.select(jobs.c.id).where(
        jobs.c.state.in_(("queued", "running")), jobs.c.payload.contains(f'"{model.reference}"')
    )
    for job in connection.execute(waiting.order_by(jobs.c.id)).scalars():
        yield f"the job {job} needs it"
