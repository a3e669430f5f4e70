"""From a prediction to the cycles whose windows held it."""

from datetime import datetime

import sqlalchemy as sa

from lifelong_core.entities.predictions import JudgingCycle
from lifelong_core.store.cycles.swaps import oldest_in_window
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import first_id_at, logged_on
from lifelong_core.store.log.records import Prediction
from lifelong_core.store.schema import tables

MOST = 20
"""Cycles that are named: each costs a look through its window."""
_cycles, _log = tables.cycles, tables.predictions
_COLUMNS = (
    _cycles.c.id,
    _cycles.c.finished_at,
    _cycles.c.outcome,
    _cycles.c.published_version,
    _cycles.c.model_id,
    _cycles.c.environment,
    _cycles.c.log_position,
    _cycles.c.window_samples,
    _cycles.c.report["inputs", "hours", "since"].as_string().label("since"),
)


class JudgedPredictions(Repository):
    """Finds the cycles that used a prediction."""

    def cycles_with(self, prediction: Prediction) -> list[JudgingCycle]:
        """The first cycles whose window held the prediction, oldest first, at most MOST."""
        with self._database.read() as connection:
            position = connection.execute(
                sa.select(_log.c.commit_order).where(
                    _log.c.logged_on == logged_on(prediction.id), _log.c.id == prediction.id
                )
            ).scalar_one_or_none()
            if position is None:  # deleted meanwhile
                return []
            place = (
                _cycles.c.model_id == prediction.model_id,
                _cycles.c.environment == prediction.environment,
            )
            later = sa.select(*_COLUMNS).where(*place, _cycles.c.log_position > position)
            found = list[JudgingCycle]()
            for row in connection.execute(later.order_by(_cycles.c.log_position).limit(MOST)).all():
                if row.since is None:  # a window of rows
                    oldest = oldest_in_window(connection, row, since=prediction.id)
                else:  # of whole hours, with any number of predictions
                    oldest = first_id_at(datetime.fromisoformat(row.since))
                # A window that has left a prediction behind never holds it again.
                if oldest is not None and oldest > prediction.id:
                    break
                found.append(read_record(row, JudgingCycle))
            return found
