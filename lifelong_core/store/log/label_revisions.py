"""History of labels: by whom, when, and from which class to which a label changed."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.log.identifiers import is_prediction_id, logged_on
from lifelong_core.store.log.records import LabelRevision
from lifelong_core.store.schema import tables

_revisions = tables.label_revisions


def append_revisions(connection: sa.Connection, revisions: Iterable[LabelRevision]) -> None:
    """Append revisions to the history, in the transaction that changes the labels."""
    rows = [{"logged_on": logged_on(one.prediction_id), **asdict(one)} for one in revisions]
    if rows:
        connection.execute(sa.insert(_revisions), rows)


def last_revisions(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Number of the newest revision of each of these predictions that has one."""
    found: dict[UUID, int] = {}
    for some in batched(ids):
        query = (
            sa.select(_revisions.c.prediction_id, sa.func.max(_revisions.c.revision))
            .where(_of(some))
            .group_by(_revisions.c.prediction_id)
        )
        found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def revisions_of(connection: sa.Connection, prediction_id: UUID) -> tuple[LabelRevision, ...]:
    """All revisions of the label of one prediction, oldest first."""
    if not is_prediction_id(prediction_id):
        return ()
    return revisions_by_prediction(connection, [prediction_id]).get(prediction_id, ())


def revisions_by_prediction(
    connection: sa.Connection, ids: Sequence[UUID]
) -> dict[UUID, tuple[LabelRevision, ...]]:
    """All revisions of the label of each of these predictions that has one, oldest first."""
    found: dict[UUID, tuple[LabelRevision, ...]] = {}
    for some in batched(ids):
        query = sa.select(_revisions).where(_of(some)).order_by(_revisions.c.revision)
        for row in connection.execute(query):
            revision = read_record(row, LabelRevision)
            found[revision.prediction_id] = (*found.get(revision.prediction_id, ()), revision)
    return found


def _of(ids: Sequence[UUID]) -> sa.ColumnElement[bool]:
    days = {logged_on(one) for one in ids}
    return _revisions.c.logged_on.in_(days) & _revisions.c.prediction_id.in_(ids)
