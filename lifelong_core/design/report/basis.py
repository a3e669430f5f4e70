"""Samples, groups, costs and class shares that a value rests on, in short words."""

import math

import numpy as np

from lifelong_core.design.report.words import RESOLUTION, format_count, interval_in_words, number
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.by_group import OF_ALL_SAMPLES, groups_with_value
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.metrics import METRICS, linear_costs, quadratic_costs, zero_one_costs
from lifelong_core.values.arrays import Floats

POOLED = "pooled"


WITH_COSTS = ("EC", "NEC", "WCK")
"""metrics of costs"""


def judged_decisions(result: ValidationResult) -> int:
    """The number of samples whose decisions are judged."""
    return result.decisions.samples


def judged_note(result: ValidationResult) -> str:
    """How many decisions are judged, as "decisions are judged on 1,200"; empty if all are."""
    judged = judged_decisions(result)
    return "" if judged == result.samples else f"decisions are judged on {judged:,}"


def samples_behind(result: ValidationResult, value: MetricValue) -> int:
    """The number of samples that a value rests on."""
    cut_offs = [one.cut_off for one in result.values if one.label == value.label and one.cut_off is not None]
    if cut_offs:
        return cut_offs[0].samples
    is_of_decisions = METRICS[value.metric].family == "counting" and value.metric != "NB"
    return judged_decisions(result) if is_of_decisions else result.samples


def groups_behind(result: ValidationResult, value: MetricValue) -> str:
    """The number of groups that a value is the mean of, as "30 of 35"; "pooled": it is no mean over groups.

    The mean of the classes has the range of its classes.
    """
    classes = [one for one in result.values if one.label == value.label and one.class_index is not None]
    parts = classes if value.class_index is None and classes else [value]
    counts = [found for one in parts if (found := groups_with_value(one.notes)) is not None]
    if not counts:
        return POOLED
    fewest, most, total = min(counts)[0], max(counts)[0], counts[0][1]
    text = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return text if fewest == total else f"{text} of {total:,}"


def pooled_labels(result: ValidationResult) -> list[str]:
    """The metrics that are no means over groups."""
    return [label for label in result.labels if groups_behind(result, result.value(label)) == POOLED]


def aggregation_note(result: ValidationResult) -> str:
    """How the metrics are aggregated; empty if over all samples."""
    if result.aggregation != "by_group":
        return ""
    if pooled_labels(result):
        return "metrics are means over groups, but for those that are pooled"
    return "each metric is a mean over groups"


def aggregation_lines(result: ValidationResult) -> list[str]:
    """Sentences on the column of groups; empty if metrics are those of all samples."""
    if result.aggregation != "by_group":
        return []
    lines: list[str] = []
    if len(pooled_labels(result)) < len(result.labels):
        lines.append(
            "groups: how many groups the mean is over. A group has no value where the metric is undefined, such as the "
            "sensitivity of a patient without a sick image."
        )
    alone = [label for label in pooled_labels(result) if result.value(label).prevalence is None]
    if alone:
        lines.append(f"{', '.join(alone)}: {OF_ALL_SAMPLES[0].lower()}{OF_ALL_SAMPLES[1:]}")
    return lines


def samples_text(result: ValidationResult) -> str:
    """Samples, groups, judged decisions and aggregation, in one line."""
    groups = f" of {result.cases:,} groups" if result.groups else ""
    parts = (
        f"{format_count(result.samples, 'sample')}{groups}",
        judged_note(result),
        aggregation_note(result),
    )
    return "; ".join(filter(None, parts))


