"""The dashboard of one population's performance: estimated without labels, realised on labels, against its targets."""

from grafana.annotations import mark_swaps
from grafana.dashboard import Board
from grafana.grids import Column, draw_states, show_table
from grafana.links import link_console, link_runbook
from grafana.panels import (
    THIRD,
    Display,
    Panel,
    dashed_style,
    draw_band,
    fixed_colour,
    plot_series,
    show_numbers,
    style,
)
from grafana.queries import POPULATION, of_population
from grafana.sdk import timeseries
from grafana.variables import choose_population
from grafana.words import ACCEPTANCE, AGREEMENT, REACHABLE

_PAGE = link_console("Performance", "performance/${model}/${environment}")
_OTHERS = f'{{{POPULATION},head="current",metric!~"AC|EC"}}'
"""Estimates of the current head other than accuracy and expected cost."""


def _estimated(name: str, metric: str, *, head: str = "current") -> str:
    return f'max({name}{{{POPULATION},metric="{metric}",class="",head="{head}"}})'


def _state() -> list[Panel]:
    """What is so now, in one line."""
    return [
        show_numbers(
            "Accuracy now",
            "Share of correct decisions of the active head, estimated without labels, and realised on the newest"
            " predictions with a known true class.",
            {
                "estimated": _estimated("lifelong_estimated_performance", "AC"),
                "realised": of_population("lifelong_realised_accuracy"),
            },
            Display("percentunit", "not known", decimals=1, text="value_and_name"),
        ),
        show_numbers(
            "Acceptance",
            "The worst of all acceptance thresholds of the task, by the estimates without labels. at risk: the estimate"
            " misses the threshold, its interval does not.",
            {"estimate": f"min(lifelong_estimated_performance_accepted{{{POPULATION}}})"},
            Display(
                "none",
                "no threshold",
                words=ACCEPTANCE,
                links=[_PAGE, link_runbook("LifelongEstimatedPerformanceMissesThreshold")],
            ),
        ),
        show_numbers(
            "Labels and estimate",
            "Whether the labelled predictions of the newest head agree with its estimate without labels, for"
            " accuracy (AC) and expected cost (EC). disagree: by more than their intervals explain.",
            {"{{metric}}": of_population("lifelong_performance_agreement", by="metric", aggregation="min")},
            Display(
                "none",
                "too few labels",
                words=AGREEMENT,
                text="value_and_name",
                links=[_PAGE, link_runbook("LifelongEstimateContradicted")],
            ),
        ),
        show_numbers(
            "Labels",
            "Predictions with a known true class behind the realised figures.",
            {"labels": of_population("lifelong_labelled_samples")},
            Display("short", "no labels", links=[link_console("Labels to get", "labels")]),
        ),
    ]


def _plot_estimate(
    title: str, description: str, metric: str, realised: str, *, unit: str, maximum: float | None
) -> timeseries.Panel:
    panel = plot_series(
        title,
        description,
        {
            "estimate": _estimated("lifelong_estimated_performance", metric),
            "low": _estimated("lifelong_estimated_performance_low", metric),
            "high": _estimated("lifelong_estimated_performance_high", metric),
            "candidate": _estimated("lifelong_estimated_performance", metric, head="candidate"),
            "realised": realised,
            "threshold": f'max(lifelong_estimated_performance_threshold{{{POPULATION},metric="{metric}",class=""}})',
        },
        Display(unit, "No estimate yet.", minimum=None, maximum=maximum, drawn="steps"),
    )
    return _style_lines(panel).override_by_name(
        "candidate", style(color=fixed_colour("purple"), custom__lineWidth=1)
    )


def _style_lines(panel: timeseries.Panel) -> timeseries.Panel:
    """Draw an estimate with its band, the realised value and the threshold."""
    return (
        draw_band(panel)
        .override_by_name("realised", style(color=fixed_colour("green"), custom__lineWidth=2))
        .override_by_name("threshold", dashed_style("red"))
    )


