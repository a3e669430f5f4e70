"""`lifelong heads workers`: the serving processes with their heads and models."""

from typing import Any

from lifelong.commands.operation_command import operation_command
from lifelong_core.operations.processes import DEFAULT_HEAD, ListWorkers, WorkerAnswer


def place_name(environment: str | None) -> str:
    """Name of the place where a head is active, for messages; None or `*`: that of the default head."""
    return "(default head)" if environment in (None, DEFAULT_HEAD) else environment


def _row(worker: WorkerAnswer, revision: int) -> dict[str, Any]:
    return {
        "host": worker.host,
        "process": worker.process,
        "state": _state(worker, revision),
        "seen_at": worker.seen_at,
        "started_at": worker.started_at,
        "revision": worker.revision,
        "heads": ", ".join(
            f"{model} {place_name(environment)}: {version}"
            for model, versions in worker.heads.items()
            for environment, version in versions.items()
        ),
        "models": ", ".join(
            f"{model}: {load.provider or f'failed: {load.failure}'}" for model, load in worker.models.items()
        ),
    }


def _state(worker: WorkerAnswer, revision: int) -> str:
    if worker.lost:
        return "lost"
    if any(load.failure is not None for load in worker.models.values()):
        return "model failed"
    return "up to date" if worker.revision == revision else "behind"


workers = operation_command(
    ListWorkers,
    "workers",
    help_text="""List the serving processes of all machines, their heads and their models.

    The state is `up to date`, `behind`, `lost`, or `model failed`: a model could not be loaded.
    """,
    rows=lambda answer: [_row(worker, answer.revision) for worker in answer.workers],
    empty="No worker has been heard of within a day: `lifelong serve`.",
    below="models",
)
