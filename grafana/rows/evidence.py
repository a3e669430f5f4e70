"""The row about the tests of a cycle and the gain of a swap."""

from grafana.panels import HALF, POPULATION, Query, dashed_style, plot_series, query_population
from grafana.sdk import timeseries


def build_panels() -> list[timeseries.Panel]:
    """Results of the tests of a cycle, and the gain expected of a swap."""
    return [
        plot_series(
            "Evidence of a shift",
            "How strongly all samples since the head came in force, each counted once, speak against the prevalence"
            " that it assumes (natural logarithm of the e-value). At the alarm line the prevalence counts as shifted;"
            " while it stays in the tolerated zone that happens once in 20 years of hourly cycles. It starts anew"
            " with every change of head, policy or calibration set.",
            [
                query_population("lifelong_shift_log_e_value", "evidence"),
                query_population("lifelong_shift_log_e_value_alarm", "alarm"),
            ],
            unit="none",
            width=HALF,
            minimum=0,
            drawn="steps",
        ).override_by_name("alarm", dashed_style("red")),
        plot_series(
            "Has more changed than the prevalence?",
            "Minus the decimal logarithm of the p-value of 'nothing but the prevalence has changed' in the window of"
            " the last cycle: 2 is a chance of 1 in 100. Above the limit the estimate cannot be trusted, and a cycle"
            " that would swap refuses unless the policy says otherwise.",
            [
                Query(
                    f"-log10(clamp_min(min by (model, environment) (lifelong_assumption_p_value{{{POPULATION}}}),"
                    " 1e-12))",
                    "surprise",
                ),
                Query(
                    f"-log10(min by (model, environment) (lifelong_assumption_level{{{POPULATION}}}))",
                    "limit",
                ),
            ],
            unit="none",
            width=HALF,
            minimum=0,
            drawn="steps",
        ).override_by_name("limit", dashed_style("red")),
        plot_series(
            "Expected gain in cost",
            "Drop of the expected cost per decision that the last cycle expected of a refitted head, with its"
            " interval, and what the swap could cost at worst on that window. Empty while nothing speaks for a shift."
            " Costs are in the units of the task's cost matrix.",
            [
                query_population("lifelong_expected_gain", "gain"),
                query_population("lifelong_expected_gain_low", "low", aggregation="min"),
                query_population("lifelong_expected_gain_high", "high"),
                query_population("lifelong_worst_case_cost_increase", "worst-case cost increase"),
            ],
            unit="none",
            width=HALF,
            drawn="steps",
        ),
        plot_series(
            "Expected gain in probabilities",
            "Drop of the expected log loss per prediction (nats) that the last cycle expected of a refitted head,"
            " with its interval: how much better its probabilities fit the estimated prevalence. 0.7 is the loss of"
            " guessing between two classes. A large enough gain is worth a swap even where the decisions cost about"
            " the same.",
            [
                query_population("lifelong_expected_probability_gain", "gain"),
                query_population("lifelong_expected_probability_gain_low", "low", aggregation="min"),
                query_population("lifelong_expected_probability_gain_high", "high"),
            ],
            unit="none",
            width=HALF,
            drawn="steps",
        ),
    ]