def _performance() -> list[Panel]:
    """Accuracy and cost with bands; the recommended metrics; cost at several class mixes."""
    stated = f'lifelong_realised_metric{{{POPULATION},prevalence="stated"}}'
    return [
        _plot_estimate(
            "Accuracy, estimated and realised",
            "Line and band: share of correct decisions of the current head, estimated without labels, with its"
            " interval. Green: realised on the newest predictions with a known true class; these may be older than"
            " the window, and decided by an earlier head. Dashed: the acceptance threshold. Purple: the refitted head"
            " that the last cycle considered. While the assumption test is rejected (see the warnings), the estimate"
            " may be wrong by more than its band.",
            "AC",
            of_population("lifelong_realised_accuracy"),
            unit="percentunit",
            maximum=1,
        ),
        _plot_estimate(
            "Expected cost, estimated and realised",
            "The same for the mean cost per decision: estimated by the costs of the head, realised by those of the"
            " task. Lower is better.",
            "EC",
            of_population("lifelong_realised_expected_cost"),
            unit="none",
            maximum=None,
        ),
        plot_series(
            "Recommended metrics, estimated and realised",
            "The metrics that the recommendation of the task names. Lines: estimated without labels, where that is"
            " possible; dashed: realised, where labels have arrived; dotted: acceptance thresholds. Metrics of single"
            " classes appear where they have a threshold, or with LIFELONG_ESTIMATE_SINGLE_CLASSES.",
            {
                "{{metric}} {{class}} estimated": f"max by (metric, class) (lifelong_estimated_performance{_OTHERS})",
                "{{metric}} {{class}} realised": of_population(
                    "lifelong_realised_metric", 'prevalence="realised"', by="metric, class"
                ),
                "{{metric}} {{class}} threshold": f"max by (metric, class) (lifelong_estimated_performance_threshold"
                f'{{{POPULATION},metric!~"AC|EC"}})',
            },
            Display("none", "No recommendation is attached to the task.", drawn="steps", minimum=None),
        )
        .override_by_regexp("/realised$/", style(custom__lineStyle={"fill": "dash", "dash": [8, 6]}))
        .override_by_regexp("/threshold$/", style(custom__lineStyle={"fill": "dot", "dash": [1, 6]})),
        plot_series(
            "Cost at the stated, estimated and realised prevalences",
            "The same labelled predictions at three class mixes: stated in the recommendation, estimated without labels"
            " by the last cycle, and that of the labels. The stated figure hides a shift of the prevalence, so no alert"
            " uses it.",
            {
                "{{metric}}, {{prevalence}}": f"max by (metric, prevalence) (lifelong_realised_metric{{{POPULATION}}}"
                f" and on (model, environment, metric) {stated})"
            },
            Display(
                "none",
                "The recommendation states no prevalences, or there are no labels.",
                drawn="steps",
                minimum=None,
            ),
        ),
    ]


