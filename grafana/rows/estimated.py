"""The row about the performance that is estimated without labels, beside the realised one."""

from grafana.panels import (
    HALF,
    POPULATION,
    Query,
    dashed_style,
    draw_band,
    fixed_colour,
    plot_series,
    query_population,
    style,
)
from grafana.sdk import timeseries

_OTHERS = f'{{{POPULATION},head="current",metric!~"AC|EC"}}'
"""Estimates of the current head other than accuracy and expected cost."""


def build_panels() -> list[timeseries.Panel]:
    """Accuracy and cost with bands; the other metrics, acceptance, error and warnings."""
    return [
        _plot_estimate(
            "Accuracy, estimated and realised",
            "Line and band: share of correct decisions of the current head, estimated without labels, with its"
            " interval. Green: realised on the newest predictions with a known true class; these may be older than"
            " the window, and decided by an earlier head. Dashed: the acceptance threshold. Purple: the refitted head"
            " that the last cycle considered. While the assumption test is rejected (see the warnings), the estimate"
            " may be wrong by more than its band.",
            "AC",
            query_population("lifelong_realised_accuracy", "realised"),
            unit="percentunit",
            maximum=1,
        ),
        _plot_estimate(
            "Expected cost, estimated and realised",
            "The same for the mean cost per decision: estimated by the costs of the head, realised by those of the"
            " task. Lower is better.",
            "EC",
            query_population("lifelong_realised_expected_cost", "realised"),
            unit="none",
            maximum=None,
        ),
        plot_series(
            "Recommended metrics, estimated and realised",
            "The recommended metrics that can be estimated without labels, of the current head; dashed: the same"
            " metrics realised, where labels have arrived; dotted: acceptance thresholds. Metrics of single classes"
            " appear where they have a threshold, or with LIFELONG_ESTIMATE_SINGLE_CLASSES.",
            [
                Query(
                    f"max by (metric, class) (lifelong_estimated_performance{_OTHERS})",
                    "{{metric}} {{class}} estimated",
                ),
                Query(
                    f'max by (metric, class) (lifelong_realised_metric{{{POPULATION},prevalence="realised"}})'
                    f" and on (metric, class) lifelong_estimated_performance{_OTHERS}",
                    "{{metric}} {{class}} realised",
                ),
                Query(
                    f"max by (metric, class) (lifelong_estimated_performance_threshold"
                    f'{{{POPULATION},metric!~"AC|EC"}})',
                    "{{metric}} {{class}} threshold",
                ),
            ],
            unit="none",
            drawn="steps",
        )
        .override_by_regexp("/realised$/", style(custom__lineStyle={"fill": "dash", "dash": [8, 6]}))
        .override_by_regexp("/threshold$/", style(custom__lineStyle={"fill": "dot", "dash": [1, 6]})),
        plot_series(
            "Acceptance of the estimates",
            "1: the estimate reaches its acceptance threshold. 0.5: it does not, but its interval does. 0: its whole"
            " interval is on the wrong side. LifelongEstimatedPerformanceMissesThreshold fires at 0, or below 1 for"
            " six hours, and ends at 1.",
            [
                Query(
                    f"min by (metric, class) (lifelong_estimated_performance_accepted{{{POPULATION}}})",
                    "{{metric}} {{class}}",
                )
            ],
            unit="none",
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Validated error of the estimated accuracy",
            "Mean absolute error of the chosen method's accuracy in windows that were simulated from the calibration"
            " set: what the method achieves while its assumption holds. The legend names the method.",
            [
                Query(
                    f'max by (method) (lifelong_estimated_performance_method{{{POPULATION},head="current"}})'
                    " * on () group_left"
                    f' max(lifelong_estimated_performance_validated_error{{{POPULATION},head="current"}})',
                    "{{method}}",
                )
            ],
            unit="percentunit",
            minimum=0,
            drawn="steps",
        ),
        plot_series(
            "Warnings of the estimate",
            "Limits that the intervals do not include, by code: assumption_rejected means that more than the"
            " prevalence has changed, so that no estimate without labels can be trusted: label some predictions"
            " (lifelong feedback advise). lifelong cycles show gives the sentences.",
            [
                Query(
                    f'max by (code) (lifelong_estimated_performance_warnings{{{POPULATION},head="current"}})',
                    "{{code}}",
                )
            ],
            unit="short",
            minimum=0,
            drawn="steps",
        ),
    ]


def _plot_estimate(
    title: str, description: str, metric: str, realised: Query, *, unit: str, maximum: float | None
) -> timeseries.Panel:
    panel = plot_series(
        title,
        description,
        [
            _query("lifelong_estimated_performance", "estimate", metric),
            _query("lifelong_estimated_performance_low", "low", metric),
            _query("lifelong_estimated_performance_high", "high", metric),
            _query("lifelong_estimated_performance", "candidate", metric, head="candidate"),
            realised,
            Query(
                f'max(lifelong_estimated_performance_threshold{{{POPULATION},metric="{metric}",class=""}})',
                "threshold",
            ),
        ],
        unit=unit,
        width=HALF,
        minimum=0,
        maximum=maximum,
        drawn="steps",
    )
    return (
        draw_band(panel)
        .override_by_name("candidate", style(color=fixed_colour("purple"), custom__lineWidth=1))
        .override_by_name("realised", style(color=fixed_colour("green"), custom__lineWidth=2))
        .override_by_name("threshold", dashed_style("red"))
    )


def _query(name: str, legend: str, metric: str, *, head: str = "current") -> Query:
    return Query(f'max({name}{{{POPULATION},metric="{metric}",class="",head="{head}"}})', legend)
