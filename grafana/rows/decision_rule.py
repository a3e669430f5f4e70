"""The row about the decision rule: does the head that serves reach its target?"""

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


def build_panels() -> list[timeseries.Panel]:
    """The rule's metric with its target, whether it is reached, and the cut-off."""
    return [
        _plot_metric(),
        plot_series(
            "Target of the decision rule reached",
            "1: the metric reaches the target. 0.5: it does not, but its interval does. 0: its whole interval misses"
            " it; LifelongTargetMissed fires, by the estimate after two cycles. Reachable 0: no cut-off of the"
            " calibration set reaches the target in this population.",
            [
                Query(
                    f"min by (metric, class, by) (lifelong_decision_rule_reached{{{POPULATION}}})",
                    "{{metric}} {{class}} by {{by}}",
                ),
                Query(
                    f"min by (metric) (lifelong_decision_rule_reachable{{{POPULATION}}})",
                    "{{metric}} reachable",
                ),
            ],
            unit="none",
            width=HALF,
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Cut-off of the decision rule",
            "Probability of the class from which on the active head decides for it. It moves with the prevalence for"
            " precision, negative predictive value and share of positives; the cut-off of a sensitivity moves with the"
            " probabilities alone, and the decisions stay.",
            [Query(f"max by (class) (lifelong_decision_rule_cut_off{{{POPULATION}}})", "{{class}}")],
            unit="percentunit",
            width=HALF,
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Cycles that expect the target to be missed",
            "Cycles in a row, up to the last one, that expect the whole interval to miss the target.",
            [query_population("lifelong_decision_rule_missed_cycles", "cycles")],
            unit="short",
            width=HALF,
            minimum=0,
            drawn="steps",
        ),
    ]


def _plot_metric() -> timeseries.Panel:
    panel = plot_series(
        "Metric of the decision rule, expected and realised",
        "Line and band: the metric that the decision rule of the active head keeps or optimises, such as sensitivity"
        " or precision, as the last cycle expects it without labels, with its interval. Green: realised on the"
        " labelled decisions of this head. Dashed: the target of the rule: at least, for a share of positives (PPR)"
        " at most. Empty for rules without a searched cut-off.",
        [
            query_population("lifelong_decision_rule_expected", "estimate"),
            query_population("lifelong_decision_rule_expected_low", "low"),
            query_population("lifelong_decision_rule_expected_high", "high"),
            query_population("lifelong_decision_rule_realised", "realised"),
            query_population("lifelong_decision_rule_target", "threshold"),
        ],
        unit="percentunit",
        width=HALF,
        drawn="steps",
    )
    return (
        draw_band(panel)
        .override_by_name("realised", style(color=fixed_colour("green"), custom__lineWidth=2))
        .override_by_name("threshold", dashed_style("red"))
    )
