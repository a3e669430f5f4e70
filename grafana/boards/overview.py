"""The dashboard of all populations: which one needs a person, whether decisions still fit, what happened."""

from grafana.annotations import mark_affected, mark_swaps
from grafana.dashboard import Board
from grafana.grids import Column, draw_bars, draw_heatmap, draw_states, show_table
from grafana.links import label_of, link_board, link_population, link_runbook, value_of
from grafana.panels import FULL, SIXTH, TALL, THIRD, Display, Panel, show_numbers
from grafana.queries import ANSWERED, BY_POPULATION, firing, of_each
from grafana.variables import choose_top
from grafana.words import ACCEPTANCE, FAULTS, OUTCOMES, SEVERITIES, STATES

_STATE = "lifelong:population_state"
_OURS = 'alertname=~"Lifelong.*"'
_MOST_URGENT = "topk($top, lifelong:population_attention @ end())"
"""The same populations over the whole time range: those that are the most urgent at its end."""
_NAME = "{{model}} in {{environment}}"
_ROW = link_population(value_of("Model"), value_of("Environment"))
_SERIES = link_population(label_of("model"), label_of("environment"))
_POPULATION = (
    Column("Model", label="model", width=150, links=_ROW),
    Column("Environment", label="environment", width=130, links=_ROW),
)
_FINE_OR_NOT = ((None, "green"), (1, "orange"))
_SHIFT = ((None, "green"), (0.1, "yellow"), (0.2, "orange"), (0.4, "red"))


def _estimate(metric: str) -> str:
    return of_each("lifelong_estimated_performance", f'metric="{metric}",class="",head="current"')


def _totals() -> list[Panel]:
    """How many, in one line."""
    return [
        show_numbers(
            "Populations",
            "Pairs of a model and an environment with predictions in the window. The tables show all of them; panels"
            " over time show the most urgent ones.",
            {"populations": f"count({_STATE})"},
            Display("short", "no population", SIXTH),
        ),
        show_numbers(
            "Need a person",
            "Populations in which a person has to decide or to look. Their rows are the first of the table below.",
            {"populations": f"count({_STATE} > 0) or vector(0)"},
            Display("short", "unknown", SIXTH, thresholds=_FINE_OR_NOT),
        ),
        show_numbers(
            "Open proposals",
            "Proposed heads and retrainings that wait for a person: lifelong heads proposals, lifelong proposals list,"
            " or the console.",
            {
                "heads": "sum(max by (model, environment) (lifelong_proposal_open)) or vector(0)",
                "retrainings": "sum(max by (task, environment, reason) (lifelong_retraining_proposals)) or vector(0)",
            },
            Display("short", "unknown", SIXTH, thresholds=_FINE_OR_NOT, text="value_and_name"),
        ),
        show_numbers(
            "Swapped within a day",
            "Populations in which a cycle published a head within 24 hours, by itself or after approval; the table of"
            " events below names them.",
            {
                "populations": f"count({of_each('lifelong_last_swap_timestamp_seconds')} > time() - 86400) or vector(0)"
            },
            Display("short", "unknown", SIXTH, decimals=0),
        ),
        show_numbers(
            "Sick processes",
            "Services and monitors with a fault: down, without database, with a model that cannot be loaded, and so"
            " on. The table of faults names them.",
            {"processes": "count(max by (job, instance) (lifelong:process_fault) > 0) or vector(0)"},
            Display(
                "short",
                "unknown",
                SIXTH,
                thresholds=((None, "green"), (1, "red")),
                links=[link_board("Service", "service")],
            ),
        ),
        show_numbers(
            "Firing alerts",
            "Alerts of this product that fire now, by severity; the table below names them with their runbooks.",
            {
                severity: f'count(ALERTS{{{_OURS},alertstate="firing",severity="{severity}"}}) or vector(0)'
                for severity in ("critical", "warning", "info")
            },
            Display("short", "unknown", SIXTH, thresholds=_FINE_OR_NOT, text="value_and_name"),
        ),
    ]


def _list_populations() -> Panel:
    return show_table(
        "All populations",
        "One row for each population, the most urgent first. Shift: L1 distance, 0 to 2, between the estimated"
        " prevalence and the one that the judged head assumed; its bounds follow from the intervals of the single"
        " classes, so that with many classes the lower one may exceed 0 without a shift. Cost: expected cost per"
        " decision now, without labels, and how much of it the best known head would save. Accuracy: estimated without"
        " labels; acceptance: the worst of all acceptance thresholds of the task. A row links to its dashboards and"
        " to the console.",
        [
            Column("State", _STATE, width=135, words=STATES, links=_ROW),
            *_POPULATION,
            Column(
                "Mode",
                "max by (model, environment, mode) (lifelong_policy_mode == 1)",
                label="mode",
                width=75,
            ),
            Column(
                "Last swap",
                f"(time() - {of_each('lifelong_last_swap_timestamp_seconds')}) / 86400",
                unit="d",
                decimals=1,
                empty="never",
                width=85,
            ),
            Column("Shift", of_each("lifelong_prevalence_shift_l1"), decimals=2, thresholds=_SHIFT, width=65),
            Column("from", of_each("lifelong_prevalence_shift_l1_low"), decimals=2, width=60),
            Column("to", of_each("lifelong_prevalence_shift_l1_high"), decimals=2, width=60),
            Column("Cost", _estimate("EC"), decimals=3, width=75),
            Column("above best", "lifelong:population_excess_cost", decimals=3, width=95),
            Column("Accuracy", _estimate("AC"), unit="percentunit", decimals=1, width=85),
            Column(
                "Acceptance",
                of_each("lifelong_estimated_performance_accepted", aggregation="min"),
                words=ACCEPTANCE,
                width=100,
            ),
            Column(
                "Proposals",
                "lifelong:population_proposals",
                thresholds=((None, "transparent"), (1, "blue")),
                width=85,
            ),
        ],
        Display(
            "none", "No population: does a monitor run, and does Prometheus scrape it?", FULL, height=TALL
        ),
        sort="State",
    )


