"""`lifelong heads workers`: the serving processes with their heads and models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lifelong.commands.common import as_json, open_store
from lifelong.commands.tables import print_rows

if TYPE_CHECKING:
    from lifelong_core.store import HeadRecord, ServingWorker


@click.command()
@as_json
def workers(*, as_json: bool) -> None:
    """List the serving processes of all machines, their heads and their models.

    The state is `up to date`, `behind`, `lost`, or `model failed`: a model could not be loaded.
    """
    with open_store() as store:
        models = {item.id: item.reference for item in store.models.list()}
        current = store.revision()
        rows = [
            {
                "host": worker.host,
                "process": worker.process,
                "state": _state(worker, current),
                "seen_at": worker.seen_at,
                "started_at": worker.started_at,
                "revision": worker.revision,
                "heads": ", ".join(
                    f"{models[model_id]} {place_name(environment)}: {version}"
                    for (model_id, environment), version in worker.heads.items()
                    if model_id in models
                ),
                "models": ", ".join(
                    f"{models[model_id]}: {load.provider or f'failed: {load.failure}'}"
                    for model_id, load in worker.models.items()
                    if model_id in models
                ),
            }
            for worker in store.workers.list()
        ]
    print_rows(
        rows,
        as_json=as_json,
        empty="No worker has been heard of within a day: `lifelong serve`.",
        below="models",
    )


def place_name(environment: str | None) -> str:
    """Name of the place where a head is active, for messages."""
    return environment or "(default head)"


def format_running(
    record: "HeadRecord", places: Sequence[str | None], alive: Sequence["ServingWorker"]
) -> str:
    """How many of the workers run an active head in all the places where it is active, e.g. `2/2`."""
    if not places:
        return ""
    found = [
        worker
        for worker in alive
        if all(worker.heads.get((record.model_id, place)) == record.version for place in places)
    ]
    return f"{len(found)}/{len(alive)}"


def _state(worker: "ServingWorker", revision: int) -> str:
    if worker.is_lost:
        return "lost"
    if any(load.failure is not None for load in worker.models.values()):
        return "model failed"
    return "up to date" if worker.revision == revision else "behind"
