"""Swaps: heads that cycles published, with counts of the earlier decisions that the new head would change."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store.engine.repository import Repository
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.heads.activations import activated_at
from lifelong_core.store.schema import tables

_swaps = tables.swaps
_TIMES = "since", "until", "counted_at"


@dataclass(frozen=True)
class AffectedFigures:
    """Counts of the decisions of a period that the new head would change, and of the predictions left out."""

    since: datetime
    """beginning of the period"""
    until: datetime
    """end of the period, exclusive"""
    counts: AffectedCounts
    groups: int | None
    """number of groups of the affected predictions; None: none of them has a group"""
    quarantined: int
    """predictions that were left out because their logits, or their decisions, cannot be judged"""
    other_models: int
    """predictions of other models in this environment and period, which are not judged"""
    gone: int | None
    """predictions of the period that retention or an erasure deleted after they were counted; None: unknown"""
    log_position: int
    """commit order up to which the log was read"""
    counted_at: datetime

    def to_document(self) -> dict[str, Any]:
        """The figures as JSON values."""
        times = {name: getattr(self, name).isoformat() for name in _TIMES}
        return {"schema_version": 2, **vars(self), **times, "counts": self.counts.to_document()}


@dataclass(frozen=True)
class UncountedSwap:
    """A swap whose affected decisions are not counted over its whole period yet."""

    cycle_id: UUID
    activated_at: datetime
    is_counted: bool
    """whether a part of its decisions was counted before"""


class Swaps(Repository):
    """Finds swaps and stores the figures of their affected decisions."""

    def uncounted(self) -> list[UncountedSwap]:
        """The swaps whose figures are not final, oldest first."""
        query = sa.select(_swaps).where(_swaps.c.is_final.is_(False)).order_by(_swaps.c.activated_at)
        return [
            UncountedSwap(row.cycle_id, row.activated_at, is_counted=row.affected is not None)
            for row in self._rows(query)
        ]

    def record(self, cycle_id: UUID, figures: AffectedFigures | None, *, is_final: bool) -> None:
        """Store the figures of a swap; harmless to repeat.

        Args:
            cycle_id: of the cycle that published the head.
            figures: counts over its period; None: they cannot be counted.
            is_final: whether they cover the whole period.
        """
        values: dict[str, Any] = {"is_final": is_final}
        if figures is not None:
            values["affected"] = figures.to_document()
        with self._database.write() as connection:
            connection.execute(sa.update(_swaps).where(_swaps.c.cycle_id == cycle_id).values(values))

    def figures(self, cycle_ids: Collection[UUID]) -> dict[UUID, AffectedFigures]:
        """The stored figures of these cycles; cycles without figures are left out."""
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
        """The figures of the swap at the time of this activation; None: it was no swap, or it is not counted yet."""
        query = sa.select(_swaps.c.affected).where(
            _swaps.c.model_id == model_id,
            _swaps.c.head_version == head_version,
            _swaps.c.activated_at == activated_at,
        )
        with self._database.read() as connection:
            document = connection.execute(query).scalar_one_or_none()
        return None if document is None else _figures(document)


def add_swap(connection: sa.Connection, cycle: Cycle) -> None:
    """Add a swap in the transaction that publishes the cycle's head; its affected decisions are counted later."""
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
    """Figures from a document of `to_document`."""
    values = {key: value for key, value in document.items() if key != "schema_version"}
    values.update({name: datetime.fromisoformat(values[name]) for name in _TIMES})
    values["counts"] = AffectedCounts.from_document(values["counts"])
    return AffectedFigures(**values)
