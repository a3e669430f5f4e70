"""The row about realised performance: the decisions against the labels that have arrived."""

from grafana.panels import POPULATION, THIRD, Query, plot_series, query_population
from grafana.sdk import timeseries


def build_panels() -> list[timeseries.Panel]:
    """Accuracy, cost and number of labels; then the metrics that the recommendation of the task names."""
    return [
        plot_series(
            "Realised accuracy",
            "Share of correct decisions, as they were made, among the newest predictions with a known true"
            " class. Labels come late and often not for all cases, so compare it with the number of labels.",
            [query_population("lifelong_realised_accuracy", "accuracy")],
            unit="percentunit",
            width=THIRD,
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Realised expected cost",
            "Mean cost per decision in the units of the task's cost matrix, over the same predictions. This is"
            " what a swap is meant to lower.",
            [query_population("lifelong_realised_expected_cost", "cost per decision")],
            unit="none",
            width=THIRD,
            drawn="steps",
        ),
        plot_series(
            "Labelled predictions",
            "Predictions with a known true class behind accuracy, cost and the metrics below.",
            [query_population("lifelong_labelled_samples", "labels")],
            unit="short",
            width=THIRD,
            minimum=0,
            drawn="steps",
        ),
        plot_series(
            "Agreement of labels and estimate",
            "1: the labelled predictions of the newest head agree with its estimate without labels (AC: accuracy,"
            " EC: expected cost). 0: they disagree by more than their intervals explain; LifelongEstimateContradicted"
            " fires. No line: too few labels to tell.",
            [Query(f"min by (metric) (lifelong_performance_agreement{{{POPULATION}}})", "{{metric}}")],
            unit="none",
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Checks of the labelled predictions",
            "p-values. Calibration: below its level (0.01) the answered probabilities are not calibrated. Selection:"
            " below its level the labelled predictions differ from the others, so labels tell little about all of"
            " them.",
            [
                query_population("lifelong_calibration_drift_p_value", "calibration"),
                query_population("lifelong_label_selection_p_value", "selection"),
            ],
            unit="none",
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
        plot_series(
            "Recommended metrics",
            "The metrics that the recommendation of the task names, of the decisions and probabilities as they were"
            " answered, over the same predictions; without a class: over all classes. The monitor's log names those"
            " that it leaves out. Empty for a task without a recommendation.",
            [
                Query(
                    f'max by (metric, class) (lifelong_realised_metric{{{POPULATION},prevalence="realised"}})',
                    "{{metric}} {{class}}",
                )
            ],
            unit="none",
            drawn="steps",
        ),
        _plot_class_mixes(),
        plot_series(
            "Acceptance thresholds",
            "1: the metric reaches the threshold that was set with the recommendation. 0: its whole confidence"
            " interval misses it, so that it is hardly chance; LifelongThresholdMissed fires, except at the stated"
            " prevalences. No line: too few labels to tell, or no threshold.",
            [
                Query(
                    f"min by (metric, class, prevalence) (lifelong_realised_metric_accepted{{{POPULATION}}})",
                    "{{metric}} {{class}} {{prevalence}}",
                )
            ],
            unit="none",
            minimum=0,
            maximum=1,
            drawn="steps",
        ),
    ]


def _plot_class_mixes() -> timeseries.Panel:
    stated = f'lifelong_realised_metric{{{POPULATION},prevalence="stated"}}'
    return plot_series(
        "Expected cost at the stated, estimated and realised prevalences",
        "The same labelled predictions at three class mixes: stated in the recommendation, estimated without labels by"
        " the last cycle, and that of the labels. The stated figure hides a shift of the prevalence, so no alert uses"
        " it. Empty where the recommendation states no prevalences.",
        [
            Query(
                f"max by (metric, prevalence) (lifelong_realised_metric{{{POPULATION}}}"
                f" and on (model, environment, metric) {stated})",
                "{{metric}}, {{prevalence}}",
            )
        ],
        unit="none",
        drawn="steps",
    )
