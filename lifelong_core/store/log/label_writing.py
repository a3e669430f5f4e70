"""Writes labels and their history, within the transaction that locks their predictions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.engine.statements import batched, upsert_into
from lifelong_core.store.log.identifiers import is_prediction_id, logged_on
from lifelong_core.store.log.records import LabelOutcome, LabelRevision, NewLabel
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError

_log, _labels = tables.predictions, tables.labels
_revisions = tables.label_revisions


class LabelChanges:
    """Collects the changes of labels within a transaction, and writes them with their history.

    Args:
        predictions: locked rows of the log.
        labels: present rows of their labels.
        actor: name of the token or person.
    """

    def __init__(self, predictions: Mapping[UUID, Row], labels: Mapping[UUID, Row], actor: str) -> None:
        self._predictions = predictions
        self._present = {one: (row.label, row.propensity) for one, row in labels.items()}
        self._actor = actor
        self._rows: dict[UUID, dict[str, Any]] = {}
        self._revisions: list[LabelRevision] = []

    def add(self, prediction_id: UUID, label: NewLabel, planned: float | None) -> LabelOutcome:
        """Label one prediction; one that is not logged changes nothing.

        `planned` is the propensity of a first label that comes without one.
        """
        prediction = self._predictions.get(prediction_id)
        if prediction is None:
            return "unknown"
        before, kept_propensity = self._present.get(prediction_id, (None, None))
        propensity = label.propensity
        if propensity is None:
            propensity = planned if before is None else kept_propensity
        if (before, kept_propensity) == (label.label, propensity):
            return "unchanged"
        self._present[prediction_id] = label.label, propensity
        moment = now()
        self._rows[prediction_id] = {
            "logged_on": logged_on(prediction_id),
            "prediction_id": prediction_id,
            "model_id": prediction.model_id,
            "environment": prediction.environment,
            "label": label.label,
            "source": label.source,
            "recorded_at": moment,
            "propensity": propensity,
        }
        # Numbered in `write`, which knows the earlier revisions.
        self._revisions.append(
            LabelRevision(
                prediction_id, 0, before, label.label, propensity, label.source, self._actor, moment
            )
        )
        return "stored" if before is None else "corrected"

    def write(self, connection: sa.Connection) -> None:
        """Write the labels, and then their history."""
        _upsert(connection, list(self._rows.values()))
        last = last_revisions(connection, sorted(self._rows))
        numbered: list[LabelRevision] = []
        for revision in self._revisions:
            number = last[revision.prediction_id] = last.get(revision.prediction_id, 0) + 1
            numbered.append(replace(revision, revision=number))
        append_revisions(connection, numbered)


def lock_predictions(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Rows of these predictions, locked against deletion and other labels until the transaction ends."""
    locked: dict[UUID, Row] = {}
    columns = (_log.c.id, _log.c.model_id, _log.c.environment, sa.func.length(_log.c.logits).label("bytes"))
    # Sorted, so that concurrent batches of the same predictions do not deadlock.
    for some in batched(sorted({one for one in ids if is_prediction_id(one)})):
        query = (
            sa.select(*columns)
            .where(_log.c.logged_on.in_({logged_on(one) for one in some}), _log.c.id.in_(some))
            .order_by(_log.c.logged_on, _log.c.id)
            .with_for_update(key_share=True)
        )
        locked |= {row.id: row for row in connection.execute(query)}
    return locked


def present_labels(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Present labels of locked predictions.

    Not joined to the query that locks: after its wait, it would return the labels from before the wait.
    """
    labels: dict[UUID, Row] = {}
    for some in batched(ids):
        query = sa.select(_labels.c.prediction_id, _labels.c.label, _labels.c.propensity).where(
            _labels.c.logged_on.in_({logged_on(one) for one in some}), _labels.c.prediction_id.in_(some)
        )
        labels |= {row.prediction_id: row for row in connection.execute(query)}
    return labels


def check_label(label: NewLabel, classes: int) -> None:
    """Refuse a label that is not one of `classes` classes, or whose propensity is outside (0, 1].

    Raises:
        InvalidInputError: it is.
    """
    if not 0 <= label.label < classes:
        raise InvalidInputError(
            f"expected a class index in 0..{classes - 1}, got {label.label}.",
            field="label",
            hint="Send the index or the name of one of the task's classes.",
        )
    if label.propensity is not None and not 0 < label.propensity <= 1:
        raise InvalidInputError(
            f"expected a probability in (0, 1], got {label.propensity}.",
            field="propensity",
            hint="Send the probability with which the prediction was chosen for labelling, or leave it out.",
        )


def _upsert(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    statement = upsert_into(connection, _labels)
    statement = statement.on_conflict_do_update(
        index_elements=[_labels.c.logged_on, _labels.c.prediction_id],
        set_={name: statement.excluded[name] for name in ("label", "source", "recorded_at", "propensity")},
    )
    # Sorted, so that a simultaneous deletion of the same labels does not deadlock.
    connection.execute(statement, sorted(rows, key=lambda row: row["prediction_id"]))


def append_revisions(connection: sa.Connection, revisions: Iterable[LabelRevision]) -> None:
    """Append revisions to the history, in the transaction that changes the labels."""
    rows = [{"logged_on": logged_on(one.prediction_id), **asdict(one)} for one in revisions]
    if rows:
        connection.execute(sa.insert(_revisions), rows)


def last_revisions(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Number of the newest revision of each of these predictions that has one."""
    revisions: dict[UUID, int] = {}
    for some in batched(ids):
        query = (
            sa.select(_revisions.c.prediction_id, sa.func.max(_revisions.c.revision))
            .where(_of(some))
            .group_by(_revisions.c.prediction_id)
        )
        revisions |= {row[0]: row[1] for row in connection.execute(query)}
    return revisions


def revisions_of(connection: sa.Connection, prediction_id: UUID) -> tuple[LabelRevision, ...]:
    """All revisions of the label of one prediction, oldest first."""
    if not is_prediction_id(prediction_id):
        return ()
    return revisions_by_prediction(connection, [prediction_id]).get(prediction_id, ())


def revisions_by_prediction(
    connection: sa.Connection, ids: Sequence[UUID]
) -> dict[UUID, tuple[LabelRevision, ...]]:
    """All revisions of the label of each of these predictions that has one, oldest first."""
    revisions: dict[UUID, tuple[LabelRevision, ...]] = {}
    for some in batched(ids):
        query = sa.select(_revisions).where(_of(some)).order_by(_revisions.c.revision)
        for row in connection.execute(query):
            revision = read_record(row, LabelRevision)
            revisions[revision.prediction_id] = (*revisions.get(revision.prediction_id, ()), revision)
    return revisions


def _of(ids: Sequence[UUID]) -> sa.ColumnElement[bool]:
    days = {logged_on(one) for one in ids}
    return _revisions.c.logged_on.in_(days) & _revisions.c.prediction_id.in_(ids)
