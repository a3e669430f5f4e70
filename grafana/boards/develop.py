"""The dashboard of the develop loop: jobs, trainings, trials of candidates, the knowledge base."""

from grafana.dashboard import Board
from grafana.grids import Column, draw_bars, show_table
from grafana.links import link_console, link_population, link_runbook, value_of
from grafana.panels import THIRD, Display, Panel, plot_series, show_numbers
from grafana.queries import rate_of
from lifelong_core.entities.proposals import REASONS

_TRAINING = 'kind=~"retrain|search_augmentation|fingerprint"'
_TRIALS = 'role=~"canary|shadow"'


def _state() -> list[Panel]:
    return [
        show_numbers(
            "Jobs",
            "Jobs that run and that wait for a monitor. Each monitor runs one training on each of its"
            " training_devices, and one other job, at a time.",
            {"running": "sum(lifelong_jobs_running)", "waiting": "max(lifelong_jobs_waiting)"},
            Display("short", "no monitor", text="value_and_name", links=[link_console("Jobs", "jobs")]),
        ),
        show_numbers(
            "Jobs within a day",
            "Jobs that ended within 24 hours: succeeded and failed. lifelong jobs list says why one failed.",
            {
                outcome: f'sum(increase(lifelong_jobs_total{{outcome="{outcome}"}}[1d]))'
                for outcome in ("succeeded", "failed")
            },
            Display(
                "short",
                "no monitor",
                decimals=0,
                text="value_and_name",
                links=[link_runbook("LifelongJobFailed")],
            ),
        ),
        show_numbers(
            "Proposed retrainings",
            "Retrainings that monitors propose and that wait for a person: lifelong proposals list.",
            {
                "proposals": "sum(max by (task, environment, reason) (lifelong_retraining_proposals)) or vector(0)"
            },
            Display(
                "short",
                "unknown",
                thresholds=((None, "green"), (1, "orange")),
                links=[link_runbook("LifelongRetrainingProposed")],
            ),
        ),
        show_numbers(
            "Knowledge base",
            "Tasks in the knowledge base, their fingerprints, and trainings that started from another task: the"
            " more, the better are the suggestions of what to transfer.",
            {
                "tasks": "max(lifelong_knowledge_entries)",
                "fingerprints": "max(lifelong_knowledge_fingerprints)",
                "transfers": "max(lifelong_knowledge_transfers)",
            },
            Display(
                "short", "no monitor", text="value_and_name", links=[link_console("Knowledge", "knowledge")]
            ),
        ),
    ]


def _jobs() -> list[Panel]:
    return [
        plot_series(
            "Jobs that ended",
            "Jobs that ended in each step of the time axis, of all monitors. again: a monitor was stopped, or lost the"
            " database, and the job is begun again.",
            {"{{outcome}}": "sum by (outcome) (increase(lifelong_jobs_total[$__rate_interval])) > 0"},
            Display("short", "No job ended.", THIRD, drawn="bars"),
        ),
        plot_series(
            "Jobs that run and wait",
            "Running jobs by kind, and those that no monitor has claimed.",
            {
                "{{kind}} runs": "sum by (kind) (lifelong_jobs_running) > 0",
                "waiting": "max(lifelong_jobs_waiting)",
            },
            Display("short", "No monitor.", THIRD, drawn="steps"),
        ),
        plot_series(
            "Longest wait",
            "How long the job has waited that has waited longest. Without end: no monitor does it, and their logs"
            " say why. Up and down: there is more work than the monitors do, start another.",
            {
                # While monitors run and none waits, it is 0.
                "the oldest": "(time() - min(lifelong_job_waiting_since_timestamp_seconds))"
                " or 0 * max(lifelong_jobs_waiting)"
            },
            Display("s", "No monitor.", THIRD, links=[link_runbook("LifelongJobWaits")]),
        ),
        draw_bars(
            "Duration of the last job",
            "How long the last job of each kind took; one that takes longer than job_time_limit_seconds, of a training"
            " training_time_limit_seconds, is ended and has failed.",
            {"{{kind}}": "sort_desc(max by (kind) (lifelong_job_last_duration_seconds))"},
            Display("s", "No job has ended.", THIRD, thresholds=((None, "blue"),)),
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
            Display("none", "No job has failed.", THIRD),
            sort="Failed",
        ),
        plot_series(
            "Trainings",
            "Trainings, searches of augmentations and fingerprints that run, by kind; their progress is on the"
            " console.",
            {"{{kind}}": f"sum by (kind) (lifelong_jobs_running{{{_TRAINING}}})"},
            Display(
                "short", "No monitor.", THIRD, drawn="steps", links=[link_console("Trainings", "trainings")]
            ),
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
                    words={**REASONS},
                    width=260,
                    links=[link_runbook("LifelongRetrainingProposed")],
                ),
            ],
            Display("none", "No retraining is proposed."),
        ),
        show_table(
            "Models on trial",
            "Candidates as shadow (they decide, and clients do not get their answers) or canary (they answer a share"
            " of the requests): estimated accuracy and expected cost beside the shift in each environment.",
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
            Display("none", "No candidate is on trial: lifelong models trial starts one."),
            sort="Candidate",
            descending=False,
        ),
        plot_series(
            "Predictions by role of the model",
            "Predictions per second: of the promoted models, of canaries, of shadows, and of models that requests"
            " name.",
            {"{{role}}": rate_of("lifelong_predictions_total", by="role")},
            Display("cps", "No prediction.", drawn="areas"),
        ),
        plot_series(
            "Failures of candidates",
            "Images per second on which a candidate failed (the promoted model answered), and that the shadow did"
            " not see, by reason.",
            {
                "{{model}} as {{role}}": rate_of("lifelong_candidate_failures_total", by="model, role"),
                "not seen: {{reason}}": rate_of("lifelong_dropped_shadows_total", by="reason"),
            },
            Display("cps", "No service."),
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
