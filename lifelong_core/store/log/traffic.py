"""Counts of predictions by token and by hour."""

from datetime import date, datetime
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.repository import Repository
from lifelong_core.store.log.identifiers import logged_on
from lifelong_core.store.schema import tables

_log = tables.predictions
_summaries = tables.window_summaries


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
