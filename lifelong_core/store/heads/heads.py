"""Heads: immutable, versioned per model; an append-only history of activations puts them in force."""

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from lifelong_core.configuration.plausibility import check_costs
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.heads import Activation, HeadPin, HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.heads import activations
from lifelong_core.store.heads.activations import add_pin, all_pins, is_pinned, remove_pin
from lifelong_core.store.heads.calibration_sets import activate_set_of_head
from lifelong_core.store.heads.checks import check_calibration, check_digest, check_fit
from lifelong_core.store.heads.rows import DamagedHeadError, head_of, read_heads
from lifelong_core.store.registry.environments import ensure_environment, expect_environment
from lifelong_core.store.registry.models import model_referenced
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError
from lifelong_core.values.names import check_reason

_UNKNOWN = (
    "Check the spelling. An unused environment cannot be pinned; "
    "a pin of the default head holds for new ones too."
)


_WHY_PINNED = "Say in a few words why the head is held."
_UNKNOWN_ENVIRONMENT = "Check the spelling. An unused environment has no head to roll back."


class Heads(Repository):
    """Publishes, rolls back, pins and finds heads."""

    def publish(
        self,
        reference: str,
        head: PostProcessingHead,
        *,
        environment: str | None,
        actor: str,
        expected_sequence: int | None = None,
        expected_digest: str | None = None,
        force_reason: str | None = None,
    ) -> HeadRecord:
        """Add a head and put it in force.

        The calibration set that a new default head was fitted on becomes the active one of the model.

        Args:
            reference: the model.
            head: the new head; it must fit the model.
            environment: the environment of the head, created if it is new; None: the model's default head.
            actor: name for the audit log.
            expected_sequence: sequence of the newest activation that the caller read (0: none); None: any.
            expected_digest: digest of the head that the caller sent; None: any.
            force_reason: reason for other costs than those of the task that are implausible.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: the head has other classes, or costs of another shape, than the task, was fitted on
                another model's calibration set, has another digest than expected, or has implausible costs that are
                not those of the task, without a reason.
            ConflictError: another head came in force since the caller read the sequence.
        """
        check_digest(head, expected_digest)
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            if expected_sequence is not None:
                activations.expect_sequence(connection, model, environment, expected_sequence)
            forced = {}
            if not np.array_equal(head.costs, task_with_id(connection, model.task_id).costs):
                forced = check_costs(head.costs, force_reason=force_reason)
            record = publish_head(
                connection, model, head, environment=environment, actor=actor, reason="publish", **forced
            )
            if environment is None:
                activate_set_of_head(connection, model, head, actor=actor)
            return record

    def rollback(
        self,
        reference: str,
        *,
        environment: str | None,
        actor: str,
        expected_sequence: int | None = None,
        to_version: int | None = None,
        pin_reason: str | None = None,
    ) -> HeadRecord:
        """Put an earlier head in force; return the head in force now.

        Without `to_version` it is the head that was in force before the present one. Each further rollback goes one
        step further back, never forward; a publication starts a new step. An environment whose first own head is
        rolled back uses the model's default head again.

        With `to_version` it is that head of the model, even if it was never in force there; it becomes the
        environment's own head. If repeated rollbacks can reach the head, this is the same as those rollbacks.
        Otherwise it is a new step, and the next rollback undoes it.

        The calibration set of the restored default head becomes the active one of the model again, so that no cycle
        undoes the rollback. An environment's rollback does not change the active set of the model.

        Args:
            reference: the model.
            environment: where; None: the model's default head.
            actor: name for the audit log.
            expected_sequence: sequence of the newest activation that the caller read (0: none); None: any.
            to_version: of the head; None: the one before.
            pin_reason: pins the restored head in the same transaction, so that no cycle undoes the rollback; a pin that
                is there stays. None: no new pin.

        Raises:
            NotFoundError: there is no such model, environment or head.
            InvalidInputError: the head does not fit the model's task any more, the environment's name is illegal, or
                the reason is empty, too long or not printable.
            ConflictError: there is no earlier head, the head is in force there already, or the present activation is
                not the expected one.
            DamagedHeadError: the head is damaged; nothing changes.
        """
        if pin_reason is not None:
            check_reason(pin_reason, field="pin_reason", hint=_WHY_PINNED)
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            if environment is not None:
                expect_environment(connection, environment, hint=_UNKNOWN_ENVIRONMENT)
            if expected_sequence is not None:
                activations.expect_sequence(connection, model, environment, expected_sequence)
            if to_version is None:
                version = activations.rollback(connection, model, environment, actor=actor)
                record = head_of_version(connection, model, version)
            else:
                record = head_of_version(connection, model, to_version, field="to_version")
                check_fit(task_with_id(connection, model.task_id), record.head, field="to_version")
                activations.rollback_to(connection, model, environment, record.version, actor=actor)
            details = {"version": record.version}
            if to_version is not None:
                details["to_version"] = to_version
            write_audit(connection, actor, "heads.rollback", subject_of(model, environment), details)
            if environment is None:
                activate_set_of_head(connection, model, record.head, actor=actor)
            if pin_reason is not None and not is_pinned(connection, model, environment):
                _pin(connection, model, environment, reason=pin_reason, actor=actor)
            return record

    def version_before(self, reference: str, environment: str | None) -> tuple[int, bool] | None:
        """Version of the head that `rollback` without `to_version` restores, and whether it is the default head, which
        an environment then uses again; None: there is none.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            return activations.version_before(
                connection, model_referenced(connection, reference), environment
            )

    def pin(
        self,
        reference: str,
        *,
        environment: str | None,
        reason: str,
        actor: str,
        expected_sequence: int | None = None,
    ) -> HeadPin:
        """Pin the head in force: no cycle replaces it until it is unpinned.

        Manual publications and rollbacks stay possible; the pin then protects the new head. A pinned default head is
        pinned for every environment that uses it, new ones included.

        Args:
            reference: the model.
            environment: an existing environment; None: the model's default head.
            reason: stored with the pin, 1 to 200 printable characters.
            actor: name for the audit log.
            expected_sequence: sequence of the newest activation that the caller read (0: none); None: any.

        Raises:
            NotFoundError: there is no such model or environment.
            InvalidInputError: the reason is empty, too long or not printable, or a name is illegal.
            ConflictError: it is pinned already, no head is in force, or another activation than expected.
        """
        check_reason(reason, hint=_WHY_PINNED)
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            if environment is not None:
                expect_environment(connection, environment, hint=_UNKNOWN)
            if expected_sequence is not None:
                activations.expect_sequence(connection, model, environment, expected_sequence)
            return _pin(connection, model, environment, reason=reason, actor=actor)

    def unpin(
        self, reference: str, *, environment: str | None, actor: str, expected_sequence: int | None = None
    ) -> None:
        """Let cycles replace the head again.

        Raises:
            NotFoundError: there is no such model or environment.
            InvalidInputError: the environment's name is not legal.
            ConflictError: nothing is pinned there, or another activation than expected is in force.
        """
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            if environment is not None:
                expect_environment(connection, environment, hint="List the pins: `lifelong heads list`.")
            if expected_sequence is not None:
                activations.expect_sequence(connection, model, environment, expected_sequence)
            remove_pin(connection, model, environment)
            write_audit(connection, actor, "heads.unpin", subject_of(model, environment))

    def pin_in_force(self, reference: str, environment: str | None) -> HeadPin | None:
        """The pin of the head that serves: the environment's own, or that of the default head that it uses.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            return activations.pin_in_force(connection, model, environment)

    def pins(self, reference: str) -> list[HeadPin]:
        """All pins of a model, that of its default head first.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            return [pin for pin in all_pins(connection) if pin.model_id == model.id]

    def get(self, reference: str, version: int) -> HeadRecord:
        """One head of a model.

        Raises:
            NotFoundError: there is no such model or head.
            DamagedHeadError: the head is damaged.
        """
        with self._database.read() as connection:
            return head_of_version(connection, model_referenced(connection, reference), version)

    def some(self, reference: str, versions: Collection[int]) -> dict[int, HeadRecord | str]:
        """These versions of the heads of a model; a damaged head as its damage.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            chosen = (tables.heads.c.model_id == model.id) & tables.heads.c.version.in_(versions)
            return {version: found for (_, version), found in read_heads(connection, chosen).items()}

    def serving(self, reference: str, environment: str | None) -> int | None:
        """Version of the head that serves an environment (None: of the default head); None: no head is in force.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            return activations.serving_version(connection, model.id, environment)

    def activations(self, reference: str, *, environment: str | None = None) -> list[Activation]:
        """The history of a population, oldest first; environment None: of the model's default head.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            return activations.history(connection, model_referenced(connection, reference), environment)

    def list(self, reference: str) -> list[HeadRecord]:
        """All undamaged heads of a model, oldest first.

        Raises:
            NotFoundError: there is no such model.
        """
        return [record for record in self._all(reference).values() if isinstance(record, HeadRecord)]

    def list_damaged(self, reference: str) -> dict[int, str]:
        """Descriptions of the damaged heads of a model, by version.

        Raises:
            NotFoundError: there is no such model.
        """
        found = self._all(reference)
        return {version: reason for (_, version), reason in found.items() if isinstance(reason, str)}

    def _all(self, reference: str) -> dict[tuple[int, int], HeadRecord | str]:
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            return read_heads(connection, tables.heads.c.model_id == model.id)