def _targets() -> list[Panel]:
    """Acceptance thresholds and the target of the decision rule."""
    return [
        draw_states(
            "Acceptance thresholds",
            "Whether each metric reaches its acceptance threshold, by the estimate without labels and by the labels."
            " missed: the whole interval is on the wrong side, which is hardly chance.",
            {
                "{{metric}} {{class}} estimated": of_population(
                    "lifelong_estimated_performance_accepted", by="metric, class", aggregation="min"
                ),
                "{{metric}} {{class}} {{prevalence}}": of_population(
                    "lifelong_realised_metric_accepted", by="metric, class, prevalence", aggregation="min"
                ),
            },
            Display("none", "No acceptance threshold, or too few labels to tell.", words=ACCEPTANCE),
        ),
        draw_states(
            "Target of the decision rule",
            "Whether the metric of the decision rule reaches its target, by the estimate and by the labels, and whether"
            " some cut-off of the calibration set reaches it in this population at all.",
            {
                "{{metric}} {{class}} by {{by}}": of_population(
                    "lifelong_decision_rule_reached", by="metric, class, by", aggregation="min"
                ),
                "{{metric}} {{class}} with any cut-off": "2 + "
                + of_population("lifelong_decision_rule_reachable", by="metric, class", aggregation="min"),
            },
            Display(
                "none",
                "The rule has no target.",
                words=(*ACCEPTANCE, *((value + 2, word, colour) for value, word, colour in REACHABLE)),
            ),
        ),
        _style_lines(
            plot_series(
                "Metric of the decision rule, expected and realised",
                "Line and band: the metric that the decision rule of the active head keeps or optimises, such as"
                " sensitivity or precision, as the last cycle expects it without labels, with its interval. Green:"
                " realised on the labelled decisions of this head. Dashed: the target of the rule: at least, for a"
                " share of positives (PPR) at most.",
                {
                    "estimate": of_population("lifelong_decision_rule_expected"),
                    "low": of_population("lifelong_decision_rule_expected_low"),
                    "high": of_population("lifelong_decision_rule_expected_high"),
                    "realised": of_population("lifelong_decision_rule_realised"),
                    "threshold": of_population("lifelong_decision_rule_target"),
                },
                Display(
                    "percentunit",
                    "The rule of the head has no searched cut-off.",
                    drawn="steps",
                    minimum=None,
                ),
            )
        ),
        plot_series(
            "Cut-off of the decision rule",
            "Probability of the class from which on the active head decides for it. It moves with the prevalence for"
            " precision, negative predictive value and share of positives; the cut-off of a sensitivity moves with the"
            " probabilities alone, and the decisions stay.",
            {"{{class}}": of_population("lifelong_decision_rule_cut_off", by="class")},
            Display("percentunit", "The rule of the head has no searched cut-off.", maximum=1, drawn="steps"),
        ),
    ]


def _trust() -> list[Panel]:
    """How far estimates and labels can be trusted."""
    return [
        show_table(
            "Warnings of the estimate",
            "Limits that the intervals do not include, by code. assumption_rejected: more than the prevalence has"
            " changed, so that no estimate without labels can be trusted; label some predictions (lifelong feedback"
            " advise). lifelong cycles show gives the sentences.",
            [
                Column(
                    "Warning",
                    f'max by (code) (lifelong_estimated_performance_warnings{{{POPULATION},head="current"}}) > 0',
                    label="code",
                    width=320,
                )
            ],
            Display("none", "No warning.", THIRD),
        ),
        plot_series(
            "Validated error of the estimated accuracy",
            "Mean absolute error of the chosen method's accuracy in windows that were simulated from the calibration"
            " set: what the method achieves while its assumption holds. The legend names the method.",
            {
                "{{method}}": f'max by (method) (lifelong_estimated_performance_method{{{POPULATION},head="current"}})'
                " * on () group_left"
                f' max(lifelong_estimated_performance_validated_error{{{POPULATION},head="current"}})'
            },
            Display("percentunit", "No estimate yet.", THIRD, drawn="steps"),
        ),
        plot_series(
            "Checks of the labelled predictions",
            "p-values. Calibration: below its level the answered probabilities are not calibrated. Selection: below its"
            " level the labelled predictions differ from the others, so labels tell little about all of them. The line"
            " is the level, 0.01.",
            {
                "calibration": of_population("lifelong_calibration_drift_p_value"),
                "selection": of_population("lifelong_label_selection_p_value"),
            },
            Display(
                "none",
                "Too few labels.",
                THIRD,
                maximum=1,
                drawn="steps",
                thresholds=((None, "red"), (0.01, "transparent")),
            ),
        ),
    ]


BOARD = Board(
    "quality",
    "Quality",
    "One model in one environment: how good are its decisions, without labels and by labels, and do they meet their"
    " targets?",
    [*_state(), *_performance(), *_targets(), *_trust()],
    variables=choose_population(),
    annotations=[mark_swaps()],
    since="now-7d",
)
