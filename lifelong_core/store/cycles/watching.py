"""Queries of a monitor over all populations at once, so that one without news needs no query of its own, and counts of
predictions by token and by hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.heads import HeadPopulation
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.heads.rows import environment_of
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.log.identifiers import logged_on
from lifelong_core.store.log.records import Population
from lifelong_core.store.schema import tables

_log, _labels, _cycles = tables.predictions, tables.labels, tables.cycles
_summaries, _cursors, _activations = tables.window_summaries, tables.summary_cursors, tables.head_activations


@dataclass(frozen=True)
class News:
    """The predictions that appeared in the log between two log positions."""

    log_position: int
    """the log was read up to here; the next read begins here"""
    counts: Mapping[Population, int]


@dataclass(frozen=True)
class NewestCycle:
    """The cycle of a population with the highest log position."""

    id: UUID
    log_position: int


@dataclass(frozen=True)
class LabelState:
    """State of a population's labels; it changes when a label is recorded, corrected or deleted."""

    count: int
    newest: datetime
    """when the newest was recorded"""


@dataclass(frozen=True)
class HeadChange:
    """The newest activation of a head in one place."""

    at: datetime
    reason: str
    """publish, rollback or swap"""


class PopulationWatch(Repository):
    """Queries over all populations; each method runs one query."""

    def news(self, since: int) -> News:
        """Count the predictions since an earlier log position; the time depends on their number only.

        Args:
            since: log_position of the previous news.
        """
        with self._database.read() as connection:
            log_position = read_log_position(connection)
            if log_position <= since:
                return News(log_position, {})
            new = _counts(_log.c.commit_order >= since, _log.c.commit_order < log_position)
            return News(log_position, _by_population(connection, new))

    def count_unjudged(self, oldest: int, log_position: int) -> dict[Population, int]:
        """Count the predictions that appeared since the newest cycle of their population.

        Populations without a cycle are left out. It reads the log from `oldest` on.

        Args:
            oldest: the smallest log position of those cycles; rows below it are not counted.
            log_position: up to which the log is read.
        """
        judged = (
            sa.select(sa.func.max(_cycles.c.log_position))
            .where(_cycles.c.model_id == _log.c.model_id, _cycles.c.environment == _log.c.environment)
            .correlate(_log)
            .scalar_subquery()
        )
        query = _counts(
            _log.c.commit_order >= oldest, _log.c.commit_order < log_position, _log.c.commit_order >= judged
        )
        with self._database.read() as connection:
            return _by_population(connection, query)

    def held_back(self) -> frozenset[Population]:
        """Populations with predictions that cannot be read safely yet, because an older transaction has not ended."""
        with self._database.read() as connection:
            query = _counts(_log.c.commit_order >= read_log_position(connection))
            return frozenset(_by_population(connection, query))

    def newest_cycles(self) -> dict[Population, NewestCycle]:
        """The newest cycle of each population of a present model; as `Cycles.last`, without its report."""
        chosen = newest_cycle_ids()
        query = (
            sa.select(_cycles.c.model_id, _cycles.c.environment, _cycles.c.id, _cycles.c.log_position)
            .join(chosen, chosen.c.id == _cycles.c.id)
            .order_by(_cycles.c.model_id, _cycles.c.environment)
        )
        return {
            (row.model_id, row.environment): NewestCycle(row.id, row.log_position)
            for row in self._rows(query)
        }

    def summarised(self) -> frozenset[Population]:
        """Populations whose summaries are complete up to the log position of the latest fold.

        Of the others, `Summaries.are_behind` is true.
        """
        behind = sa.func.max(
            sa.case((_cursors.c.last_id.is_not(None) | (_cursors.c.commit_order == 0), 1), else_=0)
        )
        complete = (
            sa.select(_cursors.c.model_id, _cursors.c.environment)
            .group_by(_cursors.c.model_id, _cursors.c.environment)
            .having(behind == 0)
        )
        stale = (
            sa.select(_summaries.c.model_id, _summaries.c.environment)
            .where(_summaries.c.summary.is_(None))
            .distinct()
        )
        with self._database.read() as connection:
            summarised = {_population(row) for row in connection.execute(complete)}
            return frozenset(summarised.difference(_population(row) for row in connection.execute(stale)))

    def labels(self) -> dict[Population, LabelState]:
        """The state of the labels of each population that has some."""
        population = _labels.c.model_id, _labels.c.environment
        query = sa.select(*population, sa.func.count(), sa.func.max(_labels.c.recorded_at))
        query = query.group_by(*population).order_by(*population)
        return {_population(row): LabelState(row[2], row[3]) for row in self._rows(query)}

    def recommendations(self) -> dict[int, int]:
        """The version of the recommendation in force of each task that has one, by task id."""
        table = tables.recommendations
        query = (
            sa.select(table.c.task_id, sa.func.max(table.c.version))
            .group_by(table.c.task_id)
            .order_by(table.c.task_id)
        )
        return {row[0]: row[1] for row in self._rows(query)}

    def head_changes(self) -> dict[HeadPopulation, HeadChange]:
        """The newest activation in each place that has one."""
        population = _activations.c.model_id, _activations.c.environment
        newest = sa.select(*population, sa.func.max(_activations.c.sequence)).group_by(*population)
        query = (
            sa.select(*population, _activations.c.activated_at, _activations.c.reason)
            .where(sa.tuple_(*population, _activations.c.sequence).in_(newest))
            .order_by(*population)
        )
        return {
            (row.model_id, environment_of(row)): HeadChange(row.activated_at, row.reason)
            for row in self._rows(query)
        }