def _pin(
    connection: sa.Connection, model: Model, environment: str | None, *, reason: str, actor: str
) -> HeadPin:
    """Pin the head in force, audited, within a transaction that changes the registry."""
    pin = add_pin(connection, model, environment, reason=reason, actor=actor)
    details = {"version": activations.serving_version(connection, model.id, environment), "reason": reason}
    write_audit(connection, actor, "heads.pin", subject_of(model, environment), details)
    return pin


def publish_head(
    connection: sa.Connection,
    model: Model,
    head: PostProcessingHead,
    *,
    environment: str | None,
    actor: str,
    reason: Literal["publish", "swap"],
    **details: str,
) -> HeadRecord:
    """Add a head and put it in force, within a transaction that changes the registry; audited with `details`."""
    check_fit(task_with_id(connection, model.task_id), head)
    check_calibration(connection, model, head)
    if environment is not None:
        ensure_environment(connection, environment, actor=actor)
    heads = tables.heads
    newest = sa.select(sa.func.coalesce(sa.func.max(heads.c.version), 0)).where(heads.c.model_id == model.id)
    values = {
        "model_id": model.id,
        "version": connection.execute(newest).scalar_one() + 1,
        "document": head.to_json(),
        "digest": head.digest,
        "created_at": now(),
        "created_by": actor,
    }
    record = head_of(connection.execute(sa.insert(heads).values(values).returning(heads)).one())
    put_in_force(
        connection,
        model,
        environment,
        record.version,
        actor=actor,
        reason=reason,
        digest=head.digest,
        **details,
    )
    return record


