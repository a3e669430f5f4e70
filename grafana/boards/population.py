"""The dashboard of one population: its prevalence, the evidence of a shift, and why the last cycle did not swap."""

from grafana.annotations import mark_affected, mark_changes, mark_swaps
from grafana.dashboard import Board
from grafana.grids import Column, draw_states, show_table
from grafana.links import link_board, link_console, link_runbook, value_of
from grafana.panels import (
    HALF,
    QUARTER,
    SIXTH,
    THIRD,
    Panel,
    dashed_style,
    draw_band,
    plot_series,
    show_numbers,
    style,
)
from grafana.queries import POPULATION, Query, of_population
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
            [Query(f"lifelong:population_state{{{POPULATION}}}", "state")],
            unit="none",
            empty="not known",
            words=STATES,
            width=SIXTH,
            links=[link_console("Console", _CONSOLE)],
        ),
        show_numbers(
            "Mode",
            "What a cycle that wants another head does. auto: it swaps. propose: it asks a person, who approves in"
            " the console or by lifelong heads approve. shadow: it only reports. pinned: a person holds the head,"
            " and cycles never swap it.",
            [
                Query(f"max by (mode) (lifelong_policy_mode{{{POPULATION}}}) == 1", "{{mode}}"),
                Query(f"max by (model, environment) (lifelong_head_pinned{{{POPULATION}}}) == 1", "pinned"),
            ],
            unit="none",
            empty="not known",
            text="name",
            width=SIXTH,
        ),
        show_numbers(
            "Head",
            "Version of the head that serves now: the environment's own head, or the model's default head while the"
            " environment has none.",
            [of_population("lifelong_head_version", "version")],
            unit="none",
            empty="no head",
            width=SIXTH,
            links=[link_console("Heads", "heads/${model}/${environment}")],
        ),
        show_numbers(
            "Last swap",
            "Days since a cycle last published a head here, automatically or after approval. Affected: decisions"
            " from the change of the prevalence to this swap which its head would make otherwise; lifelong cycles"
            " affected lists them, most costly first.",
            [
                Query(f"(time() - max(lifelong_last_swap_timestamp_seconds{{{POPULATION}}})) / 86400", "ago"),
                of_population("lifelong_affected_decisions", "affected"),
                of_population("lifelong_affected_decisions_share", "share"),
            ],
            unit="short",
            empty="never swapped",
            text="value_and_name",
            width=QUARTER,
        )
        .override_by_name("ago", style(unit="d", decimals=1))
        .override_by_name("share", style(unit="percentunit", decimals=1)),
        show_numbers(
            "Time since the last cycle",
            "A cycle that found nothing new to judge counts. Above two intervals LifelongNoSuccessfulCycle fires.",
            [
                Query(
                    f"time() - max(lifelong_cycle_last_success_timestamp_seconds{{{POPULATION}}})",
                    "since success",
                ),
                Query("max(lifelong_cycle_interval_seconds)", "interval"),
            ],
            unit="s",
            empty="no cycle yet",
            text="value_and_name",
            width=QUARTER,
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
            [
                Query(f"max by (class) (lifelong_prevalence_estimate{{{_CLASS}}})", "estimate"),
                Query(f"min by (class) (lifelong_prevalence_low{{{_CLASS}}})", "low"),
                Query(f"max by (class) (lifelong_prevalence_high{{{_CLASS}}})", "high"),
                Query(f"max by (class) (lifelong_prevalence_assumed{{{_CLASS}}})", "assumed by the head"),
            ],
            unit="percentunit",
            empty="No estimate yet: the first cycle needs enough predictions.",
            width=HALF + SIXTH,
            minimum=0,
            maximum=1,
            drawn="steps",
        )
    )
    return panel.override_by_name("assumed by the head", dashed_style("orange"))


