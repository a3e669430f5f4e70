"""Heads in force: an append-only history of activations, each of which refers to the one that its rollback restores;
and pins, which keep cycles from replacing a head."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from lifelong_core.entities.heads import Activation, HeadPin
from lifelong_core.entities.registry import Model
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.heads.rows import activation_of, environment_key, pin_of
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError

_activations = tables.head_activations


def history(connection: sa.Connection, model: Model, environment: str | None) -> list[Activation]:
    """All activations of a population, oldest first."""
    query = sa.select(_activations).where(*_matches(model.id, environment)).order_by(_activations.c.sequence)
    return [activation_of(row) for row in connection.execute(query)]


def activated_at(connection: sa.Connection, model_id: int, environment: str | None) -> datetime:
    """Time of the newest activation of a population, which must have one."""
    query = sa.select(_activations.c.activated_at).where(*_matches(model_id, environment))
    return connection.execute(query.order_by(_activations.c.sequence.desc()).limit(1)).scalar_one()


def activate(
    connection: sa.Connection,
    model: Model,
    environment: str | None,
    head_version: int,
    *,
    actor: str,
    reason: Literal["publish", "swap"],
) -> None:
    """Put a head in force; a later rollback restores the present one."""
    covered = _newest(connection, model.id, environment)
    values = {
        "head_version": head_version,
        "previous": None if covered is None else covered.sequence,
        "uses_default_head": False,
        "reason": reason,
    }
    _append(connection, model, environment, covered, values, actor=actor)


def rollback(connection: sa.Connection, model: Model, environment: str | None, *, actor: str) -> int:
    """Restore the activation before the present one; return the version of the head in force now.

    Raises:
        ConflictError: there is none before it.
    """
    current = _newest(connection, model.id, environment)
    values = None if current is None else _covered(connection, model, environment, current)
    if values is None:
        raise ConflictError(
            "no head was in force before the present one.",
            field="environment",
            hint="Publish the head that you want."
            if environment is not None
            else "An environment with a head of its own is rolled back by its name: `--environment` (`environment`).",
        )
    _append(connection, model, environment, current, {**values, "reason": "rollback"}, actor=actor)
    return values["head_version"]


def version_before(
    connection: sa.Connection, model: Model, environment: str | None
) -> tuple[int, bool] | None:
    """Version of the head that `rollback` restores, and whether an environment then uses the default head; None: there
    is none before the present one."""
    current = _newest(connection, model.id, environment)
    values = None if current is None else _covered(connection, model, environment, current)
    return None if values is None else (values["head_version"], values["uses_default_head"])


def rollback_to(
    connection: sa.Connection, model: Model, environment: str | None, head_version: int, *, actor: str
) -> None:
    """Put a stated head in force: by repeated rollbacks if they reach it, else as a new activation.

    Raises:
        ConflictError: it is in force there already.
    """
    current = _newest(connection, model.id, environment)
    if current is not None and _is(current, head_version):
        raise ConflictError(
            f"head {head_version} of {model.reference} is in force there already.",
            field="to_version",
            hint="List what was in force: `lifelong heads history`.",
        )
    step = next((one for one in _reachable(connection, model, environment) if _is(one, head_version)), None)
    newest = None if current is None else current.sequence
    values = {
        "head_version": head_version,
        "previous": newest if step is None else step.previous,
        "uses_default_head": False,
        "reason": "rollback",
    }
    _append(connection, model, environment, current, values, actor=actor)


def serving_version(connection: sa.Connection, model_id: int, environment: str | None) -> int | None:
    """Version of the head that a population uses: its own, else the model's default; None: neither."""
    own = _newest(connection, model_id, environment)
    if own is not None and not own.uses_default_head:
        return own.head_version
    return None if environment is None else serving_version(connection, model_id, None)


def has_own_head(connection: sa.Connection, model_id: int, environment: str | None) -> bool:
    """Whether a head is in force for the population itself, so that the default head does not apply."""
    own = _newest(connection, model_id, environment)
    return own is not None and not own.uses_default_head


def expect_sequence(connection: sa.Connection, model: Model, environment: str | None, expected: int) -> None:
    """Make sure that the newest activation has the expected sequence (0: there is none).

    Raises:
        ConflictError: it has another sequence.
    """
    newest = _newest(connection, model.id, environment)
    sequence = 0 if newest is None else newest.sequence
    if sequence != expected:
        raise ConflictError(
            f"the head of {model.reference} changed meanwhile (activation {sequence}, expected {expected}).",
            field="expected_sequence",
            hint="Look at the present head and decide again.",
        )


def _covered(
    connection: sa.Connection, model: Model, environment: str | None, current: Row
) -> dict[str, Any] | None:
    """The activation that a rollback restores; None: there is none."""
    default = None if environment is None else serving_version(connection, model.id, None)
    if current.previous is None:
        if current.uses_default_head or default is None:
            return None
        return {"head_version": default, "previous": None, "uses_default_head": True}
    restored = _activation(connection, model.id, environment, current.previous)
    return {
        "head_version": default if restored.uses_default_head else restored.head_version,
        "previous": restored.previous,
        "uses_default_head": restored.uses_default_head,
    }


