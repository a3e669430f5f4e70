"""Finds predictions of the log, newest first, by pages: each page reads a bounded part of the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import EPOCH, first_id_at, logged_on
from lifelong_core.store.log.records import split_ids
from lifelong_core.store.schema import tables

MOST_READ = 10_000
"""Predictions that one page reads at most; a filter that few of them pass needs several pages."""

_log, _labels, _requests = tables.predictions, tables.labels, tables.requests


@dataclass(frozen=True)
class Filter:
    """Which predictions are wanted; None: all."""

    model_id: int | None = None
    environment: str | None = None
    since: datetime | None = None
    """aware, inclusive"""
    until: datetime | None = None
    """aware, exclusive"""
    decision: int | None = None
    is_labelled: bool | None = None

    @property
    def is_indexed(self) -> bool:
        """Whether an index finds exactly these predictions."""
        whole = (self.model_id is None) == (self.environment is None)
        return whole and self.decision is None and self.is_labelled is not False


@dataclass(frozen=True)
class FoundPrediction:
    """A prediction without its logits, with its present label."""

    id: UUID
    model_id: int
    environment: str
    head_version: int
    decision: int
    group_hash: bytes | None
    label: int | None


@dataclass(frozen=True)
class FoundPage:
    """Predictions, newest first."""

    predictions: list[FoundPrediction]
    next: UUID | None
    """the next page begins with the prediction before this one; None: the log has no earlier one"""


class PredictionFinder(Repository):
    """Finds predictions by filters, ids and request ids."""

    def page(self, wanted: Filter, *, limit: int, before: UUID | None = None) -> FoundPage:
        """The newest predictions that pass a filter.

        Args:
            wanted: the filter.
            limit: largest number of predictions.
            before: `next` of the previous page; None: from the newest on.

        Returns:
            At most `limit` predictions; fewer, even none, with a `next` if MOST_READ predictions were read.
        """
        most = limit + 1 if wanted.is_indexed else MOST_READ
        candidates = _candidates(wanted, before)
        read = candidates.limit(most).subquery("read")
        logged = (_log.c.logged_on == read.c.logged_on) & (_log.c.id == read.c.id)
        labelled = (_labels.c.logged_on == read.c.logged_on) & (_labels.c.prediction_id == read.c.id)
        query = (
            sa.select(*_FOUND, _labels.c.label)
            .select_from(read.join(_log, logged).outerjoin(_labels, labelled))
            .where(*_conditions(wanted))
            .order_by(read.c.logged_on.desc(), read.c.id.desc())
            .limit(limit + 1)
        )
        rows = self._rows(query)
        found = [FoundPrediction(*row) for row in rows[:limit]]
        if len(rows) > limit:
            return FoundPage(found, found[-1].id)
        oldest = self._rows(candidates.offset(most - 1).limit(1))
        return FoundPage(found, oldest[0].id if oldest else None)

    def of_request(
        self, model_ids: Sequence[int], request_id: str, environment: str | None, *, limit: int
    ) -> FoundPage:
        """The predictions of all requests with this id, newest first, at most `limit`.

        Args:
            model_ids: the models of the requests.
            request_id: of the requests.
            environment: of the requests; None: any.
            limit: largest number of predictions.
        """
        asked = sa.select(_requests.c.prediction_ids).where(
            _requests.c.model_id.in_(model_ids), _requests.c.request_id == request_id
        )
        if environment is not None:
            asked = asked.where(_requests.c.environment == environment)
        ids = sorted(
            (one for row in self._rows(asked) for one in split_ids(row.prediction_ids)), reverse=True
        )
        labelled = (_labels.c.logged_on == _log.c.logged_on) & (_labels.c.prediction_id == _log.c.id)
        query = (
            sa.select(*_FOUND, _labels.c.label)
            .select_from(_log.outerjoin(_labels, labelled))
            .where(_log.c.logged_on.in_({logged_on(one) for one in ids[:limit]}), _log.c.id.in_(ids[:limit]))
            .order_by(_log.c.id.desc())
        )
        return FoundPage([FoundPrediction(*row) for row in self._rows(query)], None)


_FOUND = (
    _log.c.id,
    _log.c.model_id,
    _log.c.environment,
    _log.c.head_version,
    _log.c.decision,
    _log.c.group_hash,
)


def _candidates(wanted: Filter, before: UUID | None) -> sa.Select[Any, Any]:
    """Day and id of the predictions, newest first, by an index of the labels or of the log."""
    table = _labels if wanted.is_labelled else _log
    identity = table.c.prediction_id if wanted.is_labelled else table.c.id
    first = first_id_at(wanted.since or EPOCH)
    query = sa.select(table.c.logged_on, identity.label("id"))
    query = query.where(identity >= first, table.c.logged_on >= logged_on(first))
    for end in (before, None if wanted.until is None else first_id_at(wanted.until)):
        if end is not None:
            query = query.where(identity < end, table.c.logged_on <= logged_on(end))
    if wanted.model_id is None or wanted.environment is None:
        return query.order_by(table.c.logged_on.desc(), identity.desc())
    of_population = table.c.model_id == wanted.model_id, table.c.environment == wanted.environment
    return query.where(*of_population).order_by(identity.desc())


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    """What the candidates are filtered by."""
    equal = (
        (_log.c.model_id, wanted.model_id),
        (_log.c.environment, wanted.environment),
        (_log.c.decision, wanted.decision),
    )
    found = [column == value for column, value in equal if value is not None]
    return [*found, _labels.c.label.is_(None)] if wanted.is_labelled is False else found
