"""The dashboard of one population: its prevalence, the evidence of a shift, and why the last cycle did not swap."""

from grafana.annotations import mark_affected, mark_changes, mark_swaps
from grafana.dashboard import Board
from grafana.grids import Column, draw_states, show_table
from grafana.links import link_board, link_console, link_runbook, value_of
from grafana.panels import (
    HALF,
    MIDDLE,
    QUARTER,
    SIXTH,
    THIRD,
    Display,
    Panel,
    dashed_style,
    draw_band,
    plot_series,
    show_numbers,
    style,
)
from grafana.queries import POPULATION, firing, of_population
from grafana.variables import choose_class, choose_population
from grafana.words import OUTCOMES, REASONS, SEVERITIES, STATES

_CLASS = f'{POPULATION},class="$class"'
_CONSOLE = "populations/${model}/${environment}"


def _state() -> list[Panel]:
    """What is so now, in one line."""
    return [
        show_numbers(
            "State",
            "What needs a person, the most urgent first; 'fits': nothing does.",
            {"state": f"lifelong:population_state{{{POPULATION}}}"},
            Display("none", "not known", SIXTH, words=STATES, links=[link_console("Console", _CONSOLE)]),
        ),
        show_numbers(
            "Mode",
            "What a cycle that wants another head does. auto: it swaps. propose: it asks a person, who approves in"
            " the console or by lifelong heads approve. shadow: it only reports. pinned: a person holds the head,"
            " and cycles never swap it.",
            {
                "{{mode}}": f"{of_population('lifelong_policy_mode', by='mode')} == 1",
                "pinned": f"{of_population('lifelong_head_pinned')} == 1",
            },
            Display("none", "not known", SIXTH, text="name"),
        ),
        show_numbers(
            "Head",
            "Version of the head that serves now: the environment's own head, or the model's default head while the"
            " environment has none.",
            {"version": of_population("lifelong_head_version")},
            Display("none", "no head", SIXTH, links=[link_console("Heads", "heads/${model}/${environment}")]),
        ),
        show_numbers(
            "Last swap",
            "Days since a cycle last published a head here, automatically or after approval. Affected: decisions"
            " from the change of the prevalence to this swap which its head would make otherwise; lifelong cycles"
            " affected lists them, most costly first.",
            {
                "ago": f"(time() - max(lifelong_last_swap_timestamp_seconds{{{POPULATION}}})) / 86400",
                "affected": of_population("lifelong_affected_decisions"),
                "share": of_population("lifelong_affected_decisions_share"),
            },
            Display("short", "never swapped", QUARTER, text="value_and_name"),
        )
        .override_by_name("ago", style(unit="d", decimals=1))
        .override_by_name("share", style(unit="percentunit", decimals=1)),
        show_numbers(
            "Time since the last cycle",
            "A cycle that found nothing new to judge counts. Above two intervals LifelongNoSuccessfulCycle fires.",
            {
                "since success": f"time() - max(lifelong_cycle_last_success_timestamp_seconds{{{POPULATION}}})",
                "interval": "max(lifelong_cycle_interval_seconds)",
            },
            Display("s", "no cycle yet", QUARTER, text="value_and_name"),
        ),
    ]


def _plot_prevalence() -> Panel:
    panel = draw_band(
        plot_series(
            "Prevalence of $class",
            "Line and band: share of the class among the recent predictions, estimated without labels, with its"
            " confidence interval. Dashed steps: what the active head assumes. A dashed line outside the band means"
            " that the head decides for another class mix than the present one. Marks: changes of the prevalence"
            " (blue), of the head (purple), affected decisions (orange).",
            {
                "estimate": f"max by (class) (lifelong_prevalence_estimate{{{_CLASS}}})",
                "low": f"min by (class) (lifelong_prevalence_low{{{_CLASS}}})",
                "high": f"max by (class) (lifelong_prevalence_high{{{_CLASS}}})",
                "assumed by the head": f"max by (class) (lifelong_prevalence_assumed{{{_CLASS}}})",
            },
            Display(
                "percentunit",
                "No estimate yet: the first cycle needs enough predictions.",
                HALF + 2,
                maximum=1,
                drawn="steps",
            ),
        )
    )
    return panel.override_by_name("assumed by the head", dashed_style("orange"))


def _list_classes() -> Panel:
    def of_class(metric: str) -> str:
        return f"max by (class) (lifelong_prevalence_{metric}{{{POPULATION}}})"

    decisions = f"sum by (label) (increase(lifelong_predictions_total{{{POPULATION}}}[1d]))"
    decided = (
        f'label_replace({decisions} / on () group_left sum({decisions}), "class", "$1", "label", "(.*)")'
    )
    chosen = "var-model=${model}&var-environment=${environment}&var-class=" + value_of("Class")
    return show_table(
        "Classes now",
        "Estimated share of each class with its interval, the share that the head assumes, and the share of"
        " decisions for it within 24 hours, which a classifier's mistakes bias. A click on a class plots it.",
        [
            Column("Class", label="class", width=110, links=[link_board("Plot", "population", chosen)]),
            *(
                Column(title, of_class(metric), unit="percentunit", decimals=1, width=72)
                for title, metric in (
                    ("Estimate", "estimate"),
                    ("from", "low"),
                    ("to", "high"),
                    ("Assumed", "assumed"),
                )
            ),
            Column("Decided", f"max by (class) ({decided})", unit="percentunit", decimals=1, width=72),
        ],
        Display("none", "No estimate yet.", HALF - 2),
        sort="Estimate",
    )


