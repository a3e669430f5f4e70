"""The dashboard of the develop loop: jobs, trainings, trials of candidates, the knowledge base."""

from grafana.dashboard import Board
from grafana.grids import Column, draw_bars, show_table
from grafana.links import link_console, link_population, link_runbook, value_of
from grafana.panels import THIRD, Panel, plot_series, show_numbers
from grafana.queries import Query

_TRAINING = 'kind=~"retrain|search_augmentation|fingerprint"'
REASONS = {
    "estimated_performance": "estimated performance below acceptance",
    "realised_performance": "realised performance below acceptance",
    "repeated_refusals": "cycles refuse again and again",
}
_TRIALS = 'role=~"canary|shadow"'


def _state() -> list[Panel]:
    return [
        show_numbers(
            "Jobs",
            "Jobs that run and that wait for a monitor. Each monitor runs one training on each of its"
            " training_devices, and one other job, at a time.",
            [
                Query("sum(lifelong_jobs_running)", "running"),
                Query("max(lifelong_jobs_waiting)", "waiting"),
            ],
            unit="short",
            empty="no monitor",
            text="value_and_name",
            links=[link_console("Jobs", "jobs")],
        ),
        show_numbers(
            "Jobs within a day",
            "Jobs that ended within 24 hours: succeeded and failed. lifelong jobs list says why one failed.",
            [
                Query(f'sum(increase(lifelong_jobs_total{{outcome="{outcome}"}}[1d]))', outcome)
                for outcome in ("succeeded", "failed")
            ],
            unit="short",
            empty="no monitor",
            decimals=0,
            text="value_and_name",
            links=[link_runbook("LifelongJobFailed")],
        ),
        show_numbers(
            "Proposed retrainings",
            "Retrainings that monitors propose and that wait for a person: lifelong proposals list.",
            [
                Query(
                    "sum(max by (task, environment, reason) (lifelong_retraining_proposals)) or vector(0)",
                    "proposals",
                )
            ],
            unit="short",
            empty="unknown",
            thresholds=((None, "green"), (1, "orange")),
            links=[link_runbook("LifelongRetrainingProposed")],
        ),
        show_numbers(
            "Knowledge base",
            "Tasks in the knowledge base, their fingerprints, and trainings that started from another task: the"
            " more, the better are the suggestions of what to transfer.",
            [
                Query("max(lifelong_knowledge_entries)", "tasks"),
                Query("max(lifelong_knowledge_fingerprints)", "fingerprints"),
                Query("max(lifelong_knowledge_transfers)", "transfers"),
            ],
            unit="short",
            empty="no monitor",
            text="value_and_name",
            links=[link_console("Knowledge", "knowledge")],
        ),
    ]


def _jobs() -> list[Panel]:
    return [
        plot_series(
            "Jobs that ended",
            "Jobs that ended in each step of the time axis, of all monitors. again: a monitor was stopped, or lost the"
            " database, and the job is begun again.",
            [Query("sum by (outcome) (increase(lifelong_jobs_total[$__rate_interval])) > 0", "{{outcome}}")],
            unit="short",
            empty="No job ended.",
            width=THIRD,
            minimum=0,
            drawn="bars",
        ),
        plot_series(
            "Jobs that run and wait",
            "Running jobs by kind, and those that no monitor has claimed.",
            [
                Query("sum by (kind) (lifelong_jobs_running) > 0", "{{kind}} runs"),
                Query("max(lifelong_jobs_waiting)", "waiting"),
            ],
            unit="short",
            empty="No monitor.",
            width=THIRD,
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
            empty="No monitor.",
            width=THIRD,
            minimum=0,
            links=[link_runbook("LifelongJobWaits")],
        ),
        draw_bars(
            "Duration of the last job",
            "How long the last job of each kind took; one that takes longer than job_time_limit_seconds, of a training"
            " training_time_limit_seconds, is ended and has failed.",
            [Query("sort_desc(max by (kind) (lifelong_job_last_duration_seconds))", "{{kind}}")],
            unit="s",
            empty="No job has ended.",
            thresholds=((None, "blue"),),
            width=THIRD,
        ),
        show_table(
            "Last failures",
            "When a job of each kind failed last, whichever monitor ran it.",
            [
                Column("Kind", label="kind", width=160),
                Column(
                    "Failed",
                    "1000 * max by (kind) (lifelong_job_last_failure_timestamp_seconds)",
                    unit="dateTimeFromNow",
                    width=140,
                ),
            ],
            empty="No job has failed.",
            sort="Failed",
            width=THIRD,
        ),
        plot_series(
            "Trainings",
            "Trainings, searches of augmentations and fingerprints that run, by kind; their progress is on the"
            " console.",
            [Query(f"sum by (kind) (lifelong_jobs_running{{{_TRAINING}}})", "{{kind}}")],
            unit="short",
            empty="No monitor.",
            width=THIRD,
            minimum=0,
            drawn="steps",
            links=[link_console("Trainings", "trainings")],
        ),
    ]


