"""The registry: what a serving worker needs to know, under one revision number."""

from collections.abc import Generator
from contextlib import contextmanager
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.store import tables
from lifelong_core.store.engine import Database
from lifelong_core.store.pins import all_pins
from lifelong_core.store.records import HeadRecord, Registry
from lifelong_core.store.rows import activation_of, head_of, model_of, task_of


@contextmanager
def changing_registry(database: Database) -> Generator[sa.Connection, None, None]:
    """A writing transaction that raises the revision first.

    The row of the revision serialises all such changes, so what is read in this transaction stays true until it
    commits: no two changes can take the same version or name.
    """
    with database.write() as connection:
        bump_revision(connection)
        yield connection


def bump_revision(connection: sa.Connection) -> None:
    """Raise the revision in this transaction; other changes of the registry wait until it ends."""
    revision = tables.registry_revision.c.revision
    connection.execute(sa.update(tables.registry_revision).values(revision=revision + 1))


def load_registry(database: Database, known_revision: int | None) -> Registry | None:
    """The whole registry as of one revision; None when that is still `known_revision` (one cheap query)."""
    with database.read() as connection:
        revision = connection.execute(sa.select(tables.registry_revision.c.revision)).scalar_one()
        if revision == known_revision:
            return None
        return Registry(
            revision=revision,
            tasks=MappingProxyType(
                {row.id: task_of(row) for row in connection.execute(sa.select(tables.tasks))}
            ),
            models=MappingProxyType(
                {row.id: model_of(row) for row in connection.execute(sa.select(tables.models))}
            ),
            heads=MappingProxyType(_active_heads(connection)),
            environments=frozenset(connection.execute(sa.select(tables.environments.c.name)).scalars()),
            pins=MappingProxyType({(pin.model_id, pin.environment): pin for pin in all_pins(connection)}),
        )


def _active_heads(connection: sa.Connection) -> dict[tuple[int, str | None], HeadRecord]:
    activations, heads = tables.head_activations, tables.heads
    newest = (
        sa.select(
            activations.c.model_id,
            activations.c.environment,
            sa.func.max(activations.c.sequence).label("last"),
        )
        .group_by(activations.c.model_id, activations.c.environment)
        .subquery()
    )
    in_force = [
        activation_of(row)
        for row in connection.execute(
            sa.select(activations)
            .join(
                newest,
                (newest.c.model_id == activations.c.model_id)
                & (newest.c.environment == activations.c.environment)
                & (newest.c.last == activations.c.sequence),
            )
            .where(activations.c.inherits.is_(False))
        )
    ]
    wanted = {(activation.model_id, activation.head_version) for activation in in_force}
    key = sa.tuple_(heads.c.model_id, heads.c.version)
    records = {
        (row.model_id, row.version): head_of(row)
        for row in connection.execute(sa.select(heads).where(key.in_(wanted)))
    }
    return {(one.model_id, one.environment): records[one.model_id, one.head_version] for one in in_force}
