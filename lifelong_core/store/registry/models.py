"""Models: versions of a classifier for one task, served here (onnx) or elsewhere (external)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from lifelong_core.configuration.plausibility import check_normalisation
from lifelong_core.entities.develop.rollouts import PromotionReason
from lifelong_core.entities.registry import Model, ModelKind
from lifelong_core.store.access.audit_log import REFUSED_GRAPH, write_audit
from lifelong_core.store.artifacts import Artifacts, DamagedArtifactError
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.heads.activations import serving_version
from lifelong_core.store.registry.registry import change_registry, model_of
from lifelong_core.store.registry.tasks import task_named, task_with_id
from lifelong_core.store.rollouts.history import add_promotion, close_rollout, open_rollout
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.names import check_name
from lifelong_core.values.preprocessing import Preprocessing


class Models(ArtifactRepository):
    """Adds, finds and lists models."""

    def add(
        self,
        task: str,
        name: str,
        *,
        kind: ModelKind,
        onnx: bytes | None = None,
        preprocessing: Preprocessing | None = None,
        force_reason: str | None = None,
        actor: str,
    ) -> Model:
        """Add the next version of the model `name`; it is not served before it is calibrated.

        Args:
            task: name of its task.
            name: of the model; all its versions belong to one task.
            kind: onnx requires `onnx` and `preprocessing`, external takes neither.
            onnx: the ONNX file.
            preprocessing: steps from an image to the input of the graph.
            force_reason: reason for a mean or a standard deviation that is implausible.
            actor: name for the audit log.

        Raises:
            InvalidInputError: an argument does not fit the kind, or mean or standard deviation is implausible and there
                is no reason.
            NotFoundError: there is no such task.
            ConflictError: the name belongs to another task.
        """
        check_name(name, field="name")
        _check_kind(kind, onnx, preprocessing)
        forced = check_normalisation(preprocessing, force_reason=force_reason)
        artifact = None if onnx is None else self._artifacts.put(onnx)
        with change_registry(self._database) as connection:
            model = insert_model(
                connection,
                task,
                name,
                kind=kind,
                artifact=artifact,
                preprocessing=preprocessing,
                forced=forced,
                actor=actor,
            )
        if onnx is not None:
            self._artifacts.put(onnx)  # again: the removal of another model may have deleted it
        return model

    def note_refusal(self, name: str, details: dict[str, Any], *, actor: str) -> None:
        """Write the refusal of a graph to the audit log.

        Args:
            name: of the refused model.
            details: facts about the graph, JSON values.
            actor: name for the audit log.
        """
        with self._database.write() as connection:
            write_audit(connection, actor, REFUSED_GRAPH, name, details)

    def get(self, reference: str) -> Model:
        """The model `name@version`, or the promoted (else the newest) version of `name`.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return model_referenced(connection, reference)

    def class_names(self, reference: str) -> tuple[str, ...]:
        """The classes of the model's task, in the order of its logits.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            return task_with_id(connection, model_referenced(connection, reference).task_id).class_names

    def list(self) -> list[Model]:
        """All models, oldest first."""
        return [model_of(row) for row in self._rows(present_models().order_by(tables.models.c.id))]


def insert_model(
    connection: sa.Connection,
    task: str,
    name: str,
    *,
    kind: ModelKind,
    artifact: str | None,
    preprocessing: Preprocessing | None,
    forced: Mapping[str, str] = MappingProxyType({}),
    actor: str,
) -> Model:
    """`Models.add` within a transaction that changes the registry; `artifact` is the digest of the stored graph."""
    task_id = task_named(connection, task).id
    versions = _versions(connection, name)
    present = [row for row in versions if row.removed_at is None]
    if present and present[-1].task_id != task_id:
        raise ConflictError(
            f"the model {name!r} belongs to another task.", field="name", hint="Choose another name."
        )
    row = {
        "task_id": task_id,
        "name": name,
        "version": versions[-1].version + 1 if versions else 1,
        "kind": kind,
        "artifact": artifact,
        "preprocessing": None if preprocessing is None else preprocessing.model_dump(mode="json"),
        "created_at": now(),
    }
    model = model_of(connection.execute(sa.insert(tables.models).values(row).returning(tables.models)).one())
    details = {"task": task, "kind": kind, "artifact": artifact, **forced}
    write_audit(connection, actor, "models.add", model.reference, details)
    return model


def present_models() -> sa.Select[Any]:
    """The rows of the models that were not removed."""
    return sa.select(tables.models).where(tables.models.c.removed_at.is_(None))


def model_referenced(connection: sa.Connection, reference: str) -> Model:
    """The model `name@version`, or the promoted (else the newest) version of `name`.

    Raises:
        NotFoundError: there is none.
    """
    name, _, version = reference.partition("@")
    versions = [row for row in _versions(connection, name) if row.removed_at is None]
    promoted = tables.tasks.c.promoted_model_id
    if version:
        chosen = [row for row in versions if str(row.version) == version]
    else:
        served = set(connection.execute(sa.select(promoted).where(promoted.is_not(None))).scalars())
        chosen = [row for row in versions if row.id in served] or versions
    if not chosen:
        raise NotFoundError(
            f"there is no model {reference[:80]!r}.", field="model", hint="List them: `lifelong models list`."
        )
    return model_of(chosen[-1])


def model_with_id(connection: sa.Connection, model_id: int) -> Model:
    """The model with that id.

    Raises:
        NotFoundError: there is none.
    """
    row = connection.execute(present_models().where(tables.models.c.id == model_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no model with the id {model_id}.", field="model")
    return model_of(row)


def check_has_head(connection: sa.Connection, model: Model) -> None:
    """Make sure that a model has a default head.

    Raises:
        ConflictError: it has none yet.
    """
    if serving_version(connection, model.id, None) is None:
        raise ConflictError(
            f"the model {model.reference} has no head yet.",
            field="model",
            hint=f"Calibrate it: `{model.calibration_command}`.",
        )


def promote_model(
    connection: sa.Connection,
    model: Model,
    *,
    actor: str,
    reason: PromotionReason = "promote",
    details: dict[str, Any] | None = None,
) -> None:
    """Promote a model of the task, within a transaction that changes the registry.

    The trial of the model ends with it. The promotion of a model that is promoted already is not a step of its own for
    roll-backs.

    Raises:
        ConflictError: another model is on trial as a canary.
    """
    _refuse_other_canary(connection, model)
    was_promoted = put_model_in_force(connection, model, actor=actor)
    if not was_promoted:
        add_promotion(connection, model.task_id, model.id, actor=actor, reason=reason)
    write_audit(connection, actor, "models.promote", model.reference, details)


def put_model_in_force(connection: sa.Connection, model: Model, *, actor: str) -> bool:
    """Make a model the promoted one of its task, and end its trial; return whether it was promoted before.

    The caller records the change in the history of promotions and in the audit log.
    """
    tasks = tables.tasks
    present = sa.select(tasks.c.promoted_model_id).where(tasks.c.id == model.task_id)
    was_promoted = connection.execute(present).scalar_one() == model.id
    connection.execute(sa.update(tasks).where(tasks.c.id == model.task_id).values(promoted_model_id=model.id))
    rollout = open_rollout(connection, model.task_id)
    if rollout is not None and rollout.model_id == model.id:
        close_rollout(connection, rollout, actor=actor, outcome="promoted")
        details = {"stage": rollout.stage, "share": rollout.share, "outcome": "promoted"}
        write_audit(connection, actor, "rollouts.end", model.reference, details)
    return was_promoted


def _refuse_other_canary(connection: sa.Connection, model: Model) -> None:
    rollout = open_rollout(connection, model.task_id)
    if rollout is not None and rollout.stage == "canary" and rollout.model_id != model.id:
        candidate = model_with_id(connection, rollout.model_id).reference
        raise ConflictError(
            f"{candidate} is on trial as a canary, so {model.reference} cannot be promoted now.",
            field="model",
            hint=f"Promote {candidate}, or end its trial first: `lifelong models trial TASK --end`.",
        )


def check_graph_is_stored(artifacts: Artifacts, model: Model) -> None:
    """Make sure that the graph of a model is stored undamaged, so that restarted workers can load it.

    Raises:
        ConflictError: its graph is missing or damaged.
        UnavailableError: the artifact storage cannot be read.
    """
    if model.artifact is None:
        return
    try:
        artifacts.get(model.artifact)
    except (NotFoundError, DamagedArtifactError) as error:
        raise ConflictError(
            f"the stored graph of {model.reference} cannot be used: {error.message}",
            field="model",
            hint="Bring this file back from the backup, or add the model again and promote the new version.",
        ) from error


def _versions(connection: sa.Connection, name: str) -> list[Row]:
    """All versions, oldest first, removed ones included."""
    query = sa.select(tables.models).where(tables.models.c.name == name).order_by(tables.models.c.version)
    return list(connection.execute(query))


def _check_kind(kind: str, onnx: bytes | None, preprocessing: Preprocessing | None) -> None:
    if kind == "onnx":
        if not onnx:
            raise InvalidInputError("a model of kind onnx needs its ONNX file.", field="onnx")
        if preprocessing is None:
            raise InvalidInputError("a model of kind onnx needs its preprocessing.", field="preprocessing")
    elif kind == "external":
        if onnx is not None or preprocessing is not None:
            raise InvalidInputError(
                "an external model runs elsewhere: it has neither an ONNX file nor preprocessing here.",
                field="kind",
            )
    else:
        raise InvalidInputError(f"expected onnx or external, got {kind!r}.", field="kind")
