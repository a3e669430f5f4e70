"""`python -m lifelong_monitor.jobs ID`: do the work of one job; started by a monitor's runner, never by people.

With `job_runner` ray a runner starts `lifelong_monitor.jobs.on_ray` instead.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConflictError, LifelongError
from lifelong_monitor.jobs.kinds import Work, work_of
from lifelong_monitor.jobs.outcome import Outcome
from lifelong_monitor.jobs.parent_watchdog import end_with_runner

_NICENESS = 5


def main(identifier: str, find_work: Callable[[str], Work] = work_of) -> int:
    """Do the work of the job and tell what came out. 0: it was told, also when it is an error; else it crashed."""
    return tell(lambda: outcome_of(UUID(identifier), find_work))


def tell(run: Callable[[], Outcome]) -> int:
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
        with Store.from_settings(Settings.load()) as store:
            job = _present_job(store, identifier, token)
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
    """Leave the cores to those who serve; and be the first to go when the memory is full, not one of them."""
    with suppress(OSError):
        os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
