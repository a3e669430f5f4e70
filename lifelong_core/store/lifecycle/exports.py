"""Export of the log of one environment by pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.log.identifiers import first_id_at, logged_on
from lifelong_core.store.log.label_writing import revisions_by_prediction
from lifelong_core.store.log.records import LabelRevision
from lifelong_core.store.schema import tables

_log, _labels = tables.predictions, tables.labels


@dataclass(frozen=True)
class LoggedPage:
    """Predictions of one model and environment in the order of their ids; entry i of every list is one prediction."""

    ids: list[UUID]
    head_versions: list[int]
    decisions: list[int]
    logits: list[bytes]
    """float32, little-endian, as logged"""
    groups: list[bytes | None]
    labels: list[int | None]
    labels_recorded_at: list[datetime | None]
    label_propensities: list[float | None]
    label_histories: list[tuple[LabelRevision, ...]]
    """of every change of the label, oldest first"""


class Exports(Repository):
    """Reads the log by pages, with bounded memory and short transactions."""

    def log_position(self) -> int:
        """Present log position: an export up to it holds all present rows and no later ones."""
        with self._database.read() as connection:
            return read_log_position(connection)

    def models(self, environment: str) -> list[int]:
        """The ids of the models that have predictions in an environment, sorted."""
        model = tables.models.c.id
        # One index lookup per model.
        newest = (
            sa.select(_log.c.id)
            .where(_log.c.model_id == model, _log.c.environment == environment)
            .correlate(tables.models)
            .limit(1)
            .scalar_subquery()
        )
        present = tables.models.c.removed_at.is_(None)
        query = sa.select(model).where(newest.is_not(None), present).order_by(model)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def pages(
        self,
        model_id: int,
        environment: str,
        *,
        log_position: int,
        since: datetime | None = None,
        until: datetime | None = None,
        size: int = 10_000,
    ) -> Iterator[LoggedPage]:
        """Yield all predictions of a population, oldest first, with their present labels.

        Args:
            model_id: of the model.
            environment: its name.
            log_position: rows committed at or after it are left out.
            since: aware; earlier predictions are left out. None: no lower bound.
            until: aware; predictions at or after it are left out. None: no upper bound.
            size: largest number of predictions in a page.
        """
        label = (_labels.c.logged_on == _log.c.logged_on) & (_labels.c.prediction_id == _log.c.id)
        columns = _log.c.id, _log.c.head_version, _log.c.decision, _log.c.logits, _log.c.group_hash
        query = (
            sa.select(*columns, _labels.c.label, _labels.c.recorded_at, _labels.c.propensity)
            .select_from(_log.outerjoin(_labels, label))
            .where(_log.c.model_id == model_id, _log.c.environment == environment)
            .where(_log.c.commit_order < log_position)
            .order_by(_log.c.id)
            .limit(size)
        )
        if since is not None:
            query = query.where(_log.c.id >= first_id_at(since))
        if until is not None:
            query = query.where(_log.c.id < first_id_at(until))
        reached = query
        while True:
            with self._database.read() as connection:
                rows = connection.execute(reached).all()
                labelled = [row.id for row in rows if row.label is not None]
                histories = revisions_by_prediction(connection, labelled)
            if not rows:
                return
            page = [list(column) for column in zip(*rows, strict=True)]
            page.append([histories.get(row.id, ()) for row in rows])
            yield LoggedPage(*page)
            last: UUID = rows[-1].id
            # The condition on the day lets PostgreSQL skip earlier partitions.
            reached = query.where(_log.c.id > last, _log.c.logged_on >= logged_on(last))