def put_in_force(
    connection: sa.Connection,
    model: Model,
    environment: str | None,
    version: int,
    *,
    actor: str,
    reason: Literal["publish", "swap"],
    **details: Any,
) -> None:
    """Put a head in force, within a transaction that changes the registry; audited with the version and `details`."""
    activations.activate(connection, model, environment, version, actor=actor, reason=reason)
    write_audit(
        connection, actor, f"heads.{reason}", subject_of(model, environment), {"version": version, **details}
    )


def subject_of(model: Model, environment: str | None) -> str:
    """Subject of an audit entry: a model with its environment, or with its default head."""
    return f"{model.reference}/{'(default head)' if environment is None else environment}"


def head_of_version(
    connection: sa.Connection, model: Model, version: int, *, field: str = "version"
) -> HeadRecord:
    """One head of a model.

    Raises:
        NotFoundError: there is no such head.
        DamagedHeadError: the head is damaged.
    """
    heads = tables.heads
    found = read_heads(connection, (heads.c.model_id == model.id) & (heads.c.version == version))
    record = found.get((model.id, version))
    if record is None:
        raise NotFoundError(
            f"the model {model.reference} has no head {version}.",
            field=field,
            hint="List its heads: `lifelong heads list`.",
        )
    if isinstance(record, str):
        raise DamagedHeadError(
            f"{model.reference}: {record}.",
            field=field,
            hint="Bring the row back from a backup, or publish the head again.",
        )
    return record
