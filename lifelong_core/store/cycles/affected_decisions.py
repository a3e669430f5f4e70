"""Decisions before a swap that the new head would change, read from the log in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts, find_affected
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store.cycles.affected_ranking import RankedPrediction, Ranking, RankPosition
from lifelong_core.store.cycles.swaps import AffectedFigures, AffectedPeriod, Swaps, period_of
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.statements import MOST_VALUES
from lifelong_core.store.lifecycle.exports import Exports, LoggedPage
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.log.identifiers import first_id_at, logged_on
from lifelong_core.store.log.records import usable_rows
from lifelong_core.store.schema import tables
from lifelong_core.values.arrays import Mask

BLOCK_ROWS = 10_000
"""Number of predictions in memory at once."""

_log, _labels = tables.predictions, tables.labels


@dataclass(frozen=True)
class AffectedPrediction:
    """A logged decision that the new head would change."""

    id: UUID
    head_version: int
    """of the head that made the decision"""
    decision: int
    """the decision in the answer"""
    new_decision: int
    expected_cost: float
    """expected cost of the decision in the answer minus that of the new decision, both under the new head"""
    group_hash: bytes | None
    label: int | None
    """its true class; None: not labelled"""


@dataclass(frozen=True)
class AffectedList:
    """Affected predictions, most costly first, and the figures of the period."""

    figures: AffectedFigures
    predictions: Iterator[AffectedPrediction]
    """read from the log lazily; predictions deleted since the scan are left out"""
    next: RankPosition | None
    """position after which the next list begins; None: the list is complete"""


class AffectedDecisionLog:
    """Compares logged decisions with those of a new head. The list is never stored: it holds no erased prediction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exports = Exports(database)
        self._swaps = Swaps(database)

    def period(self, cycle: Cycle) -> AffectedPeriod:
        """The predictions that are compared with the head of a cycle.

        Raises:
            ConflictError: the cycle selected no other head.
            DamagedHeadError: the published head is damaged.
        """
        with self._database.read() as connection:
            return period_of(connection, cycle)

    def count_logged(self, period: AffectedPeriod) -> int:
        """Number of predictions of the period in the log."""
        return self._count(*_of(period))

    def scan(
        self, period: AffectedPeriod, ranking: Ranking | None = None
    ) -> Iterator[AffectedFigures | None]:
        """Read the period; yield None after each block, so that the caller can pause, and the figures at the end.

        Args:
            period: the predictions to compare.
            ranking: receives every affected prediction; None: only the figures are computed.
        """
        tally = _Tally(period, ranking)
        with self._database.read() as connection:
            log_position = read_log_position(connection)
        for page in self._exports.pages(
            period.model_id,
            period.environment,
            log_position=log_position,
            since=period.since,
            until=period.until,
            size=BLOCK_ROWS,
        ):
            tally.add(page)
            yield None
        yield AffectedFigures(
            since=period.since,
            until=period.until,
            counts=tally.counts,
            groups=tally.groups,
            quarantined=tally.quarantined,
            other_models=self._count_other_models(period),
            gone=self._count_gone(period),
            log_position=log_position,
            counted_at=datetime.now(UTC),
        )

    def most_costly(
        self, period: AffectedPeriod, *, limit: int | None = None, after: RankPosition | None = None
    ) -> AffectedList:
        """The affected predictions of a period, most costly first; this reads the whole period.

        Args:
            period: the predictions to compare.
            limit: largest number of predictions; None: all.
            after: the list begins after this position, `next` of the previous list.
        """
        ranking = Ranking(limit, after)
        figures = next(found for found in self.scan(period, ranking) if found is not None)
        ranked = list(ranking)
        return AffectedList(figures, self._read(ranked), ranked[-1].position if ranking.has_more else None)

    def _read(self, ranked: list[RankedPrediction]) -> Iterator[AffectedPrediction]:
        label = (_labels.c.logged_on == _log.c.logged_on) & (_labels.c.prediction_id == _log.c.id)
        columns = _log.c.id, _log.c.head_version, _log.c.decision, _log.c.group_hash, _labels.c.label
        query = sa.select(*columns).select_from(_log.outerjoin(_labels, label))
        for start in range(0, len(ranked), MOST_VALUES):
            some = ranked[start : start + MOST_VALUES]
            ids = [one.position.id for one in some]
            days = {logged_on(one) for one in ids}
            with self._database.read() as connection:
                found = connection.execute(query.where(_log.c.logged_on.in_(days), _log.c.id.in_(ids)))
                rows = {row.id: row for row in found}
            for one in some:
                row = rows.get(one.position.id)
                if row is not None:
                    yield AffectedPrediction(
                        id=row.id,
                        head_version=row.head_version,
                        decision=row.decision,
                        new_decision=one.new_decision,
                        expected_cost=one.position.cost,
                        group_hash=row.group_hash,
                        label=row.label,
                    )

    def _count_other_models(self, period: AffectedPeriod) -> int:
        models = tables.models.c.id
        others = sa.select(models).where(models != period.model_id)
        return self._count(_log.c.model_id.in_(others), *_in(period))

    def _count_gone(self, period: AffectedPeriod) -> int | None:
        """Number of predictions that were deleted after they were counted; None: unknown."""
        before = self._swaps.figures([period.cycle_id]).get(period.cycle_id) if period.is_whole else None
        if before is None:
            return None
        present = self._count(
            *_of(period),
            _log.c.id < first_id_at(before.until),
            _log.c.commit_order < before.log_position,
            _log.c.head_version < period.head_version,
        )
        return before.counts.predictions + before.quarantined - present + (before.gone or 0)

    def _count(self, *conditions: sa.ColumnElement[bool]) -> int:
        with self._database.read() as connection:
            query = sa.select(sa.func.count()).select_from(_log).where(*conditions)
            return connection.execute(query).scalar_one()


