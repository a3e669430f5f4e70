"""Heartbeats of the serving processes, with the heads that they apply and the graphs that they loaded."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.entities.heads import HeadPopulation
from lifelong_core.entities.registry import ModelLoad, ServingWorker
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.repository import Repository
from lifelong_core.store.engine.statements import upsert_into
from lifelong_core.store.schema import tables

LOST_AFTER = timedelta(minutes=1)
"""A worker without a heartbeat for this time counts as dead."""
FORGOTTEN_AFTER = timedelta(days=1)
"""After this time its row is deleted."""

_workers = tables.workers


class Workers(Repository):
    """Records heartbeats of workers and lists workers."""

    def record_heartbeat(
        self,
        worker_id: str,
        *,
        host: str,
        process: int,
        started_at: datetime,
        revision: int,
        heads: Mapping[HeadPopulation, int],
        models: Mapping[int, ModelLoad],
    ) -> None:
        """Record a heartbeat of a worker, with the heads and models that it serves.

        Args:
            worker_id: UUID, new at each start of the worker.
            host: name of its machine.
            process: its process id.
            started_at: time of its start.
            revision: of its registry.
            heads: version of each head that it applies, by model id and environment (None: the default head).
            models: results of loading graphs, by model id.

        Raises:
            UnavailableError: the database does not answer.
        """
        values = {
            "host": host[:255],
            "process": process,
            "started_at": started_at,
            "revision": revision,
            "heads": [
                {"model_id": model_id, "environment": environment, "version": version}
                for (model_id, environment), version in heads.items()
            ],
            "models": [
                {"model_id": model_id, "provider": load.provider, "failure": load.failure}
                for model_id, load in models.items()
            ],
        }
        with self._database.write() as connection:
            values["seen_at"] = seen_at = database_time(connection)
            statement = upsert_into(connection, _workers).values(id=worker_id, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=values))
            connection.execute(sa.delete(_workers).where(_workers.c.seen_at < seen_at - FORGOTTEN_AFTER))

    def list(self) -> list[ServingWorker]:
        """All workers with a heartbeat within the last day, newest heartbeat first."""
        query = sa.select(_workers).order_by(_workers.c.seen_at.desc(), _workers.c.id)
        with self._database.read() as connection:
            present = database_time(connection)
            return [_worker_of(row, present) for row in connection.execute(query)]

    def forget(self, worker_id: str) -> None:
        """Delete the heartbeat of a worker that stops; harmless to repeat."""
        with self._database.write() as connection:
            connection.execute(sa.delete(_workers).where(_workers.c.id == worker_id))


def _worker_of(row: Row, present: datetime) -> ServingWorker:
    heads = {(head["model_id"], head["environment"]): head["version"] for head in row.heads}
    models = {load["model_id"]: ModelLoad(load["provider"], load["failure"]) for load in row.models or ()}
    return ServingWorker(
        id=row.id,
        host=row.host,
        process=row.process,
        started_at=row.started_at,
        seen_at=row.seen_at,
        revision=row.revision,
        heads=MappingProxyType(heads),
        is_lost=present - row.seen_at > LOST_AFTER,
        models=MappingProxyType(models),
    )