def _list_classes() -> Panel:
    def of_class(metric: str) -> str:
        return f"max by (class) (lifelong_prevalence_{metric}{{{POPULATION}}})"

    rate = f"sum by (label) (rate(lifelong_predictions_total{{{POPULATION}}}[$__rate_interval]))"
    decided = f'label_replace({rate} / on () group_left sum({rate}), "class", "$1", "label", "(.*)")'
    chosen = "var-model=${model}&var-environment=${environment}&var-class=" + value_of("Class")
    return show_table(
        "Classes now",
        "Estimated share of each class with its interval, the share that the head assumes, and the share of"
        " decisions for it, which a classifier's mistakes bias. A click on a class plots it.",
        [
            Column("Class", label="class", width=120, links=[link_board("Plot", "population", chosen)]),
            *(
                Column(title, of_class(metric), unit="percentunit", decimals=1, width=75)
                for title, metric in (
                    ("Estimate", "estimate"),
                    ("from", "low"),
                    ("to", "high"),
                    ("Assumed", "assumed"),
                )
            ),
            Column("Decided", f"max by (class) ({decided})", unit="percentunit", decimals=1, width=75),
        ],
        empty="No estimate yet.",
        sort="Estimate",
        width=SIXTH + SIXTH,
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
            [
                of_population("lifelong_shift_log_e_value", "evidence"),
                of_population("lifelong_shift_log_e_value_alarm", "alarm"),
            ],
            unit="none",
            empty="No evidence until a cycle has judged the head that serves.",
            width=THIRD,
            minimum=0,
            drawn="steps",
        ).override_by_name("alarm", dashed_style("red")),
        plot_series(
            "Has more changed than the prevalence?",
            "Minus the decimal logarithm of the p-value of 'nothing but the prevalence has changed' in the window of"
            " the last cycle: 2 is a chance of 1 in 100. Above the limit the estimate cannot be trusted, and a cycle"
            " that would swap refuses unless the policy says otherwise.",
            [
                Query(f"-log10({p_value})", "surprise"),
                Query(f"-log10(min(lifelong_assumption_level{{{POPULATION}}}))", "limit"),
            ],
            unit="none",
            empty="No test yet.",
            width=THIRD,
            minimum=0,
            drawn="steps",
        ).override_by_name("limit", dashed_style("red")),
        draw_band(
            plot_series(
                "Expected gain of a swap",
                "Drop of the expected cost per decision that the last cycle expected of a refitted head, with its"
                " interval, and what the swap could cost at worst on that window."
                " Empty while nothing speaks for a shift. Costs are in the units of the task's cost matrix.",
                [
                    of_population("lifelong_expected_gain", "estimate"),
                    of_population("lifelong_expected_gain_low", "low", aggregation="min"),
                    of_population("lifelong_expected_gain_high", "high"),
                    of_population("lifelong_worst_case_cost_increase", "worst case"),
                ],
                unit="none",
                empty="No cycle has considered another head.",
                width=THIRD,
                drawn="steps",
            )
        ),
    ]


def _explain() -> list[Panel]:
    """Outcomes of the cycles with their reasons, heads, alerts."""
    return [
        draw_states(
            "Outcome of the last cycle",
            "keep: the head still fits, or a swap is not worth it. swap: a refitted head was published, or proposed."
            " refuse: the assumptions do not hold.",
            [Query(f"lifelong:population_outcome{{{POPULATION}}}", "outcome")],
            OUTCOMES,
            empty="No cycle yet.",
            width=THIRD,
        ),
        show_table(
            "Why did it swap, or not?",
            "Reasons of the last cycle in short; the console page of the cycle gives them with their figures, and"
            " lifelong cycles show does, too.",
            [
                Column(
                    "Reason",
                    f"max by (reason) (lifelong_cycle_last_reason{{{POPULATION}}})",
                    label="reason",
                    words=REASONS,
                    width=380,
                    links=[link_console("Console", _CONSOLE)],
                )
            ],
            empty="No cycle has judged a window yet.",
            width=THIRD,
        ),
        plot_series(
            "Head version",
            "Version of the head that serves this population. Every step is a swap, a publication or a roll-back; the"
            " audit log names who did it.",
            [of_population("lifelong_head_version", "head version")],
            unit="none",
            empty="No head serves here.",
            width=THIRD,
            minimum=0,
            drawn="steps",
            links=[link_console("Heads", "heads/${model}/${environment}")],
        ),
        plot_series(
            "Predictions in the window",
            "Predictions that the last cycle looked at, and those it left out because their logits are not finite, all"
            " equal, or of another number of classes. Below the policy's minimum the head is always kept.",
            [
                of_population("lifelong_window_samples", "predictions"),
                of_population("lifelong_quarantined_predictions", "left out"),
            ],
            unit="short",
            empty="No cycle yet.",
            width=HALF,
            minimum=0,
            drawn="steps",
        ),
        show_table(
            "Firing alerts of this population",
            "What fires now, with a link to its runbook.",
            [
                Column("Severity", label="severity", words=SEVERITIES, width=90),
                Column(
                    "Alert",
                    f'max by (severity, alertname) (ALERTS{{alertstate="firing",{POPULATION}}})',
                    label="alertname",
                    width=300,
                    links=[link_runbook(value_of("Alert"))],
                ),
            ],
            empty="No alert fires for this population.",
            sort="Severity",
            descending=False,
            width=HALF,
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
