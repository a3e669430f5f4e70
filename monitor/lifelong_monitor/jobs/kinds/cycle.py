"""The kind `cycle`: runs a cycle of a population now."""

import time
from datetime import UTC, datetime
from typing import Any

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import ConflictError
from lifelong_core.values.names import Name
from lifelong_monitor.cycle.cycle import CycleResult, run_cycle
from lifelong_monitor.cycle.due_times import CycleRequest, DueCycle
from lifelong_monitor.cycle.reports import inputs_of, report_of

RETRY_SECONDS = 0.5
"""Pause between two attempts to get a lease that another process holds."""


class Payload(FrozenDocument):
    """The population to judge."""

    model: str
    """reference, name@version"""
    environment: Name


def work(store: Store, job: Job) -> dict[str, Any]:
    """Run the cycle with the settings of the monitor; see `run_requested_cycle`."""
    return run_requested_cycle(store, Settings.load(), job)


def run_requested_cycle(store: Store, settings: Settings, job: Job) -> dict[str, Any]:
    """Run a cycle as a scheduled one runs, whether predictions are new or not; the cycle has the id of its job.

    A restarted job whose cycle is recorded returns that cycle.

    Returns:
        `cycle`: its id, null where none was recorded; `outcome`: its effect, or `skip`; `reason`: why it ended so.

    Raises:
        NotFoundError: there is no such model or environment.
        ConflictError: another process held the lease of the population for too long.
    """
    for cycle in store.cycles.get_all([job.id]):
        return _describe(CycleResult.of_recorded(cycle, report_of(cycle), inputs_of(cycle)))
    payload = Payload.from_document(job.payload)
    model = store.models.get(payload.model)
    store.environments.get(payload.environment)
    request = CycleRequest(job.id, job.created_by)
    until = time.monotonic() + 2 * settings.lease_seconds
    while True:
        due_cycle = DueCycle.on_request(settings, request, datetime.now(UTC))
        result = run_cycle(store, settings, model, payload.environment, due_cycle.due_at, due_cycle=due_cycle)
        if result.outcome != "skip" or result.again_in is None:
            return _describe(result)
        if time.monotonic() >= until:
            raise ConflictError(result.reason, field="lease", hint="Ask for the cycle again.")
        time.sleep(RETRY_SECONDS)


def _describe(result: CycleResult) -> dict[str, Any]:
    if result.outcome == "skip" or result.last is None:
        return {"cycle": None, "outcome": "skip", "reason": result.reason}
    return {"cycle": str(result.last.id), "outcome": result.last.effect, "reason": result.reason}