def newest_cycle_ids() -> sa.Subquery:
    """The ids (`id`) of the newest cycles of all populations of present models; null for pairs without a cycle."""
    models, environments = tables.models.c.id, tables.environments.c.name
    # One index lookup for each pair; GROUP BY would read all cycles.
    newest = (
        sa.select(_cycles.c.id)
        .where(_cycles.c.model_id == models, _cycles.c.environment == environments)
        .correlate(tables.models, tables.environments)
        .order_by(_cycles.c.log_position.desc(), _cycles.c.due_at.desc(), _cycles.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    pairs = tables.models.join(tables.environments, sa.true())
    return (
        sa.select(newest.label("id"))
        .select_from(pairs)
        .where(tables.models.c.removed_at.is_(None))
        .subquery()
    )


def _counts(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any, Any, int]:
    # Adding 0 keeps SQLite from scanning the whole log by the index of the windows instead of grouping.
    model_id = (_log.c.model_id + 0).label("model_id")
    return (
        sa.select(model_id, _log.c.environment, sa.func.count().label("count"))
        .where(*conditions)
        .group_by(model_id, _log.c.environment)
    )


def _by_population(connection: sa.Connection, counts: sa.Select[Any, Any, int]) -> dict[Population, int]:
    return {_population(row): row[2] for row in connection.execute(counts)}


def _population(row: Row) -> Population:
    return row.model_id, row.environment


class TrafficCounts(Repository):
    """Counts predictions of one population by their token (its id; None: without one) and UTC day, or by hour."""

    def senders(
        self, model_id: int, environment: str, *, first: UUID, log_position: int
    ) -> dict[tuple[int | None, date], int]:
        """Count by token and day the predictions from the id `first` on that were committed before `log_position`."""
        query = (
            sa.select(_log.c.token_id, _log.c.logged_on, sa.func.count())
            .where(_log.c.model_id == model_id, _log.c.environment == environment, _log.c.id >= first)
            .where(_log.c.logged_on >= logged_on(first), _log.c.commit_order < log_position)
            .group_by(_log.c.token_id, _log.c.logged_on)
        )
        return {(row[0], row[1]): row[2] for row in self._rows(query)}

    def senders_before(
        self, model_id: int, environment: str, *, first: UUID, limit: int
    ) -> dict[tuple[int | None, date], int]:
        """Count by token and day the newest predictions before the id `first`, at most `limit`."""
        newest = (
            sa.select(_log.c.token_id, _log.c.logged_on)
            .where(_log.c.model_id == model_id, _log.c.environment == environment, _log.c.id < first)
            .where(_log.c.logged_on <= logged_on(first))
            .order_by(_log.c.id.desc())
            .limit(limit)
            .subquery()
        )
        of = (newest.c.token_id, newest.c.logged_on)
        query = sa.select(*of, sa.func.count()).group_by(*of)
        return {(row[0], row[1]): row[2] for row in self._rows(query)}

    def hours(
        self, model_id: int, environment: str, quantifier_digest: str, *, since: datetime
    ) -> dict[datetime, int]:
        """Number of predictions by start of the hour, from `since` on, as counted in the summaries."""
        count = _summaries.c.samples + _summaries.c.quarantined
        query = sa.select(_summaries.c.bucket, count).where(
            _summaries.c.model_id == model_id,
            _summaries.c.environment == environment,
            _summaries.c.quantifier_digest == quantifier_digest,
            _summaries.c.bucket >= since,
        )
        return {row[0]: row[1] for row in self._rows(query)}
