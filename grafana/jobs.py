"""The panels about jobs: what was asked of the monitors beside their cycles."""

from grafana.panels import HALF, Query, lines, stacked, steps
from grafana.sdk import common, timeseries


def jobs() -> list[timeseries.Panel]:
    """Work that people asked for, such as the validation of a model."""
    outcomes = lines(
        "Jobs",
        "Jobs that ended in each step of the time axis, of all monitors. failed: GET /v1/admin/jobs says why. again: a"
        " monitor was stopped, or lost the database, and the job is begun again.",
        [Query("sum by (outcome) (increase(lifelong_jobs_total[$__rate_interval]))", "{{outcome}}")],
        unit="short",
        width=HALF,
        minimum=0,
    )
    now = lines(
        "Jobs that run and wait",
        "Each monitor runs one at a time, as a subprocess with a lower priority than its cycles. waiting: no monitor"
        " has claimed them.",
        [
            Query("sum by (kind) (lifelong_jobs_running)", "{{kind}}"),
            Query("max(lifelong_jobs_waiting)", "waiting"),
        ],
        unit="short",
        width=HALF,
        minimum=0,
    )
    longest = lines(
        "Longest wait",
        "How long the job has waited that has waited longest. Without end: no monitor does it, and their logs say why."
        " Up and down: there is more work than the monitors do, start another.",
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
    )
    duration = lines(
        "Duration of the last job",
        "How long the last job of each kind took; one that takes longer than job_time_limit_seconds is ended and has"
        " failed.",
        [Query("max by (kind) (lifelong_job_last_duration_seconds)", "{{kind}}")],
        unit="s",
        width=HALF,
        minimum=0,
    )
    return [
        stacked(outcomes).draw_style(common.GraphDrawStyle.BARS).fill_opacity(80),
        steps(now),
        longest,
        steps(duration),
    ]
