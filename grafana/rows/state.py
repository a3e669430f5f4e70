"""The row about the state of the processes and of the chosen population."""

from grafana.panels import POPULATION, Query, query_population, show_numbers
from grafana.sdk import stat


def build_panels() -> list[stat.Panel]:
    """Are the processes up, which head serves, and does the monitor get its work done?"""
    return [
        show_numbers(
            "Processes",
            "1: Prometheus reaches the process. 0: it is down or its port is wrong; see the alerts"
            " ServiceDown and MonitorDown.",
            [Query('min by (job) (up{job=~"lifelong-.*"})', "{{job}}")],
            unit="short",
            thresholds=[(None, "red"), (1, "green")],
        ),
        show_numbers(
            "Active head",
            "Version of the head that serves this population now. It is the environment's own head, or the"
            " model's default head while the environment has none.",
            [query_population("lifelong_head_version", "head")],
            unit="none",
            thresholds=[(None, "blue")],
        ),
        show_numbers(
            "Time since the last successful cycle",
            "A cycle that found nothing new to judge counts as successful. Above two intervals an alert"
            " fires: look into the monitor's log.",
            [
                Query(
                    f"time() - max by (model, environment)"
                    f" (lifelong_cycle_last_success_timestamp_seconds{{{POPULATION}}})",
                    "since success",
                ),
                Query("max(lifelong_cycle_interval_seconds)", "interval"),
            ],
            unit="s",
            thresholds=[(None, "text")],
        ),
        show_numbers(
            "Mode",
            "What a cycle that wants another head does. auto: it swaps. propose: it asks a person, who approves by"
            " lifelong heads approve. shadow: it only reports.",
            [Query(f"max by (mode) (lifelong_policy_mode{{{POPULATION}}}) == 1", "{{mode}}")],
            unit="none",
            thresholds=[(None, "blue")],
        ),
        show_numbers(
            "Head pinned",
            "1: a person holds the head that serves this population, and cycles watch and report but never swap;"
            " lifelong heads list says who and why. 0: cycles may swap.",
            [query_population("lifelong_head_pinned", "pinned")],
            unit="none",
            thresholds=[(None, "green"), (1, "orange")],
        ),
        show_numbers(
            "Open proposals",
            "Heads that cycles of all populations propose and that wait for approval: lifelong heads proposals. The"
            " next cycle of a population replaces its proposal by a newer one, or withdraws it.",
            [Query("sum(max by (model, environment) (lifelong_proposal_open))", "proposals")],
            unit="none",
            thresholds=[(None, "green"), (1, "orange")],
        ),
        show_numbers(
            "Proposed retrainings",
            "Retrainings of all tasks that monitors propose and that wait for a person, by reason: lifelong"
            " proposals list. 0: none waits.",
            [
                Query(
                    "sum by (reason) (max by (task, environment, reason) (lifelong_retraining_proposals))"
                    " or on() vector(0)",
                    "{{reason}}",
                )
            ],
            unit="none",
            thresholds=[(None, "green"), (1, "orange")],
        ),
    ]
