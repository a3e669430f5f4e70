"""The registry: the state that serving workers need, under one revision number."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import overload

import sqlalchemy as sa

from lifelong_core.decision_rules.rules import rule_from_document
from lifelong_core.entities.access import Token
from lifelong_core.entities.heads import HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.store.access.token_lookup import tokens_by_secret
from lifelong_core.store.engine.columns import Row, read_record, unpack_floats
from lifelong_core.store.engine.database import Database
from lifelong_core.store.heads.activations import all_pins
from lifelong_core.store.heads.checks import active_digests
from lifelong_core.store.heads.rows import activation_of, read_heads, split_damaged
from lifelong_core.store.rollouts.history import (
    answering_models,
    open_rollouts,
    promoted_before,
    rollback_models,
)
from lifelong_core.store.schema import tables
from lifelong_core.values.preprocessing import Preprocessing

CHANNEL = "lifelong_registry"
"""PostgreSQL channel on which every committed change of the registry is notified."""


@contextmanager
def change_registry(database: Database) -> Generator[sa.Connection, None, None]:
    """A writing transaction that raises the revision first.

    The row of the revision serialises all such changes, so values read in this transaction do not change until it
    commits: no two changes can take the same version or name.
    """
    with database.write() as connection:
        bump_revision(connection)
        yield connection


def bump_revision(connection: sa.Connection) -> None:
    """Raise the revision in this transaction; other changes of the registry wait until it ends."""
    revision = tables.registry_revision.c.revision
    connection.execute(sa.update(tables.registry_revision).values(revision=revision + 1))
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_notify(CHANNEL, "")))


def read_revision(database: Database) -> int:
    """The present revision of the registry."""
    with database.read() as connection:
        return _revision(connection)


@overload
def load_registry(database: Database, known_revision: None) -> Registry: ...


@overload
def load_registry(database: Database, known_revision: int | None) -> Registry | None: ...


def load_registry(database: Database, known_revision: int | None) -> Registry | None:
    """The whole registry as of one revision; None if it is still `known_revision` (one cheap query)."""
    with database.read() as connection:
        revision = _revision(connection)
        if revision == known_revision:
            return None
        tasks = {
            row.id: task_of(row)
            for row in connection.execute(sa.select(tables.tasks).order_by(tables.tasks.c.id))
        }
        present = (
            sa.select(tables.models).where(tables.models.c.removed_at.is_(None)).order_by(tables.models.c.id)
        )
        models = {row.id: model_of(row) for row in connection.execute(present)}
        environments = sa.select(tables.environments.c.name, tables.environments.c.disabled_at).order_by(
            tables.environments.c.name
        )
        disabled_at = {row.name: row.disabled_at for row in connection.execute(environments)}
        versions = active_versions(connection)
        heads, damaged = split_damaged(
            versions,
            _heads(connection, versions),
            {model.id: tasks[model.task_id] for model in models.values()},
        )
        rollouts, restorable = open_rollouts(connection), rollback_models(connection)
        kept = {task.promoted_model_id for task in tasks.values()} | set(restorable.values())
        kept |= {rollout.model_id for rollout in rollouts.values()}
        return Registry(
            revision=revision,
            tasks=MappingProxyType(tasks),
            models=MappingProxyType(models),
            heads=MappingProxyType(heads),
            environments=frozenset(disabled_at),
            disabled_environments=frozenset(
                name for name, moment in disabled_at.items() if moment is not None
            ),
            pins=MappingProxyType({(pin.model_id, pin.environment): pin for pin in all_pins(connection)}),
            tokens=MappingProxyType(_tokens(connection)),
            damaged=MappingProxyType(damaged),
            group_keys=known_keys(connection),
            rollouts=MappingProxyType(rollouts),
            rollback_models=MappingProxyType(restorable),
            released=frozenset(
                model_id
                for model_id in promoted_before(connection) - kept
                if model_id in models and models[model_id].kind == "onnx"
            ),
            answering=MappingProxyType(answering_models(connection)),
            preprocessing_digests=MappingProxyType(
                {key: digest for key, digest in active_digests(connection).items() if key in models}
            ),
        )


def known_keys(connection: sa.Connection) -> tuple[str, ...]:
    """Digests of the keys of the group hash, the current one first."""
    query = sa.select(tables.group_keys.c.digest).order_by(tables.group_keys.c.position)
    return tuple(connection.execute(query).scalars())


def _revision(connection: sa.Connection) -> int:
    return connection.execute(sa.select(tables.registry_revision.c.revision)).scalar_one()


def active_versions(connection: sa.Connection) -> dict[HeadPopulation, int]:
    """Version of the head in force of each population that has a head of its own."""
    activations = tables.head_activations
    newest = (
        sa.select(
            activations.c.model_id,
            activations.c.environment,
            sa.func.max(activations.c.sequence).label("last"),
        )
        .group_by(activations.c.model_id, activations.c.environment)
        .subquery()
    )
    query = (
        sa.select(activations)
        .join(
            newest,
            (newest.c.model_id == activations.c.model_id)
            & (newest.c.environment == activations.c.environment)
            & (newest.c.last == activations.c.sequence),
        )
        .where(activations.c.uses_default_head.is_(False))
    )
    active = [activation_of(row) for row in connection.execute(query)]
    return {(activation.model_id, activation.environment): activation.head_version for activation in active}


def _heads(
    connection: sa.Connection, versions: Mapping[HeadPopulation, int]
) -> dict[tuple[int, int], HeadRecord | str]:
    wanted = {(model_id, version) for (model_id, _), version in versions.items()}
    key = sa.tuple_(tables.heads.c.model_id, tables.heads.c.version)
    return read_heads(connection, key.in_(wanted))


def _tokens(connection: sa.Connection) -> dict[bytes, Token]:
    """Tokens by hash, expired ones included: the clock of another machine may differ."""
    query = sa.select(tables.tokens).where(tables.tokens.c.revoked_at.is_(None)).order_by(tables.tokens.c.id)
    tokens: dict[bytes, Token] = {}
    for row in connection.execute(query):
        tokens |= tokens_by_secret(row)
    return tokens


def task_of(row: Row) -> Task:
    """A task from a row of `tasks`."""
    rule = rule_from_document(row.decision_rule)
    names, costs = tuple(row.class_names), unpack_floats(row.costs)
    return read_record(row, Task, class_names=names, costs=costs, decision_rule=rule)


def model_of(row: Row) -> Model:
    """A model from a row of `models`."""
    preprocessing = None if row.preprocessing is None else Preprocessing.model_validate(row.preprocessing)
    return read_record(row, Model, preprocessing=preprocessing)
