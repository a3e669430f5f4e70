"""The row about the outcomes of cycles and the heads that followed."""

from grafana.panels import FULL, POPULATION, THIRD, Query, plot_series, query_population, show_numbers
from grafana.sdk import stat, timeseries


def build_panels() -> list[timeseries.Panel | stat.Panel]:
    """Outcomes of cycles, heads that followed, and durations."""
    return [
        plot_series(
            "Cycle outcomes",
            "Cycles by outcome in each step of the time axis. keep: the head still fits, or a swap is not worth"
            " it. swap: a refitted head was published, or wanted (mode). refuse: the assumptions do not hold and the"
            " log says why."
            " skip: nothing new to judge. error: see the monitor's log.",
            [
                Query(
                    f"sum by (outcome) (increase(lifelong_cycles_total{{{POPULATION}}}[$__rate_interval]))",
                    "{{outcome}}",
                )
            ],
            unit="short",
            width=THIRD,
            minimum=0,
            drawn="bars",
        ),
        plot_series(
            "Head version",
            "Version of the head that serves this population. Every step is a swap, a publication or a"
            " roll-back; the audit log names who did it.",
            [query_population("lifelong_head_version", "head version")],
            unit="none",
            width=THIRD,
            minimum=0,
            drawn="steps",
        ),
        plot_series(
            "Cycle duration",
            "95 % of the cycles of all populations that judged a window took less than this. It grows with the"
            " window and the calibration set.",
            [
                Query(
                    "histogram_quantile(0.95, sum by (le)"
                    " (rate(lifelong_cycle_seconds_bucket[$__rate_interval])))",
                    "p95",
                )
            ],
            unit="s",
            width=THIRD,
            minimum=0,
        ),
        show_numbers(
            "Decisions affected by the last swap",
            "Decisions from the change of the prevalence to the swap which the new head would make otherwise: their"
            " number, their share of the decisions of that time, and their expected cost in the units of the task's"
            " cost matrix. lifelong cycles affected lists them, most costly first. Empty while the head that serves"
            " came by no swap.",
            [
                query_population("lifelong_affected_decisions", "decisions"),
                Query(
                    f"100 * max by (model, environment) (lifelong_affected_decisions_share{{{POPULATION}}})",
                    "percent",
                ),
                query_population("lifelong_affected_decisions_expected_cost", "expected cost"),
            ],
            unit="short",
            thresholds=[(None, "text")],
            width=FULL,
        ),
    ]
