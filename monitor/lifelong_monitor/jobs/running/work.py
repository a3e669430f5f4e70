"""The work of a job in its subprocess: from its kind to a function, and from the function to an outcome."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.tracing import inherited_context, span, start_tracing
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError
from lifelong_monitor.jobs.running.outcome import Outcome
from lifelong_monitor.jobs.running.process import end_with_runner

Work: TypeAlias = Callable[[Store, Job], dict[str, Any]]
"""Does a job of the store and returns its result: JSON values, large values as digests of artifacts."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "compare": "lifelong_monitor.jobs.kinds.compare",
        "cycle": "lifelong_monitor.jobs.kinds.cycle",
        "fingerprint": "lifelong_monitor.jobs.kinds.fingerprint",
        "labelling_plan": "lifelong_monitor.jobs.kinds.labelling_plan",
        "rank": "lifelong_monitor.jobs.kinds.rank",
        "replay": "lifelong_monitor.jobs.kinds.replay",
        "retrain": "lifelong_monitor.jobs.kinds.retrain",
        "search_augmentation": "lifelong_monitor.jobs.kinds.search_augmentation",
        "validate": "lifelong_monitor.jobs.kinds.validate",
    }
)
"""The module of each kind; its `work` does the job."""

_NICENESS = 5


def work_of(kind: str) -> Work:
    """The function that does the work of a kind.

    Raises:
        InvalidInputError: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInputError(
            f"this monitor knows no jobs of the kind {kind[:80]!r}.",
            field="kind",
            hint=f"Kinds: {', '.join(KINDS)}. Monitors and service need the same version.",
        )
    return import_module(KINDS[kind]).work


def send_outcome(run: Callable[[], Outcome]) -> int:
    """Write the outcome of a job to the pipe to its runner, and end this process if the runner ends first."""
    answer = _private_output()
    end_with_runner()
    _be_modest()
    with os.fdopen(answer, "w") as pipe:
        pipe.write(run().to_json())
    return 0


def outcome_of(identifier: UUID, find_work: Callable[[str], Work], *, token: int | None = None) -> Outcome:
    """The outcome of the work: a result, or an error of ours or for want of memory or disk space. Unexpected exceptions
    propagate.

    Args:
        identifier: of the job.
        find_work: from a kind to its work.
        token: fencing token of the attempt; where another claim has replaced it, nothing is done. None: not compared.
    """
    try:
        settings = Settings.load()
        start_tracing(settings, "job")
        with Store.from_settings(settings) as store:
            job = _present_job(store, identifier, token)
            with span(f"work {job.kind}", parent=inherited_context(), job_id=str(job.id)):
                return Outcome(result=find_work(job.kind)(store, job))
    except LifelongError as error:
        return Outcome.of_error(error)
    except Exception as error:
        outcome = Outcome.of_exhaustion(error)
        if outcome is None:
            raise
        return outcome


def _present_job(store: Store, identifier: UUID, token: int | None) -> Job:
    job = store.jobs.get(identifier)
    if token is not None and (job.token, job.state) != (token, "running"):
        raise ConflictError(f"the job {identifier} was lost: its claim has expired.", field="job")
    return job


def _private_output() -> int:
    """The pipe to the runner; whatever a library prints goes to standard error instead."""
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def _be_modest() -> None:
    """Give serving processes precedence: a lower priority, and the first kill when the memory is full."""
    with suppress(OSError):
        os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