def _trials() -> list[Panel]:
    row = link_population(value_of("Candidate"), value_of("Environment"))
    return [
        show_table(
            "Proposed retrainings, by reason",
            "Which task should be trained anew, where, and why; the runbook says what to look at first.",
            [
                Column("Task", label="task", width=130),
                Column("Environment", label="environment", width=130),
                Column(
                    "Proposed for",
                    "max by (task, environment, reason) (lifelong_retraining_proposals) > 0",
                    label="reason",
                    words=REASONS,
                    width=260,
                    links=[link_runbook("LifelongRetrainingProposed")],
                ),
            ],
            empty="No retraining is proposed.",
        ),
        show_table(
            "Models on trial",
            "Candidates as shadow (they decide, and nobody gets their answers) or canary (they answer a share of the"
            " requests): estimated accuracy and expected cost beside the shift in each environment.",
            [
                Column(
                    "Candidate",
                    f"max by (model, environment, role) (lifelong_population_task{{{_TRIALS}}})",
                    label="model",
                    width=150,
                    links=row,
                ),
                Column("Environment", label="environment", width=130, links=row),
                Column("Role", label="role", width=80),
                *(
                    Column(
                        title,
                        f"max by (model, environment, role) ({metric})",
                        unit=unit,
                        decimals=decimals,
                        width=85,
                    )
                    for title, metric, unit, decimals in (
                        ("its accuracy", _of_trial("AC"), "percentunit", 1),
                        ("its cost", _of_trial("EC"), "none", 3),
                        ("its shift", f"lifelong_prevalence_shift_l1{{{_TRIALS}}}", "none", 2),
                    )
                ),
            ],
            empty="No candidate is on trial: lifelong models trial starts one.",
            sort="Candidate",
            descending=False,
        ),
        plot_series(
            "Predictions by role of the model",
            "Predictions per second: of the promoted models, of canaries, of shadows, and of models that requests"
            " name.",
            [Query("sum by (role) (rate(lifelong_predictions_total[$__rate_interval]))", "{{role}}")],
            unit="cps",
            empty="No prediction.",
            minimum=0,
            drawn="areas",
        ),
        plot_series(
            "Failures of candidates",
            "Images per second on which a candidate failed (the promoted model answered), and that the shadow did"
            " not see, by reason.",
            [
                Query(
                    "sum by (model, role) (rate(lifelong_candidate_failures_total[$__rate_interval]))",
                    "{{model}} as {{role}}",
                ),
                Query(
                    "sum by (reason) (rate(lifelong_dropped_shadows_total[$__rate_interval]))",
                    "not seen: {{reason}}",
                ),
            ],
            unit="cps",
            empty="No service.",
            minimum=0,
        ),
    ]


def _of_trial(metric: str) -> str:
    return f'lifelong_estimated_performance{{{_TRIALS},metric="{metric}",class="",head="current"}}'


BOARD = Board(
    "develop",
    "Develop",
    "The develop loop: jobs, trainings, trials of candidates, and the knowledge base.",
    [*_state(), *_jobs(), *_trials()],
    since="now-7d",
)
