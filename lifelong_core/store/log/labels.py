"""Labels: true classes of logged predictions; they may come late, repeatedly and with corrections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from lifelong_core.errors import InvalidInputError
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, unpack_logit_rows
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.statements import batched, upsert_into
from lifelong_core.store.labelling.samples import planned_propensities
from lifelong_core.store.log.identifiers import is_prediction_id, logged_on, shadow_prediction_id
from lifelong_core.store.log.label_revisions import append_revisions, last_revisions, revisions_of
from lifelong_core.store.log.records import LabelledPredictions, LabelOutcome, LabelRevision, NewLabel
from lifelong_core.store.log.rows import group_keys
from lifelong_core.store.schema import tables

_log = tables.predictions
_labels = tables.labels


class Labels:
    """Records labels and reads labelled predictions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, labels: Sequence[NewLabel], *, actor: str = "anonymous") -> tuple[LabelOutcome, ...]:
        """Record the true classes of logged predictions with their history, all in one transaction.

        The prediction that a shadow made of the same image gets the same label. A label without a propensity keeps the
        stored one; a first label gets that of the newest labelling plan that chose its prediction.

        Args:
            labels: the true classes; a later one of the same prediction corrects an earlier one.
            actor: name of the token or person.

        Returns:
            For each label: `stored`, `unchanged` (already stored), `corrected` (replaces another label or another
            propensity), or `unknown` (there is no such prediction; the label is not stored).

        Raises:
            InvalidInputError: a label is not one of the model's classes, or a propensity is outside (0, 1]; nothing is
                recorded.
        """
        outcomes: list[LabelOutcome] = []
        with self._database.write() as connection:
            shadows = {one.prediction_id: shadow_prediction_id(one.prediction_id) for one in labels}
            predictions = _predictions(connection, [*shadows, *shadows.values()])
            changes = _Changes(predictions, _present_labels(connection, list(predictions)), actor)
            planned = planned_propensities(connection, list(predictions))
            for label in labels:
                row = predictions.get(label.prediction_id)
                if row is None:
                    outcomes.append("unknown")
                    continue
                _check(label, row.bytes // 4)
                shadow, own = shadows[label.prediction_id], planned.get(label.prediction_id)
                outcomes.append(changes.add(label.prediction_id, label, own))
                changes.add(shadow, label, planned.get(shadow, own))
            changes.write(connection)
        return tuple(outcomes)

    def history(self, prediction_id: UUID) -> tuple[LabelRevision, ...]:
        """All revisions of the label of a prediction, oldest first; none: it has no label, or does not exist."""
        with self._database.read() as connection:
            return revisions_of(connection, prediction_id)

    def newest_labelled(
        self,
        model_id: int,
        environment: str,
        *,
        limit: int,
        classes: int,
        recorded_by: datetime | None = None,
    ) -> LabelledPredictions:
        """Return the newest labelled predictions of a population, at most `limit`, oldest first.

        Args:
            model_id: of the model.
            environment: its name.
            limit: largest number of rows to read.
            classes: of the model; rows with another number of logits are left out and counted.
            recorded_by: only predictions whose label was recorded up to then; None: all.
        """
        chosen = [*_of_population(model_id, environment)]
        if recorded_by is not None:
            chosen.append(_labels.c.recorded_at <= recorded_by)
        newest = (
            sa.select(_labels.c.logged_on, _labels.c.prediction_id, _labels.c.label, _labels.c.propensity)
            .where(*chosen)
            .order_by(_labels.c.prediction_id.desc())
            .limit(limit)
            .subquery()
        )
        query = (
            sa.select(
                _log.c.id,
                newest.c.label,
                newest.c.propensity,
                _log.c.decision,
                _log.c.head_version,
                _log.c.logits,
                _log.c.group_hash,
            )
            .join(newest, (newest.c.logged_on == _log.c.logged_on) & (newest.c.prediction_id == _log.c.id))
            .order_by(_log.c.id)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        found = len(rows)
        rows = [row for row in rows if len(row.logits) == 4 * classes]
        ids, groups = tuple(row.id for row in rows), [row.group_hash for row in rows]
        propensities = np.array([row.propensity for row in rows], dtype=np.float64)
        return LabelledPredictions(
            ids=ids,
            labels=np.array([row.label for row in rows], dtype=np.int64),
            decisions=np.array([row.decision for row in rows], dtype=np.int64),
            head_versions=np.array([row.head_version for row in rows], dtype=np.int64),
            logits=unpack_logit_rows([row.logits for row in rows], classes=classes),
            groups=None if all(group is None for group in groups) else group_keys(ids, groups),
            propensities=None if np.isnan(propensities).all() else propensities,
            quarantined=found - len(rows),
        )

    def recorded_times(self, model_id: int, environment: str, *, limit: int) -> list[datetime]:
        """Return when the labels of the newest labelled predictions were recorded or corrected, in ascending order."""
        query = (
            sa.select(_labels.c.recorded_at)
            .where(*_of_population(model_id, environment))
            .order_by(_labels.c.prediction_id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return sorted(connection.execute(query).scalars())


def _of_population(model_id: int, environment: str) -> tuple[sa.ColumnElement[bool], ...]:
    return _labels.c.model_id == model_id, _labels.c.environment == environment


class _Changes:
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


def _predictions(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Rows of these predictions, locked against deletion and other labels until the transaction ends."""
    found: dict[UUID, Row] = {}
    columns = (_log.c.id, _log.c.model_id, _log.c.environment, sa.func.length(_log.c.logits).label("bytes"))
    # Sorted, so that concurrent batches of the same predictions do not deadlock.
    for some in batched(sorted({one for one in ids if is_prediction_id(one)})):
        query = (
            sa.select(*columns)
            .where(_log.c.logged_on.in_({logged_on(one) for one in some}), _log.c.id.in_(some))
            .order_by(_log.c.logged_on, _log.c.id)
            .with_for_update(key_share=True)
        )
        found |= {row.id: row for row in connection.execute(query)}
    return found


def _present_labels(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Present labels of locked predictions.

    Not joined to the query that locks: after its wait, it would return the labels from before the wait.
    """
    found: dict[UUID, Row] = {}
    for some in batched(ids):
        query = sa.select(_labels.c.prediction_id, _labels.c.label, _labels.c.propensity).where(
            _labels.c.logged_on.in_({logged_on(one) for one in some}), _labels.c.prediction_id.in_(some)
        )
        found |= {row.prediction_id: row for row in connection.execute(query)}
    return found


def _check(label: NewLabel, classes: int) -> None:
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
