"""Estimates of performance in the reports of cycles, and the newest comparison of each population."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy.documents import parse_document
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.entities.entity import read_kept
from lifelong_core.entities.performance import PopulationPerformance
from lifelong_core.store.engine.documents import document_text
from lifelong_core.store.engine.statements import Repository, batched, upsert_into
from lifelong_core.store.log.records import Population
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError

_cycles, _table = tables.cycles, tables.performance_comparisons
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class CycleEstimate:
    """The estimate of performance that a cycle reported for the head that it judged."""

    cycle_id: UUID
    due_at: datetime
    head_version: int
    estimate: PerformanceEstimate

    @property
    def day(self) -> date:
        """UTC day that the cycle ends or belongs to: a cycle due at midnight judges the day before."""
        return _day(self.due_at)


class PerformanceComparisons(Repository):
    """Reads estimates; stores one comparison per population."""

    def daily_estimates(
        self, model_id: int, environment: str, *, since: datetime, until: datetime | None = None
    ) -> list[CycleEstimate]:
        """The last estimates of each day and head version, of cycles due since then and before `until`, oldest first.

        Cycles without an estimate, and estimates that this version cannot read, are left out.
        """
        chosen = [
            _cycles.c.model_id == model_id,
            _cycles.c.environment == environment,
            _cycles.c.due_at >= since,
        ]
        if until is not None:
            chosen.append(_cycles.c.due_at < until)
        performance = _cycles.c.report["performance"]
        has_estimate = performance.as_string().is_not(None)
        cycles = (
            sa.select(_cycles.c.id, _cycles.c.due_at, _cycles.c.head_version)
            .where(*chosen, has_estimate)
            .order_by(_cycles.c.due_at, _cycles.c.id)
        )
        with self._database.read() as connection:
            last = {(_day(row.due_at), row.head_version): row for row in connection.execute(cycles)}
            documents: dict[UUID, object] = {}
            for some in batched([row.id for row in last.values()]):
                query = sa.select(_cycles.c.id, performance.label("performance"))
                rows = connection.execute(query.where(_cycles.c.id.in_(some)))
                documents |= {row.id: row.performance for row in rows}
        found = (
            (row, _readable(documents[row.id]))
            for row in sorted(last.values(), key=lambda row: (row.due_at, row.id))
        )
        return [
            CycleEstimate(row.id, row.due_at, row.head_version, estimate)
            for row, estimate in found
            if estimate is not None
        ]

    def store(self, model_id: int, environment: str, performance: PopulationPerformance) -> None:
        """Replace the comparison of a population."""
        values = {
            "model_id": model_id,
            "environment": environment,
            "document": document_text(
                lambda: json.dumps(performance.to_document(), allow_nan=False), field="performance"
            ),
            "computed_at": performance.computed_at,
        }
        with self._database.write() as connection:
            statement = upsert_into(connection, _table)
            replaced = {name: statement.excluded[name] for name in ("document", "computed_at")}
            keys = [_table.c.model_id, _table.c.environment]
            connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=replaced), [values])

    def get(self, model_id: int, environment: str) -> PopulationPerformance | None:
        """The newest comparison of a population; None: none was computed yet.

        Raises:
            UnavailableError: the stored document is damaged, or a newer version wrote it.
        """
        query = sa.select(_table.c.document).where(
            _table.c.model_id == model_id, _table.c.environment == environment
        )
        with self._database.read() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else read_kept(_parse, text, name="the comparison of performance")

    def populations(self) -> dict[Population, datetime]:
        """The populations with a comparison, and when it was computed."""
        query = sa.select(_table.c.model_id, _table.c.environment, _table.c.computed_at)
        return {(row.model_id, row.environment): row.computed_at for row in self._rows(query)}


def _parse(text: str) -> PopulationPerformance:
    return PopulationPerformance.from_document(parse_document(text, field="document"))


def _readable(document: object) -> PerformanceEstimate | None:
    """The estimate; None where it cannot be read, so that an old report does not stop newer ones."""
    if not isinstance(document, dict):
        return None
    try:
        return PerformanceEstimate.from_document(cast("dict[str, Any]", document))
    except InvalidInputError:
        return None


def _day(due_at: datetime) -> date:
    return (due_at.astimezone(UTC) - _INSTANT).date()