def rests_on(result: ValidationResult, value: MetricValue) -> str:
    """The costs and the class shares of a value, as "costs 50:1, prevalence 0.02"; empty if it depends on neither.

    Args:
        result: the result with class shares and the target class.
        value: one of its values, or of its costs in use.
    """
    said: list[str] = []
    positive = positive_class(result)
    if value.metric in WITH_COSTS:
        costs = value.parameters.get("costs")
        said.append(costs_in_words(None if costs is None else np.array(costs, dtype=np.float64), positive))
    if value.prevalence is not None:
        said.append(_shares(value.prevalence, positive, "as stated"))
    elif value.metric in (*WITH_COSTS, "NB") and groups_with_value(value.notes) is not None:
        said.append("class shares of each group")
    elif value.metric in (*WITH_COSTS, "NB") and value.reason is None:
        said.append(_shares(result.prevalence, positive, "as in these data"))
    return ", ".join(said)


def cost_line(result: ValidationResult) -> str | None:
    """The expected cost in use as a sentence, and how the recommended EC differs; None without class shares of use."""
    cost = result.adjusted_expected_cost
    if cost is None:
        return None
    own = rests_on(result, cost.adjusted)
    pooled = ", pooled over the samples" if result.aggregation == "by_group" else ""
    said = interval_in_words(cost.adjusted)
    text = f"At the class shares of use ({own}), a decision costs {said} on average{pooled}."
    recommended = next((value for value in result.values if value.metric == "EC"), None)
    if recommended is None or recommended.estimate is None or cost.adjusted.estimate is None:
        return text
    if math.isclose(recommended.estimate, cost.adjusted.estimate, rel_tol=1e-9, abs_tol=RESOLUTION):
        return f"{text} This is the {recommended.label} above."
    basis = rests_on(result, recommended)
    how = [basis] if basis != own else []
    how += ["a mean over groups"] if groups_with_value(recommended.notes) is not None else []
    return f"{text} The {recommended.label} above is another cost: {', '.join(how) or basis}."


def positive_class(result: ValidationResult) -> int:
    """The target class, else class 1."""
    target = result.recommendation.fingerprint.target_class
    return 1 if target is None else target


def costs_in_words(costs: Floats | None, positive: int = 1) -> str:
    """Costs of two classes as a ratio, missed case to false alarm; costs of more classes as their kind or range.

    Args:
        costs: shape (C, D); None: 0-1 costs of two classes or more.
        positive: the class of the cases, of two.

    Examples:
        >>> costs_in_words(np.array([[0.0, 1.0], [50.0, 0.0]]))
        'costs 50:1'
        >>> costs_in_words(np.array([[0.0, 2.0], [1.0, 0.0]]))
        'costs 1:2'
        >>> costs_in_words(linear_costs(4)), costs_in_words(zero_one_costs(3, 3)), costs_in_words(None)
        ('linear costs', 'equal costs', 'equal costs')
        >>> costs_in_words(np.array([[0.0, 1.0, 2.0], [4.0, 0.0, 1.0], [9.0, 3.0, 0.0]]))
        'costs 0 to 9'
    """
    if costs is None:
        return "equal costs"
    classes = len(costs)
    square = costs[:, :classes]
    more = ", abstaining allowed" if costs.shape[1] > classes else ""
    if classes == 2 and not np.diag(square).any():
        miss, alarm = square[positive, 1 - positive], square[1 - positive, positive]
        return f"costs {_ratio(float(miss), float(alarm))}{more}"
    kinds = {
        "equal costs": zero_one_costs(classes, classes),
        "linear costs": linear_costs(classes),
        "quadratic costs": quadratic_costs(classes),
    }
    for name, kind in kinds.items():
        if square.max() > 0 and np.allclose(square / square.max(), kind / kind.max()):
            return name + more
    return f"costs {costs.min():g} to {costs.max():g}{more}"


def _ratio(miss: float, alarm: float) -> str:
    smaller = min(miss, alarm)
    return f"{miss:g}:{alarm:g}" if smaller <= 0 else f"{miss / smaller:.4g}:{alarm / smaller:.4g}"


def _shares(prevalence: tuple[float, ...], positive: int, origin: str) -> str:
    if len(prevalence) == 2:
        return f"prevalence {float(number(prevalence[positive])):g}"
    if max(prevalence) - min(prevalence) < 1e-9:
        return "equal prevalences"
    return f"prevalences {origin}"
