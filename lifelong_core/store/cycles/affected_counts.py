"""Swaps: heads that cycles published, and how many decisions before each swap the new head would make otherwise."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts
from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.heads.activations import activated_at
from lifelong_core.store.schema import tables

_swaps = tables.swaps
_TIMES = "since", "until", "counted_at"


@dataclass(frozen=True)
class AffectedFigures:
    """How many decisions of a period the new head would make otherwise, and what was left out."""

    since: datetime
    """beginning of the period"""
    until: datetime
    """its end: predictions made before it were read"""
    counts: AffectedCounts
    groups: int | None
    """how many groups the affected predictions come from; None: none of them has a group"""
    quarantined: int
    """predictions that were left out because their logits, or their decisions, cannot be judged"""
    other_models: int
    """predictions of other models in this environment and period, which are not judged"""
    gone: int | None
    """predictions of the period that were counted earlier and are deleted since, by retention or because their group
    was erased; None: not known"""
    log_position: int
    """commit order up to which the log was read"""
    counted_at: datetime

    def to_document(self) -> dict[str, Any]:
        """The figures as JSON values."""
        times = {name: getattr(self, name).isoformat() for name in _TIMES}
        return {"schema_version": 2, **vars(self), **times, "counts": self.counts.to_document()}


@dataclass(frozen=True)
class UncountedSwap:
    """A swap whose affected decisions were not counted, or not those of its whole period."""

    cycle_id: UUID
    activated_at: datetime
    is_counted: bool
    """whether they were counted once"""


class Swaps:
    """Finds swaps and keeps the figures of their affected decisions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def uncounted(self) -> list[UncountedSwap]:
        """The swaps whose figures are not final, oldest first."""
        query = sa.select(_swaps).where(_swaps.c.is_final.is_(False)).order_by(_swaps.c.activated_at)
        with self._database.read() as connection:
            return [
                UncountedSwap(row.cycle_id, row.activated_at, is_counted=row.affected is not None)
                for row in connection.execute(query)
            ]

    def record(self, cycle_id: UUID, figures: AffectedFigures | None, *, is_final: bool) -> None:
        """Keep the figures of a swap; harmless to repeat.

        Args:
            cycle_id: of the cycle that published the head.
            figures: counted over its period; None: they cannot be counted.
            is_final: whether they cover the whole period, so that nothing is left to count.
        """
        values: dict[str, Any] = {"is_final": is_final}
        if figures is not None:
            values["affected"] = figures.to_document()
        with self._database.write() as connection:
            connection.execute(sa.update(_swaps).where(_swaps.c.cycle_id == cycle_id).values(values))

    def figures(self, cycle_ids: Collection[UUID]) -> dict[UUID, AffectedFigures]:
        """The figures of these cycles, as far as they were counted."""
        found: dict[UUID, AffectedFigures] = {}
        with self._database.read() as connection:
            for some in batched(list(cycle_ids)):
                query = sa.select(_swaps.c.cycle_id, _swaps.c.affected).where(_swaps.c.cycle_id.in_(some))
                rows = connection.execute(query.where(_swaps.c.affected.is_not(None)))
                found |= {row.cycle_id: _figures(row.affected) for row in rows}
        return found

    def of_activation(
        self, model_id: int, head_version: int, activated_at: datetime
    ) -> AffectedFigures | None:
        """The figures of the swap that put a head in force at this moment; None: that was no swap, or it was not
        counted yet."""
        query = sa.select(_swaps.c.affected).where(
            _swaps.c.model_id == model_id,
            _swaps.c.head_version == head_version,
            _swaps.c.activated_at == activated_at,
        )
        with self._database.read() as connection:
            document = connection.execute(query).scalar_one_or_none()
        return None if document is None else _figures(document)


def add_swap(connection: sa.Connection, cycle: Cycle) -> None:
    """Note a swap in the transaction that publishes the cycle's head; its affected decisions are counted later."""
    row = {
        "model_id": cycle.model_id,
        "head_version": cycle.published_version,
        "cycle_id": cycle.id,
        "activated_at": activated_at(connection, cycle.model_id, cycle.environment),
        "affected": None,
        "is_final": False,
    }
    connection.execute(sa.insert(_swaps), row)


def _figures(document: dict[str, Any]) -> AffectedFigures:
    """What `to_document` wrote; in schema version 1 the log position is named `horizon`."""
    values = {key: value for key, value in document.items() if key != "schema_version"}
    if "horizon" in values:
        values["log_position"] = values.pop("horizon")
    values.update({name: datetime.fromisoformat(values[name]) for name in _TIMES})
    values["counts"] = AffectedCounts.from_document(values["counts"])
    return AffectedFigures(**values)
