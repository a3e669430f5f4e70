"""Labels: true classes of logged predictions; they may come late, repeatedly and with corrections."""

from collections.abc import Sequence
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
from lifelong_core.store.log.identifiers import is_prediction_id, logged_on, shadow_prediction_id
from lifelong_core.store.log.records import LabelledPredictions, LabelOutcome, NewLabel
from lifelong_core.store.log.rows import group_keys
from lifelong_core.store.schema import tables

_log = tables.predictions
_labels = tables.labels


class Labels:
    """Records labels and reads labelled predictions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, labels: Sequence[NewLabel]) -> tuple[LabelOutcome, ...]:
        """Record the true classes of logged predictions, all in one transaction.

        The prediction that a shadow made of the same image gets the same label.

        Returns:
            For each label: `stored`, `unchanged` (already stored), `corrected` (replaces another label), or
            `unknown` (there is no such prediction; the label is not stored).

        Raises:
            InvalidInputError: a label is not one of the model's classes; nothing is recorded.
        """
        outcomes: list[LabelOutcome] = []
        changed: dict[UUID, dict[str, Any]] = {}
        with self._database.write() as connection:
            ids = [label.prediction_id for label in labels]
            shadows = {one: shadow_prediction_id(one) for one in ids}
            predictions = _predictions(connection, [*ids, *shadows.values()])
            known = {one: row.label for one, row in predictions.items()}
            for label in labels:
                row = predictions.get(label.prediction_id)
                if row is None:
                    outcomes.append("unknown")
                    continue
                _check(label, row.bytes // 4)
                outcomes.append(_outcome(known[label.prediction_id], label.label))
                for one in (label.prediction_id, shadows[label.prediction_id]):
                    if one in predictions and known[one] != label.label:
                        known[one] = label.label
                        changed[one] = _row(label, predictions[one])
            _upsert(connection, list(changed.values()))
        return tuple(outcomes)

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
            sa.select(_labels.c.logged_on, _labels.c.prediction_id, _labels.c.label)
            .where(*chosen)
            .order_by(_labels.c.prediction_id.desc())
            .limit(limit)
            .subquery()
        )
        query = (
            sa.select(
                _log.c.id,
                newest.c.label,
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
        return LabelledPredictions(
            ids=ids,
            labels=np.array([row.label for row in rows], dtype=np.int64),
            decisions=np.array([row.decision for row in rows], dtype=np.int64),
            head_versions=np.array([row.head_version for row in rows], dtype=np.int64),
            logits=unpack_logit_rows([row.logits for row in rows], classes=classes),
            groups=None if all(group is None for group in groups) else group_keys(ids, groups),
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


def _predictions(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Rows of these predictions with their present labels, locked against deletion until the transaction ends."""
    found: dict[UUID, Row] = {}
    joined = _log.outerjoin(
        _labels, (_labels.c.logged_on == _log.c.logged_on) & (_labels.c.prediction_id == _log.c.id)
    )
    columns = (_log.c.id, _log.c.model_id, _log.c.environment, sa.func.length(_log.c.logits).label("bytes"))
    ids = [one for one in ids if is_prediction_id(one)]
    for some in batched(ids):
        query = (
            sa.select(*columns, _labels.c.label)
            .select_from(joined)
            .where(_log.c.logged_on.in_({logged_on(one) for one in some}), _log.c.id.in_(some))
            .with_for_update(read=True, key_share=True, of=_log)
        )
        found |= {row.id: row for row in connection.execute(query)}
    return found


def _outcome(before: int | None, label: int) -> LabelOutcome:
    if before == label:
        return "unchanged"
    return "stored" if before is None else "corrected"


def _check(label: NewLabel, classes: int) -> None:
    if not 0 <= label.label < classes:
        raise InvalidInputError(
            f"expected a class index in 0..{classes - 1}, got {label.label}.",
            field="label",
            hint="Send the index or the name of one of the task's classes.",
        )


def _row(label: NewLabel, prediction: Row) -> dict[str, Any]:
    return {
        "logged_on": logged_on(prediction.id),
        "prediction_id": prediction.id,
        "model_id": prediction.model_id,
        "environment": prediction.environment,
        "label": label.label,
        "source": label.source,
        "recorded_at": now(),
    }


def _upsert(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    statement = upsert_into(connection, _labels)
    statement = statement.on_conflict_do_update(
        index_elements=[_labels.c.logged_on, _labels.c.prediction_id],
        set_={name: statement.excluded[name] for name in ("label", "source", "recorded_at")},
    )
    # Sorted, so that concurrent batches of the same labels do not deadlock.
    connection.execute(statement, sorted(rows, key=lambda row: row["prediction_id"]))
