"""Heads, calibration sets, activations and pins from rows; a damaged head does not affect the others."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.heads import Activation, CalibrationSet, HeadPin, HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Registry, Task
from lifelong_core.store.engine.columns import Row, read_record, unpack_floats
from lifelong_core.store.engine.documents import as_bytes
from lifelong_core.store.heads.checks import check_fit
from lifelong_core.store.schema import tables
from lifelong_core.store.schema.tables import DEFAULT_HEAD
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_core.values.names import check_name

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


def environment_key(environment: str | None) -> str:
    """Name of an environment in the tables of heads; None: the model's default head.

    Raises:
        InvalidInputError: the name is illegal; the empty one would mean the default head.
    """
    return DEFAULT_HEAD if environment is None else check_name(environment, field="environment")


def calibration_set_of(row: Row) -> CalibrationSet:
    """A calibration set from a row of `calibration_sets`."""
    return read_record(row, CalibrationSet, prevalence=unpack_floats(row.prevalence))


def head_of(row: Row) -> HeadRecord:
    """A head from a row of `heads`.

    Raises:
        UnavailableError: its document is not a head, or differs from the published one.
    """
    try:
        head, digest = _parse_head(row.document)
    except InvalidInputError as error:
        raise _damaged(row, f"its document is not a head ({error})") from error
    if digest != row.digest:
        raise _damaged(row, "the digest of its document is not the published one")
    return read_record(row, HeadRecord, head=head)


# Heads never change, but each change of the registry reads all active heads again.
@lru_cache(maxsize=1024)
def _parse_head(document: str | bytes) -> tuple[PostProcessingHead, str]:
    """The head in a document, and its digest."""
    try:
        text = document if isinstance(document, str) else document.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError("expected text in UTF-8.", field="head") from error
    head = PostProcessingHead.from_json(text)
    return head, head.digest


def _damaged(row: Row, reason: str) -> UnavailableError:
    return UnavailableError(f"head {row.version} is damaged: {reason}.", field="version")


def activation_of(row: Row) -> Activation:
    """An activation from a row of `head_activations`."""
    return read_record(row, Activation, environment=environment_of(row))


def pin_of(row: Row) -> HeadPin:
    """A pin from a row of `head_pins`."""
    return read_record(row, HeadPin, environment=environment_of(row))


def environment_of(row: Row) -> str | None:
    """The environment of a row in a table of heads; None: the model's default head."""
    return None if row.environment == DEFAULT_HEAD else row.environment
