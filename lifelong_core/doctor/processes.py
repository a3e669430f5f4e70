"""Checks of the workers and the jobs, by their rows in the database."""

import time
from collections.abc import Iterator
from datetime import timedelta

from lifelong_core.configuration.settings import Settings
from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.entities.jobs import TRAINING_KINDS
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import UnavailableError

_CATCHING_UP_SECONDS = 2.0
"""A worker acknowledges a change of the registry within this time."""
_WAITS_TOO_LONG = timedelta(minutes=5)
"""A monitor that does nothing else claims a job within seconds."""
_LATELY = timedelta(days=1)
_MOST = 5
"""Of several failed jobs so many are named."""
_LONGEST_REASON = 200
"""Characters; a crash tells more, over HTTP."""


def check_workers(installation: Installation) -> Iterator[Finding]:
    """Workers run, have loaded the models, and serve the present heads."""
    store = installation.store
    seen = store.workers.list()
    living = [worker for worker in seen if not worker.is_lost]
    for worker in seen:
        if worker.is_lost:
            yield warning(
                f"worker {worker.process} on {worker.host} was seen last at {worker.seen_at:%Y-%m-%d %H:%M:%S} UTC.",
                "If it was stopped by force, another took its place; it goes from the list after a day.",
            )
    if not living:
        yield warning("no worker is running.", "Start one: `lifelong serve`.")
    revision = store.revision()
    if any(worker.revision < revision for worker in living):
        time.sleep(_CATCHING_UP_SECONDS)
    for worker in store.workers.list():
        if not worker.is_lost and worker.revision < revision:
            yield warning(
                f"worker {worker.process} on {worker.host} serves an older state of the registry.",
                "Look into its log: it cannot read the database.",
            )
    yield from _failed_models(store)
    names = sorted({load.provider for worker in living for load in worker.models.values() if load.provider})
    yield ok(f"{len(living)} running" + (f", with {', '.join(names)}." if names else "."))


def check_jobs(installation: Installation) -> Iterator[Finding]:
    """No job waits long, and none has failed lately."""
    store, now = installation.store, installation.now
    state = store.jobs.state()
    if state.waiting_since is not None and any(
        now - since > _patience(installation.settings, kind, is_busy=state.running > 0)
        for kind, since in state.waiting_since_by_kind.items()
    ):
        waits = f"{_count(state.waiting, 'job')} not done, since {state.waiting_since:%Y-%m-%d %H:%M} UTC;"
        if state.running:
            yield warning(
                f"{waits} {_count(state.running, 'other')} running.",
                "Start another monitor, on another machine perhaps: each does one training on each of its"
                " training_devices, and one other job, at a time.",
            )
        else:
            yield warning(
                f"{waits} no monitor has claimed any.",
                "Is `lifelong monitor` running, and what does its log say?",
            )
    failed = [
        job
        for job in store.jobs.list(state="failed", limit=1000)
        if job.finished_at is not None and now - job.finished_at < _LATELY
    ]
    for job in failed[:_MOST]:
        yield warning(
            f"the job {job.id} ({job.kind}) failed at {job.finished_at:%Y-%m-%d %H:%M} UTC: {_why(job)}",
            "Mend that and ask for it again; GET /v1/admin/jobs/{id} says more. It is named here for a day.",
        )
    if len(failed) > _MOST:
        yield warning(f"{len(failed) - _MOST} more failed within a day.", "GET /v1/admin/jobs?state=failed")
    yield ok(f"{state.waiting} waiting, {state.running} running.")


def check_notifications(installation: Installation) -> Iterator[Finding]:
    """Notifications are delivered, and no attempt of the last day failed without a later success."""
    newest = installation.store.notifications.list(limit=1000)
    overdue = [one for one in newest if one.due_at and installation.now - one.due_at > _WAITS_TOO_LONG]
    if overdue and installation.settings.notifications.channels:
        yield warning(
            f"{_count(len(overdue), 'notification')} not delivered.",
            "Does a monitor run with the channels of these settings? It reads them when it starts.",
        )
    failed = [
        delivery
        for one in newest
        for delivery in one.deliveries
        if delivery.problem is not None and installation.now - one.created_at < _LATELY
    ]
    for channel in sorted({delivery.channel for delivery in failed}):
        problem = next(delivery.problem for delivery in failed if delivery.channel == channel)
        yield warning(
            f"{channel} did not get notifications of the last day: {problem}",
            "Mend the channel, and start the monitors again if its files changed; then try it: `lifelong notifications"
            " test`.",
        )
    yield ok("none waits long, and none of the last day has failed.")


def _patience(settings: Settings, kind: str, *, is_busy: bool) -> timedelta:
    """How long a job may wait: behind another one, as long as that may take."""
    if not is_busy:
        return _WAITS_TOO_LONG
    is_training = kind in TRAINING_KINDS
    limit = settings.training_time_limit_seconds if is_training else settings.job_time_limit_seconds
    return max(timedelta(seconds=limit), _WAITS_TOO_LONG)


def _failed_models(store: Store) -> Iterator[Finding]:
    """A model that a worker could not load; once for all workers that name the same reason."""
    models = {model.id: model.reference for model in store.models.list()}
    failed: dict[tuple[int, str], list[str]] = {}
    for worker in store.workers.list():
        for model_id, load in worker.models.items():
            if not worker.is_lost and load.failure is not None and model_id in models:
                failed.setdefault((model_id, load.failure), []).append(f"{worker.process} on {worker.host}")
    for (model_id, reason), workers in failed.items():
        yield failure(
            f"{models[model_id]} cannot be loaded by worker {', '.join(workers)}: {reason}",
            "Where the reason names nothing to do: bring the graph back from a backup, or add the model again and"
            " promote the new version.",
        )


def _count(count: int, what: str) -> str:
    return f"{count} {what} is" if count == 1 else f"{count} {what}s are"


def _why(job: Job) -> str:
    try:
        message = (job.error or {}).get("message") or ""
    except UnavailableError as error:
        message = error.message
    line = message.splitlines()[0] if message else "the reason is unknown."
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}..."