def _is(activation: Row, head_version: int) -> bool:
    return not activation.uses_default_head and activation.head_version == head_version


def _reachable(connection: sa.Connection, model: Model, environment: str | None) -> Iterator[Row]:
    """The present activation and those that repeated rollbacks restore, in this order."""
    rows = connection.execute(sa.select(_activations).where(*_matches(model.id, environment)))
    by_sequence = {row.sequence: row for row in rows}
    sequence = max(by_sequence, default=None)
    while sequence is not None:
        yield by_sequence[sequence]
        sequence = by_sequence[sequence].previous


def _append(
    connection: sa.Connection,
    model: Model,
    environment: str | None,
    covered: Row | None,
    values: dict[str, Any],
    *,
    actor: str,
) -> None:
    row = {
        "model_id": model.id,
        "environment": environment_key(environment),
        "sequence": 1 if covered is None else covered.sequence + 1,
        "activated_at": now(),
        "activated_by": actor,
        **values,
    }
    connection.execute(sa.insert(_activations), row)


def _newest(connection: sa.Connection, model_id: int, environment: str | None) -> Row | None:
    query = sa.select(_activations).where(*_matches(model_id, environment))
    return connection.execute(query.order_by(_activations.c.sequence.desc()).limit(1)).one_or_none()


def _activation(connection: sa.Connection, model_id: int, environment: str | None, sequence: int) -> Row:
    matches = _matches(model_id, environment)
    return connection.execute(
        sa.select(_activations).where(*matches, _activations.c.sequence == sequence)
    ).one()


def _matches(model_id: int, environment: str | None) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return _activations.c.model_id == model_id, _activations.c.environment == environment_key(environment)


_pins = tables.head_pins


def add_pin(
    connection: sa.Connection, model: Model, environment: str | None, *, reason: str, actor: str
) -> HeadPin:
    """Pin the head in force, within a transaction that changes the registry.

    Raises:
        ConflictError: it is pinned already, or nothing is in force.
    """
    found = _pin(connection, model, environment)
    if found is not None:
        raise _already(model, found)
    if serving_version(connection, model.id, environment) is None:
        raise ConflictError(
            f"no head of {model.reference} is in force there.",
            field="environment",
            hint="Give the model a calibration set, or publish a head, before you pin it.",
        )
    pin = HeadPin(model_id=model.id, environment=environment, reason=reason, pinned_at=now(), pinned_by=actor)
    connection.execute(sa.insert(_pins), {**vars(pin), "environment": environment_key(environment)})
    return pin


def remove_pin(connection: sa.Connection, model: Model, environment: str | None) -> None:
    """Remove the pin, within a transaction that changes the registry.

    Raises:
        ConflictError: there is none.
    """
    if not connection.execute(sa.delete(_pins).where(*_pinned(model, environment))).rowcount:
        raise ConflictError(
            f"the {_named(environment)} of {model.reference} is not pinned.",
            field="environment",
            hint="List the pins: `lifelong heads list`.",
        )


def refuse_pinned(connection: sa.Connection, model: Model, environment: str) -> None:
    """Refuse a cycle whose head is pinned: the environment's own, or the default head that it uses.

    Raises:
        ConflictError: it is pinned.
    """
    found = pin_in_force(connection, model, environment)
    if found is not None:
        raise _already(model, found)


def pin_in_force(connection: sa.Connection, model: Model, environment: str | None) -> HeadPin | None:
    """The pin of the head that serves: the environment's own, or that of the default head that it uses."""
    found = _pin(connection, model, environment)
    if found is None and not has_own_head(connection, model.id, environment):
        return _pin(connection, model, None)
    return found


def is_pinned(connection: sa.Connection, model: Model, environment: str | None) -> bool:
    """Whether the population has a pin of its own."""
    return _pin(connection, model, environment) is not None


def all_pins(connection: sa.Connection) -> list[HeadPin]:
    """The pins of all models; of each, that of its default head first."""
    query = sa.select(_pins).order_by(_pins.c.model_id, _pins.c.environment)
    return [pin_of(row) for row in connection.execute(query)]


def _already(model: Model, pin: HeadPin) -> ConflictError:
    return ConflictError(
        f"the {_named(pin.environment)} of {model.reference} is pinned by {pin.pinned_by}: {pin.reason!r}.",
        field="environment",
        hint="Unpin it first, if that reason does not hold any more.",
    )


def _pin(connection: sa.Connection, model: Model, environment: str | None) -> HeadPin | None:
    row = connection.execute(sa.select(_pins).where(*_pinned(model, environment))).one_or_none()
    return None if row is None else pin_of(row)


def _pinned(model: Model, environment: str | None) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return _pins.c.model_id == model.id, _pins.c.environment == environment_key(environment)


def _named(environment: str | None) -> str:
    return "default head" if environment is None else f"head in {environment}"
