"""The history of a label as JSON values, for the HTTP API and the command line."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.columns import Row
from lifelong_core.store.log.identifiers import is_prediction_id, logged_on
from lifelong_core.store.log.label_revisions import revisions_of
from lifelong_core.store.log.records import LabelRevision
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

_log = tables.predictions


def label_history_document(connection: sa.Connection, prediction_id: UUID) -> dict[str, Any]:
    """A prediction with every change of its label, oldest first; an empty list: it has no label.

    Raises:
        NotFoundError: there is no such prediction.
    """
    row = _population_of(connection, prediction_id)
    model = model_with_id(connection, row.model_id)
    names = task_with_id(connection, model.task_id).class_names
    return {
        "prediction_id": str(prediction_id),
        "model": model.reference,
        "environment": row.environment,
        "revisions": [revision_document(one, names) for one in revisions_of(connection, prediction_id)],
    }


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


def revision_document(revision: LabelRevision, names: Sequence[str]) -> dict[str, Any]:
    """One change of a label as JSON values; `names` are those of the classes."""
    previous = revision.previous_label
    return {
        "revision": revision.revision,
        "previous_label": previous,
        "previous_name": None if previous is None else names[previous],
        "label": revision.label,
        "name": names[revision.label],
        "propensity": revision.propensity,
        "source": revision.source,
        "actor": revision.actor,
        "recorded_at": revision.recorded_at.isoformat(),
    }