class _Tally:
    """Adds up the figures of a period, block by block."""

    def __init__(self, period: AffectedPeriod, ranking: Ranking | None) -> None:
        self._period = period
        self._ranking = ranking
        self._group_keys: list[NDArray[np.uint64]] = []
        self.counts = AffectedCounts()
        self.quarantined = 0

    def add(self, page: LoggedPage) -> None:
        """Compare the decisions of a page."""
        head, decisions = self._period.head, np.array(page.decisions, dtype=np.int64)
        is_older = self._is_older(page)
        logits, is_usable = usable_rows(page.logits, classes=head.classes)
        is_known = (decisions >= 0) & (decisions < head.costs.shape[1])
        is_compared = is_older & is_usable & is_known
        self.quarantined += int((is_older & ~is_compared).sum())
        found = find_affected(logits[is_compared[is_usable]], decisions[is_compared], head)
        self.counts += found.counts
        affected: list[int] = np.flatnonzero(is_compared)[found.rows].tolist()
        hashes = [page.groups[row] for row in affected]
        prefixes = b"".join(bytes(one)[:8] for one in hashes if one is not None)
        # The first half of a hash distinguishes groups, and all distinct halves fit into memory.
        self._group_keys.append(np.unique(np.frombuffer(prefixes, np.uint64)))
        if self._ranking is not None:
            self._ranking.add([page.ids[row] for row in affected], found.expected_costs, found.new_decisions)

    @property
    def groups(self) -> int | None:
        """Number of groups of the affected predictions; None: none of them has a group."""
        return np.unique(np.concatenate([np.empty(0, np.uint64), *self._group_keys])).size or None

    def _is_older(self, page: LoggedPage) -> Mask:
        """Which predictions come from an earlier head; versions count up over all environments of a model."""
        version = self._period.head_version
        versions = np.array(page.head_versions, dtype=np.int64)
        return np.ones(versions.size, np.bool_) if version is None else versions < version


def _of(period: AffectedPeriod) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions: the predictions of the period, of the model of the head."""
    return _log.c.model_id == period.model_id, *_in(period)


def _in(period: AffectedPeriod) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions: the predictions of the environment and time of the period, of any model."""
    first, end = first_id_at(period.since), first_id_at(period.until)
    return (
        _log.c.environment == period.environment,
        _log.c.id >= first,
        _log.c.id < end,
        _log.c.logged_on >= logged_on(first),
        _log.c.logged_on <= logged_on(end),
    )
