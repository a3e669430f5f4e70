"""Reads heads; a damaged one does not affect the others."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.entities.heads import HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Registry, Task
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.documents import as_bytes
from lifelong_core.store.heads.checks import check_fit
from lifelong_core.store.heads.rows import head_of
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError, UnavailableError

_heads = tables.heads


class DamagedHeadError(UnavailableError):
    """The stored head differs from the published one."""


def read_heads(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> dict[tuple[int, int], HeadRecord | str]:
    """The heads that meet the condition, by model id and version, oldest first; a damaged head as its damage."""
    columns = [column for column in _heads.c if column is not _heads.c.document]
    query = sa.select(*columns, as_bytes(connection, _heads.c.document)).where(condition)
    rows = connection.execute(query.order_by(_heads.c.model_id, _heads.c.version))
    return {(row.model_id, row.version): _read(row) for row in rows}


def split_damaged(
    versions: Mapping[HeadPopulation, int],
    records: Mapping[tuple[int, int], HeadRecord | str],
    task_of_model: Mapping[int, Task],
) -> tuple[dict[HeadPopulation, HeadRecord], dict[HeadPopulation, str]]:
    """The usable heads in force, and the damage of the others.

    Args:
        versions: of the heads in force.
        records: the result of `read_heads`.
        task_of_model: the task of each model, by its id.
    """
    served: dict[HeadPopulation, HeadRecord] = {}
    damaged: dict[HeadPopulation, str] = {}
    for population, version in versions.items():
        record = records.get((population[0], version), f"head {version} is missing")
        fitting = record if isinstance(record, str) else _fitting(task_of_model[population[0]], record)
        if isinstance(fitting, str):
            damaged[population] = fitting
        else:
            served[population] = fitting
    return served, damaged


def keep_last_good(registry: Registry, previous: Registry) -> Registry:
    """The registry with the previous head of each population whose present head is damaged.

    A different model with the same id (after a restored or new database) has no previous head.
    """
    kept = {
        population: record
        for population in registry.damaged.keys() - registry.heads.keys()
        if (record := previous.heads.get(population)) is not None
        and registry.models[population[0]].created_at == previous.models[population[0]].created_at
    }
    return replace(registry, heads=MappingProxyType({**kept, **registry.heads})) if kept else registry


def _fitting(task: Task, record: HeadRecord) -> HeadRecord | str:
    """The undamaged head, or why it cannot serve the task."""
    try:
        check_fit(task, record.head)
    except InvalidInputError as error:
        return f"head {record.version} does not fit: {error.message.rstrip('.')}"
    return record


def _read(row: Row) -> HeadRecord | str:
    try:
        return head_of(row)
    except UnavailableError as error:
        return error.message.rstrip(".")
