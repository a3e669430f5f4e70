"""Labels: true classes of logged predictions; they may come late, repeatedly and with corrections. Their history."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from lifelong_core.entities.labelling import LabelHistory, LabelRevisionAnswer
from lifelong_core.store.engine.columns import Row, unpack_logit_rows
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.labelling.samples import planned_propensities
from lifelong_core.store.log.identifiers import first_id_at, is_prediction_id, logged_on, shadow_prediction_id
from lifelong_core.store.log.label_writing import (
    LabelChanges,
    check_label,
    lock_predictions,
    present_labels,
    revisions_of,
)
from lifelong_core.store.log.records import (
    LabelledPredictions,
    LabelOutcome,
    LabelRevision,
    NewLabel,
    group_keys,
)
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

_log = tables.predictions
_labels = tables.labels


class Labels(Repository):
    """Records labels and reads labelled predictions."""

    def record(
        self, labels: Sequence[NewLabel], *, actor: str = "anonymous", dry_run: bool = False
    ) -> tuple[LabelOutcome, ...]:
        """Record the true classes of logged predictions with their history, all in one transaction.

        The prediction that a shadow made of the same image gets the same label. A label without a propensity keeps the
        stored one; a first label gets that of the newest labelling plan that chose its prediction.

        Args:
            labels: the true classes; a later one of the same prediction corrects an earlier one.
            actor: name of the token or person.
            dry_run: record nothing; the outcomes are those that the labels would have.

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
            predictions = lock_predictions(connection, [*shadows, *shadows.values()])
            changes = LabelChanges(predictions, present_labels(connection, list(predictions)), actor)
            planned = planned_propensities(connection, list(predictions))
            for label in labels:
                row = predictions.get(label.prediction_id)
                if row is None:
                    outcomes.append("unknown")
                    continue
                check_label(label, row.bytes // 4)
                shadow, own = shadows[label.prediction_id], planned.get(label.prediction_id)
                outcomes.append(changes.add(label.prediction_id, label, own))
                changes.add(shadow, label, planned.get(shadow, own))
            if not dry_run:
                changes.write(connection)
        return tuple(outcomes)

    def history(self, prediction_id: UUID) -> tuple[LabelRevision, ...]:
        """All revisions of the label of a prediction, oldest first; none: it has no label, or does not exist."""
        with self._database.read() as connection:
            return revisions_of(connection, prediction_id)

    def named_history(self, prediction_id: UUID) -> LabelHistory:
        """The prediction with every change of its label, oldest first, with names of classes.

        Raises:
            NotFoundError: there is no such prediction.
        """
        with self._database.read() as connection:
            row = _population_of(connection, prediction_id)
            model = model_with_id(connection, row.model_id)
            names = task_with_id(connection, model.task_id).class_names
            revisions = revisions_of(connection, prediction_id)
        return LabelHistory(
            prediction_id=prediction_id,
            model=model.reference,
            environment=row.environment,
            revisions=[named_revision(revision, names) for revision in revisions],
        )

    def newest_labelled(
        self,
        model_id: int,
        environment: str,
        *,
        limit: int,
        classes: int,
        recorded_by: datetime | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> LabelledPredictions:
        """Return the newest labelled predictions of a population, at most `limit`, oldest first.

        Args:
            model_id: of the model.
            environment: its name.
            limit: largest number of rows to read.
            classes: of the model; rows with another number of logits are left out and counted.
            recorded_by: only predictions whose label was recorded up to then; None: all.
            since: only predictions made from then on; None: all.
            until: only predictions made before then; None: all.
        """
        chosen = [*_of_population(model_id, environment)]
        if since is not None:
            chosen.append(_labels.c.prediction_id >= first_id_at(since))
        if until is not None:
            chosen.append(_labels.c.prediction_id < first_id_at(until))
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
        rows = self._rows(query)
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


def _population_of(connection: sa.Connection, prediction_id: UUID) -> Row:
    if is_prediction_id(prediction_id):
        query = sa.select(_log.c.model_id, _log.c.environment).where(
            _log.c.logged_on == logged_on(prediction_id), _log.c.id == prediction_id
        )
        if (row := connection.execute(query).first()) is not None:
            return row
    raise NotFoundError(
        f"there is no prediction {prediction_id}.",
        field="prediction_id",
        hint="Its retention may have ended, or its group was erased.",
    )


def named_revision(revision: LabelRevision, names: Sequence[str]) -> LabelRevisionAnswer:
    """One change of a label; `names` are those of the classes."""
    previous = revision.previous_label
    return LabelRevisionAnswer.of(
        revision,
        previous_name=None if previous is None else names[previous],
        name=names[revision.label],
    )
