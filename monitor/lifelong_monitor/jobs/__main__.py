"""`python -m lifelong_monitor.jobs ID`: do the work of one job; started by a monitor's runner, never by people.

With `job_runner` ray a runner starts `lifelong_monitor.jobs.running.on_ray` instead.
"""

import sys
from collections.abc import Callable
from uuid import UUID

from lifelong_monitor.jobs.running.work import Work, outcome_of, send_outcome, work_of


def main(identifier: str, find_work: Callable[[str], Work] = work_of) -> int:
    """Do the work of the job and send its outcome. 0: sent, errors included; else the process crashed."""
    return send_outcome(lambda: outcome_of(UUID(identifier), find_work))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
