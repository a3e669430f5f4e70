"""The row about jobs: long tasks, such as a validation, that clients request and monitors run."""

from grafana.panels import HALF, Query, plot_series
from grafana.sdk import timeseries


def build_panels() -> list[timeseries.Panel]:
    """Outcomes of jobs, those that run and wait, the longest wait, and durations."""
    return [
        plot_series(
            "Jobs",
            "Jobs that ended in each step of the time axis, of all monitors. failed: GET /v1/admin/jobs says why."
            " again: a monitor was stopped, or lost the database, and the job is begun again.",
            [Query("sum by (outcome) (increase(lifelong_jobs_total[$__rate_interval]))", "{{outcome}}")],
            unit="short",
            width=HALF,
            minimum=0,
            drawn="bars",
        ),
        plot_series(
            "Jobs that run and wait",
            "Each monitor runs one training on each of its training_devices, and one other job, at a time, as"
            " subprocesses with a lower priority than its cycles. waiting: no monitor has claimed them.",
            [
                Query("sum by (kind) (lifelong_jobs_running)", "{{kind}}"),
                Query("max(lifelong_jobs_waiting)", "waiting"),
            ],
            unit="short",
            width=HALF,
            minimum=0,
            drawn="steps",
        ),
        plot_series(
            "Longest wait",
            "How long the job has waited that has waited longest. Without end: no monitor does it, and their logs"
            " say why. Up and down: there is more work than the monitors do, start another.",
            [
                Query(
                    # While monitors run and none waits, it is 0.
                    "(time() - min(lifelong_job_waiting_since_timestamp_seconds)) or 0 * max(lifelong_jobs_waiting)",
                    "the oldest",
                )
            ],
            unit="s",
            width=HALF,
            minimum=0,
        ),
        plot_series(
            "Duration of the last job",
            "How long the last job of each kind took; one that takes longer than job_time_limit_seconds, of a training"
            " training_time_limit_seconds, is ended and has failed.",
            [Query("max by (kind) (lifelong_job_last_duration_seconds)", "{{kind}}")],
            unit="s",
            width=HALF,
            minimum=0,
            drawn="steps",
        ),
    ]
