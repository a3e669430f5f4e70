"""The panels about quality: how good the decisions were, by the metrics that fit the task."""

from grafana.panels import POPULATION, THIRD, Query, lines, steps
from grafana.sdk import timeseries


def realised() -> list[timeseries.Panel]:
    """How good the decisions were, as far as labels tell."""
    accuracy = lines(
        "Realised accuracy",
        "Share of correct decisions, as they were made, among the newest predictions with a known true"
        " class. Labels come late and often not for all cases, so compare it with the number of labels.",
        [Query(f"max by (model, environment) (lifelong_realised_accuracy{{{POPULATION}}})", "accuracy")],
        unit="percentunit",
        width=THIRD,
        minimum=0,
        maximum=1,
    )
    cost = lines(
        "Realised expected cost",
        "Mean cost per decision in the units of the task's cost matrix, over the same predictions. This is"
        " what a swap is meant to lower.",
        [
            Query(
                f"max by (model, environment) (lifelong_realised_expected_cost{{{POPULATION}}})",
                "cost per decision",
            )
        ],
        unit="none",
        width=THIRD,
    )
    labels = lines(
        "Labelled predictions",
        "Predictions with a known true class behind accuracy, cost and the metrics below.",
        [Query(f"max by (model, environment) (lifelong_labelled_samples{{{POPULATION}}})", "labels")],
        unit="short",
        width=THIRD,
        minimum=0,
    )
    return [steps(accuracy), steps(cost), steps(labels), *recommended()]


def recommended() -> list[timeseries.Panel]:
    """The metrics that the task's recommendation names, and its acceptance thresholds."""
    metrics = lines(
        "Recommended metrics",
        "The metrics that the recommendation of the task names, of the decisions and probabilities as they were"
        " answered, over the same predictions; without a class: over all classes. The monitor's log names those that it"
        " leaves out. Empty for a task without a recommendation.",
        [Query(f"max by (metric, class) (lifelong_realised_metric{{{POPULATION}}})", "{{metric}} {{class}}")],
        unit="none",
    )
    accepted = lines(
        "Acceptance thresholds",
        "1: the metric reaches the threshold that was set with the recommendation. 0: its whole confidence interval"
        " misses it, so that it is hardly chance; LifelongThresholdMissed fires. No line: too few labels to tell, or no"
        " threshold.",
        [
            Query(
                f"min by (metric, class) (lifelong_realised_metric_accepted{{{POPULATION}}})",
                "{{metric}} {{class}}",
            )
        ],
        unit="none",
        minimum=0,
        maximum=1,
    )
    return [steps(metrics), steps(accepted)]
