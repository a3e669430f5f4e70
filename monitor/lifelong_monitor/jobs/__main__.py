"""`python -m lifelong_monitor.jobs ID`: do the work of one job; started by a monitor's runner, never by people."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from lifelong_core.errors import LifelongError
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_monitor.jobs.kinds import Work, work_of
from lifelong_monitor.jobs.outcome import Outcome
from lifelong_monitor.jobs.parent_watchdog import end_with_runner

_NICENESS = 5


def main(identifier: str, find_work: Callable[[str], Work] = work_of) -> int:
    """Do the work of the job and tell what came out. 0: it was told, also when it is an error; else it crashed."""
    answer = _private_output()
    end_with_runner()
    _be_modest()
    with os.fdopen(answer, "w") as pipe:
        pipe.write(outcome_of(UUID(identifier), find_work).to_json())
    return 0


def outcome_of(identifier: UUID, find_work: Callable[[str], Work]) -> Outcome:
    """The outcome of the work: a result, or an error of ours. Unexpected exceptions propagate."""
    try:
        settings = Settings.load()
        with Store.from_settings(settings) as store:
            job = store.jobs.get(identifier)
            return Outcome(result=find_work(job.kind)(store, job))
    except LifelongError as error:
        return Outcome.of_error(error)


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