def _plot_tests() -> list[Panel]:
    """Results of the tests of a cycle, and the gain expected of a swap."""
    p_value = f"clamp_min(min(lifelong_assumption_p_value{{{POPULATION}}}), 1e-12)"
    return [
        plot_series(
            "Evidence of a shift",
            "How strongly all samples since the head came in force, each counted once, speak against the prevalence"
            " that it assumes (natural logarithm of the e-value). At the alarm line the prevalence counts as"
            " shifted. It starts anew with every change of head, policy or calibration set.",
            {
                "evidence": of_population("lifelong_shift_log_e_value"),
                "alarm": of_population("lifelong_shift_log_e_value_alarm"),
            },
            Display(
                "none", "No evidence until a cycle has judged the head that serves.", THIRD, drawn="steps"
            ),
        ).override_by_name("alarm", dashed_style("red")),
        plot_series(
            "Has more changed than the prevalence?",
            "Minus the decimal logarithm of the p-value of 'nothing but the prevalence has changed' in the window of"
            " the last cycle: 2 is a chance of 1 in 100. Above the limit the estimate cannot be trusted, and a cycle"
            " that would swap refuses unless the policy says otherwise.",
            {
                "surprise": f"-log10({p_value})",
                "limit": f"-log10(min(lifelong_assumption_level{{{POPULATION}}}))",
            },
            Display("none", "No test yet.", THIRD, drawn="steps"),
        ).override_by_name("limit", dashed_style("red")),
        draw_band(
            plot_series(
                "Expected gain of a swap",
                "Drop of the expected cost per decision that the last cycle expected of a refitted head, with its"
                " interval, and what the swap could cost at worst on that window."
                " Empty while nothing speaks for a shift. Costs are in the units of the task's cost matrix.",
                {
                    "estimate": of_population("lifelong_expected_gain"),
                    "low": of_population("lifelong_expected_gain_low", aggregation="min"),
                    "high": of_population("lifelong_expected_gain_high"),
                    "worst case": of_population("lifelong_worst_case_cost_increase"),
                },
                Display("none", "No cycle has considered another head.", THIRD, drawn="steps", minimum=None),
            )
        ),
    ]


def _explain() -> list[Panel]:
    """Outcomes of the cycles with their reasons, heads, alerts."""
    return [
        draw_states(
            "Outcome of the last cycle",
            "keep: the head still fits, or a swap is not worth it. swap: a refitted head was published, proposed, or"
            " in mode shadow only reported. refuse: the assumptions do not hold.",
            {"outcome": f"lifelong:population_outcome{{{POPULATION}}}"},
            Display("none", "No cycle yet.", THIRD, MIDDLE, words=OUTCOMES),
        ),
        show_table(
            "Why did it swap, or not?",
            "Reasons of the last cycle in short; the console page of the cycle gives them with their figures, and"
            " lifelong cycles show does, too.",
            [
                Column(
                    "Reason",
                    of_population("lifelong_cycle_last_reason", by="reason"),
                    label="reason",
                    words=REASONS,
                    width=380,
                    links=[link_console("Console", _CONSOLE)],
                )
            ],
            Display("none", "No cycle has judged a window yet.", THIRD, MIDDLE),
        ),
        plot_series(
            "Head version",
            "Version of the head that serves this population. Every step is a swap, a publication or a roll-back; the"
            " audit log names who did it.",
            {"head version": of_population("lifelong_head_version")},
            Display(
                "none",
                "No head serves here.",
                THIRD,
                MIDDLE,
                drawn="steps",
                links=[link_console("Heads", "heads/${model}/${environment}")],
            ),
        ),
        plot_series(
            "Predictions in the window",
            "Predictions that the last cycle looked at, and those it left out because their logits are not finite, all"
            " equal, or of another number of classes. Below the policy's minimum the head is always kept.",
            {
                "predictions": of_population("lifelong_window_samples"),
                "left out": of_population("lifelong_quarantined_predictions"),
            },
            Display("short", "No cycle yet.", HALF, MIDDLE, drawn="steps"),
        ),
        show_table(
            "Firing alerts of this population",
            "What fires now, with a link to its runbook.",
            [
                Column("Severity", firing(POPULATION, "alertname"), words=SEVERITIES, width=90),
                Column("Alert", label="alertname", width=300, links=[link_runbook(value_of("Alert"))]),
            ],
            Display("none", "No alert fires for this population.", HALF, MIDDLE),
            sort="Severity",
        ),
    ]


BOARD = Board(
    "population",
    "Population",
    "One model in one environment: has its prevalence shifted, does the head fit, and why did the last cycle not swap?",
    [*_state(), _plot_prevalence(), _list_classes(), *_plot_tests(), *_explain()],
    variables=[*choose_population(), choose_class()],
    annotations=[mark_swaps(), mark_affected(), mark_changes()],
    since="now-7d",
)
