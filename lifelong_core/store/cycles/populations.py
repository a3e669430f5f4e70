"""The newest cycles of all populations without their reports, and what the cycles of one population saw."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.entity import read_document
from lifelong_core.entities.populations import CycleFigures, JudgedWindow
from lifelong_core.store.cycles.watching import newest_cycle_ids
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import Repository, batched
from lifelong_core.store.log.records import Population
from lifelong_core.store.schema import tables

_cycles = tables.cycles
_NEWEST_FIRST = _cycles.c.log_position.desc(), _cycles.c.due_at.desc(), _cycles.c.id.desc()
_EMPTY = CycleFigures()
_STATE = (
    _cycles.c.model_id,
    _cycles.c.environment,
    _cycles.c.id,
    _cycles.c.finished_at,
    _cycles.c.outcome,
    _cycles.c.head_version,
    _cycles.c.published_version,
    _cycles.c.proposal.is_not(None).label("has_proposal"),
    _cycles.c.rejected_at.is_not(None).label("is_rejected"),
    _cycles.c.figures,
)

_report = _cycles.c.report
WINDOW = (
    *_STATE,
    _cycles.c.window_samples,
    _report["assumed_prevalence"].label("assumed"),
    _report["prevalence", "prevalence"].label("prevalence"),
    _report["prevalence", "low"].label("low"),
    _report["prevalence", "high"].label("high"),
    _report["change_points"].label("changes"),
    _report["reasons"].label("reasons"),
)
"""columns of what a cycle saw"""


@dataclass(frozen=True)
class CycleState:
    """A cycle without its report and its proposed head."""

    id: UUID
    finished_at: datetime
    outcome: Outcome
    head_version: int
    published_version: int | None
    has_proposal: bool
    is_rejected: bool
    figures: CycleFigures

    @property
    def effect(self) -> str:
        """As `Cycle.effect`."""
        if self.outcome != "swap" or self.published_version is not None:
            return self.outcome
        return "proposes a swap" if self.has_proposal else "would swap"


class PopulationCycles(Repository):
    """Cycles of populations for overviews; their reports stay unread."""

    def newest(self) -> dict[Population, CycleState]:
        """The newest cycle of each population of a present model."""
        chosen = newest_cycle_ids()
        query = sa.select(*_STATE).join(chosen, chosen.c.id == _cycles.c.id)
        return {(row.model_id, row.environment): _state(row) for row in self._rows(query)}

    def recent_shifts(
        self, populations: Collection[Population], *, limit: int
    ) -> dict[Population, list[float]]:
        """The sizes of the shift that the newest cycles of some populations estimated, oldest first."""
        model_id, environment = tables.models.c.id, tables.environments.c.name
        newest = (
            sa.select(_cycles.c.figures["shift", 0].as_string().label("shift"))
            .where(_cycles.c.model_id == model_id, _cycles.c.environment == environment)
            .correlate(tables.models, tables.environments)
            .order_by(*_NEWEST_FIRST)
            .limit(limit)
            .subquery()
        )
        # One text for each population: a row for each cycle takes ten times as long.
        shifts = sa.select(sa.func.aggregate_strings(newest.c.shift, ",")).scalar_subquery()
        pairs = tables.models.join(tables.environments, sa.true())
        found: dict[Population, list[float]] = {}
        for some in batched(list(populations)):
            query = (
                sa.select(model_id, environment, shifts.label("shifts"))
                .select_from(pairs)
                .where(model_id.in_({one for one, _ in some}), environment.in_({one for _, one in some}))
            )
            for row in self._rows(query):
                texts: list[str] = row.shifts.split(",") if row.shifts else []
                found[row.id, row.name] = [float(text) for text in reversed(texts)]
        return found

    def windows(self, model_id: int, environment: str, *, limit: int) -> list[JudgedWindow]:
        """What the newest cycles of a population saw, oldest first."""
        query = (
            sa.select(*WINDOW)
            .where(_cycles.c.model_id == model_id, _cycles.c.environment == environment)
            .order_by(*_NEWEST_FIRST)
            .limit(limit)
        )
        return [window_of(row) for row in self._rows(query)][::-1]


def _state(row: Row) -> CycleState:
    figures: Mapping[str, Any] | None = row.figures
    return CycleState(
        id=row.id,
        finished_at=row.finished_at,
        outcome=row.outcome,
        head_version=row.head_version,
        published_version=row.published_version,
        has_proposal=bool(row.has_proposal),
        is_rejected=bool(row.is_rejected),
        figures=_EMPTY if figures is None else read_document(figures, CycleFigures),
    )


def window_of(row: Row) -> JudgedWindow:
    """What a cycle saw, from a row with the columns WINDOW."""
    changes: list[dict[str, Any]] = row.changes or [{}]
    changed_at: str | None = changes[-1].get("changed_at")
    reasons: list[dict[str, str]] = row.reasons or [{"text": ""}]
    return JudgedWindow(
        cycle=row.id,
        judged_at=row.finished_at,
        outcome=row.outcome,
        effect=_state(row).effect,
        samples=row.window_samples,
        head_version=row.head_version,
        published_version=row.published_version,
        assumed_prevalence=row.assumed or [],
        prevalence=None if row.prevalence is None else [row.prevalence, row.low, row.high],
        changed_at=None if changed_at is None else datetime.fromisoformat(changed_at),
        reason=reasons[0]["text"],
    )
