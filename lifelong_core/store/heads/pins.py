"""Pins: no cycle replaces a pinned head."""

import sqlalchemy as sa

from lifelong_core.entities.heads import HeadPin
from lifelong_core.entities.registry import Model
from lifelong_core.store.engine.clock import now
from lifelong_core.store.heads import activations
from lifelong_core.store.heads.rows import environment_key, pin_of
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError

_pins = tables.head_pins


def add(
    connection: sa.Connection, model: Model, environment: str | None, *, reason: str, actor: str
) -> HeadPin:
    """Pin the head in force, within a transaction that changes the registry.

    Raises:
        ConflictError: it is pinned already, or nothing is in force.
    """
    found = _pin(connection, model, environment)
    if found is not None:
        raise _already(model, found)
    if activations.serving_version(connection, model.id, environment) is None:
        raise ConflictError(
            f"no head of {model.reference} is in force there.",
            field="environment",
            hint="Give the model a calibration set, or publish a head, before you pin it.",
        )
    pin = HeadPin(model_id=model.id, environment=environment, reason=reason, pinned_at=now(), pinned_by=actor)
    connection.execute(sa.insert(_pins), {**vars(pin), "environment": environment_key(environment)})
    return pin


def remove(connection: sa.Connection, model: Model, environment: str | None) -> None:
    """Remove the pin, within a transaction that changes the registry.

    Raises:
        ConflictError: there is none.
    """
    if not connection.execute(sa.delete(_pins).where(*_matches(model, environment))).rowcount:
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
    found = _pin(connection, model, environment)
    if found is None and not activations.has_own_head(connection, model.id, environment):
        found = _pin(connection, model, None)
    if found is not None:
        raise _already(model, found)


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
    row = connection.execute(sa.select(_pins).where(*_matches(model, environment))).one_or_none()
    return None if row is None else pin_of(row)


def _matches(model: Model, environment: str | None) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return _pins.c.model_id == model.id, _pins.c.environment == environment_key(environment)


def _named(environment: str | None) -> str:
    return "default head" if environment is None else f"head in {environment}"
