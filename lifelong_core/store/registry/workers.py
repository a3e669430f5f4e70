"""Workers: the serving processes report which heads they run and which models they have loaded or failed to load."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

import sqlalchemy as sa

from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.statements import upsert_into
from lifelong_core.store.heads.records import HeadPopulation
from lifelong_core.store.registry.records import ModelLoad, ServingWorker
from lifelong_core.store.schema import tables

LOST_AFTER = timedelta(minutes=1)
"""A worker that has not been heard of for so long is taken for dead."""
FORGOTTEN_AFTER = timedelta(days=1)
"""After this time its row goes."""

_workers = tables.workers


class Workers:
    """Takes the acknowledgements of workers and lists them."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        """Note what a worker serves, and that it lives.

        Args:
            worker_id: a UUID that it chose when it started.
            host: name of its machine.
            process: its id there.
            started_at: when it did.
            revision: of the registry that it serves.
            heads: version of each head that it serves, by model id and environment (None: the default head).
            models: the graphs that it has loaded or failed to load, by model id.

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
        """All workers that were heard of within the last day, those that were seen last first."""
        query = sa.select(_workers).order_by(_workers.c.seen_at.desc(), _workers.c.id)
        with self._database.read() as connection:
            present = database_time(connection)
            return [_worker_of(row, present) for row in connection.execute(query)]

    def forget(self, worker_id: str) -> None:
        """Take a worker from the list: it has stopped. Doing it again changes nothing."""
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
