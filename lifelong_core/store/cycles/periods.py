"""A population in a period: its cycles by effect, their policies, changes that they declined, and its decisions."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.populations import JudgedWindow
from lifelong_core.store.cycles.populations import WINDOW, window_of
from lifelong_core.store.cycles.rows import cycle_of
from lifelong_core.store.engine.statements import Repository, batched
from lifelong_core.store.log.identifiers import first_id_at, logged_on
from lifelong_core.store.schema import tables

_cycles, _log, _swaps = tables.cycles, tables.predictions, tables.swaps


@dataclass(frozen=True)
class Period:
    """A population and a time from `since` until before `until`."""

    model_id: int
    environment: str
    since: datetime
    until: datetime

    def cycles(self) -> list[sa.ColumnElement[bool]]:
        """Conditions of its cycles: they ended in it."""
        ended = _cycles.c.finished_at
        of_population = _cycles.c.model_id == self.model_id, _cycles.c.environment == self.environment
        return [*of_population, ended >= self.since, ended < self.until]

    def predictions(self) -> list[sa.ColumnElement[bool]]:
        """Conditions of its predictions."""
        first, end = first_id_at(self.since), first_id_at(self.until)
        of_population = _log.c.model_id == self.model_id, _log.c.environment == self.environment
        days = _log.c.logged_on >= logged_on(first), _log.c.logged_on <= logged_on(end)
        return [*of_population, *days, _log.c.id >= first, _log.c.id < end]


@dataclass(frozen=True)
class UsedPolicy:
    """A policy as it stands in reports, and the cycles in a row that followed it."""

    document: Mapping[str, Any]
    first: datetime
    last: datetime
    cycles: int


class PopulationPeriods(Repository):
    """Reads periods of populations, by times: equal logs give equal results."""

    def effects(self, period: Period) -> dict[str, int]:
        """Number of cycles by effect at the end of the period, as `Cycle.effect` names it."""
        effect = sa.case(
            ((_cycles.c.outcome != "swap") | _published_before(period.until), _cycles.c.outcome),
            (_cycles.c.proposal.is_not(None), "proposes a swap"),
            else_="would swap",
        ).label("effect")
        effects = sa.select(effect).where(*period.cycles()).subquery()
        query = sa.select(effects.c.effect, sa.func.count().label("number")).group_by(effects.c.effect)
        return dict(sorted((row.effect, row.number) for row in self._rows(query)))

    def policies(self, period: Period) -> list[UsedPolicy]:
        """The policies of the cycles in order of time: one for each run of cycles with equal policies."""
        text = _cycles.c.report["policy"].as_string()
        used = sa.select(_cycles.c.id, _cycles.c.finished_at, text.label("policy")).where(
            *period.cycles(), text.is_not(None)
        )
        cycles = used.subquery()
        ended = cycles.c.finished_at
        order = (ended, cycles.c.id)
        before = sa.func.lag(cycles.c.policy).over(order_by=order)
        numbered = sa.select(
            cycles.c.policy,
            ended,
            sa.func.row_number().over(order_by=order).label("number"),
            before.label("before"),
            sa.func.lag(ended, type_=ended.type).over(order_by=order).label("ended_before"),
        ).subquery()
        begins = numbered.c.before.is_(None) | (numbered.c.before != numbered.c.policy)
        runs = self._rows(sa.select(numbered).where(begins).order_by(numbered.c.number))
        count, last = self._rows(sa.select(sa.func.count(), sa.func.max(ended)))[0]
        ends = [*((run.number, run.ended_before) for run in runs[1:]), (count + 1, last)]
        return [
            UsedPolicy(json.loads(run.policy), run.finished_at, end, number - run.number)
            for run, (number, end) in zip(runs, ends, strict=False)
        ]

    def declined(self, period: Period, *, limit: int) -> tuple[list[Cycle], int]:
        """The newest cycles that refused or had not published by the end of the period; the number of others.

        They are in order of time.
        """
        is_declined = (_cycles.c.outcome == "refuse") | (
            (_cycles.c.outcome == "swap") & ~_published_before(period.until)
        )
        query = sa.select(_cycles.c.id).where(*period.cycles(), is_declined)
        newest_first = query.order_by(_cycles.c.finished_at.desc(), _cycles.c.id.desc())
        ids = [row.id for row in self._rows(newest_first)]
        return self._read(ids[:limit]), max(0, len(ids) - limit)

    def publishing(self, model_id: int, environment: str, versions: Collection[int]) -> dict[int, Cycle]:
        """The cycles that published these heads, by version."""
        query = sa.select(_cycles.c.id).where(
            _cycles.c.model_id == model_id,
            _cycles.c.environment == environment,
            _cycles.c.published_version.in_(versions),
        )
        found = self._read([row.id for row in self._rows(query)])
        return {cycle.published_version: cycle for cycle in found if cycle.published_version is not None}

    def daily_windows(self, period: Period) -> list[JudgedWindow]:
        """What the last cycle of each UTC day saw, oldest first."""
        rows = self._rows(
            sa.select(_cycles.c.id, _cycles.c.finished_at)
            .where(*period.cycles())
            .order_by(_cycles.c.finished_at, _cycles.c.id)
        )
        last = {row.finished_at.date(): row.id for row in rows}
        query = sa.select(*WINDOW).where(_cycles.c.id.in_(last.values()))
        return [window_of(row) for row in self._rows(query.order_by(_cycles.c.finished_at, _cycles.c.id))]

    def count_predictions(self, period: Period, *, limit: int) -> int:
        """Number of predictions, at most `limit`."""
        some = sa.select(_log.c.id).where(*period.predictions()).limit(limit).subquery()
        return self._rows(sa.select(sa.func.count()).select_from(some))[0][0]

    def decisions(self, period: Period) -> dict[date, dict[int, int]]:
        """Number of decisions by UTC day and class, for the days with predictions."""
        query = (
            sa.select(_log.c.logged_on, _log.c.decision, sa.func.count().label("number"))
            .where(*period.predictions())
            .group_by(_log.c.logged_on, _log.c.decision)
            .order_by(_log.c.logged_on, _log.c.decision)
        )
        found: dict[date, dict[int, int]] = {}
        for row in self._rows(query):
            found.setdefault(row.logged_on, {})[row.decision] = row.number
        return found

    def _read(self, ids: "list[UUID]") -> list[Cycle]:
        """Whole cycles, oldest first."""
        found: list[Cycle] = []
        with self._database.read() as connection:
            for some in batched(ids):
                rows = connection.execute(sa.select(_cycles).where(_cycles.c.id.in_(some))).mappings()
                found += [cycle_of(row) for row in rows]
        return sorted(found, key=lambda cycle: (cycle.finished_at, cycle.id))


def _published_before(moment: datetime) -> sa.ColumnElement[bool]:
    """Whether the head of a cycle came into force before a time; that of a proposal does so by its approval."""
    is_early = sa.exists().where(_swaps.c.cycle_id == _cycles.c.id, _swaps.c.activated_at < moment)
    return _cycles.c.published_version.is_not(None) & (_cycles.c.proposal.is_(None) | is_early)