def _list_events() -> Panel:
    def count(outcome: str) -> str:
        return f'round(lifelong:cycles:increase1d{{outcome="{outcome}"}}) > 0'

    changed = of_each("lifelong_head_activated_timestamp_seconds")
    events = f"(lifelong:cycles:increase1d > 0.5) or ({changed} > time() - 86400)"
    return show_table(
        "What happened within a day",
        "Populations with an event within 24 hours: swaps (published or proposed), refusals and errors of cycles, the"
        " last change of the head by a cycle or a person, and earlier decisions that it affects.",
        [
            Column("Head changed", f"1000 * ({changed} > time() - 86400)", unit="dateTimeFromNow", width=130),
            *_POPULATION,
            Column("Swaps", f"max {BY_POPULATION} ({count('swap')})", width=65),
            Column("Refusals", f"max {BY_POPULATION} ({count('refuse')})", width=75),
            Column("Errors", f"max {BY_POPULATION} ({count('error')})", width=65),
            Column(
                "Affected",
                f"{of_each('lifelong_affected_decisions')} and on (model, environment) ({events})",
                width=80,
            ),
        ],
        Display("none", "Nothing happened within a day."),
        sort="Head changed",
    )


def _list_alerts() -> Panel:
    return show_table(
        "Firing alerts",
        "What fires now, with a link to its runbook, and to the population where the alert has one.",
        [
            Column(
                "Severity",
                firing(_OURS, "alertname, model, environment, instance"),
                words=SEVERITIES,
                width=80,
            ),
            Column("Alert", label="alertname", width=240, links=[link_runbook(value_of("Alert"))]),
            *_POPULATION,
            Column("Instance", label="instance", width=130),
        ],
        Display("none", "No alert fires."),
        sort="Severity",
    )


def _list_faults() -> Panel:
    return show_table(
        "Faults of processes",
        "Services and monitors that are sick, and how; the runbook of the alert says what to do.",
        [
            Column("Process", label="job", width=140),
            Column("Instance", label="instance", width=140),
            Column("Fault", "lifelong:process_fault > 0", label="fault", words=FAULTS, width=320),
        ],
        Display("none", "All processes are well.", THIRD),
    )


BOARD = Board(
    "overview",
    "Overview",
    "All populations: which one needs a person, whether its decisions still fit, and what happened within a day.",
    [
        *_totals(),
        _list_populations(),
        draw_states(
            "Outcomes of cycles",
            "Outcome of the last cycle of the most urgent populations. keep: the head still fits, or a swap is not"
            " worth it. swap: a refitted head was published, proposed, or in mode shadow only reported. refuse: the"
            " assumptions do not hold.",
            {_NAME: f"lifelong:population_outcome and on (model, environment) {_MOST_URGENT}"},
            Display("none", "No cycle yet.", words=OUTCOMES, height=TALL, links=_SERIES),
        ),
        draw_heatmap(
            "Size of the shift over all populations",
            "How many populations had a shift of this size (L1 distance, 0 to 2) at a time. A dark cell that moves"
            " up: many populations shift together, as in an epidemic or after a change of protocol.",
            {"{{le}}": "sum by (le) (lifelong:populations_by_shift_bucket)"},
            Display("none", "No estimate yet.", height=TALL),
            counted="populations",
        ),
        _list_events(),
        _list_alerts(),
        draw_bars(
            "Largest shifts",
            "The populations with the largest distance (L1) between estimated and assumed prevalence now.",
            {_NAME: f"sort_desc(topk(10, max {BY_POPULATION} (lifelong_prevalence_shift_l1{{{ANSWERED}}})))"},
            Display("none", "No estimate yet.", THIRD, thresholds=_SHIFT, links=_SERIES),
        ),
        draw_bars(
            "Populations by state",
            "How many populations are in each state; the first column of the table has the same words.",
            {word: f"count({_STATE} == {value}) or vector(0)" for value, word, _ in STATES},
            Display("short", "No population.", THIRD, thresholds=((None, "blue"),)),
        ),
        _list_faults(),
    ],
    variables=[choose_top()],
    annotations=[mark_swaps(ANSWERED), mark_affected(ANSWERED)],
)
