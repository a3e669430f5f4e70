"""Reads heads so that a damaged one leaves the others usable."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.errors import InvalidInputError, UnavailableError
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.documents import as_bytes
from lifelong_core.store.heads.checks import check_fit
from lifelong_core.store.heads.records import HeadRecord
from lifelong_core.store.heads.rows import head_of
from lifelong_core.store.registry.records import Registry, Task
from lifelong_core.store.schema import tables

_heads = tables.heads


class DamagedHeadError(UnavailableError):
    """What the database holds of a head is not what was published."""


def read_heads(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> dict[tuple[int, int], HeadRecord | str]:
    """The heads for which the condition holds, by model id and version, oldest first; for a damaged one, its damage."""
    columns = [column for column in _heads.c if column is not _heads.c.document]
    query = sa.select(*columns, as_bytes(connection, _heads.c.document)).where(condition)
    rows = connection.execute(query.order_by(_heads.c.model_id, _heads.c.version))
    return {(row.model_id, row.version): _read(row) for row in rows}


def split_damaged(
    versions: Mapping[tuple[int, str | None], int],
    found: Mapping[tuple[int, int], HeadRecord | str],
    task_of_model: Mapping[int, Task],
) -> tuple[dict[tuple[int, str | None], HeadRecord], dict[tuple[int, str | None], str]]:
    """The heads that can be served in the places where they are in force, and why the others cannot.

    Args:
        versions: of the head in force, by model id and environment.
        found: what `read_heads` gave.
        task_of_model: the task of each model, by its id.
    """
    served: dict[tuple[int, str | None], HeadRecord] = {}
    damaged: dict[tuple[int, str | None], str] = {}
    for place, version in versions.items():
        record = found.get((place[0], version), f"head {version} is missing")
        fitting = record if isinstance(record, str) else _fitting(task_of_model[place[0]], record)
        if isinstance(fitting, str):
            damaged[place] = fitting
        else:
            served[place] = fitting
    return served, damaged


def keep_last_good(registry: Registry, previous: Registry) -> Registry:
    """The registry with the head that served before in each place whose present one is damaged.

    A model of the same id that is another one (of a database that was restored, or made anew) has no head before.
    """
    kept = {
        place: record
        for place in registry.damaged.keys() - registry.heads.keys()
        if (record := previous.heads.get(place)) is not None
        and registry.models[place[0]].created_at == previous.models[place[0]].created_at
    }
    return replace(registry, heads=MappingProxyType({**kept, **registry.heads})) if kept else registry


def _fitting(task: Task, record: HeadRecord) -> HeadRecord | str:
    """A head that is sound in itself, or why it cannot serve the task."""
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
