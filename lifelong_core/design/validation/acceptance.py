"""Acceptance thresholds of metrics."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric, label_metrics
from lifelong_core.design.recommendation.wording import format_distinct
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.documents import Frozen
from lifelong_core.values.errors import InvalidInputError

ROUNDING = 1e-12
"""Relative difference between a value and its threshold that sums of shares may make"""


class AcceptanceThreshold(Frozen):
    """The value that one recommended metric has to reach: at least, or at most if lower values are better."""

    metric: str = Field(description="Label of the metric, such as TNR@(TPR=0.95).")
    value: Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
    class_index: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Class of a metric per class; None: the only reported class, or the mean over the classes.",
    )
    by: Literal["estimate", "interval"] = Field(
        default="interval",
        description="Value that has to reach it: the estimate, or the worse end of its interval.",
    )


class AcceptanceOutcome(Frozen):
    """Result of comparing a value with a threshold."""

    threshold: AcceptanceThreshold
    value: float | None = Field(description="The compared number; None if it is undefined or infinite.")
    passed: bool | None = Field(description="None: undecided, which is no pass.")
    why: str


def check_thresholds(recommendation: Recommendation, thresholds: Iterable[AcceptanceThreshold]) -> None:
    """Check that thresholds fit the recommended metrics.

    Raises:
        InvalidInputError: a metric is not recommended, or has no value for such a class; or two thresholds are for the
            same value.
    """
    metrics = dict(label_metrics(recommendation))
    classes = recommendation.fingerprint.number_of_classes or 0
    seen: set[tuple[str, int | None, str]] = set()
    for threshold in thresholds:
        if threshold.metric not in metrics:
            raise InvalidInputError(
                f"{threshold.metric[:80]!r} is not recommended.",
                field="thresholds",
                hint=_suggestion(threshold.metric, list(metrics)),
            )
        _check_class(threshold, metrics[threshold.metric], classes)
        key = (threshold.metric, threshold.class_index, threshold.by)
        if key in seen:
            raise InvalidInputError(
                f"there are two thresholds for {threshold.metric}.", field="thresholds", hint="Give one."
            )
        seen.add(key)


def apply_thresholds(
    thresholds: Sequence[AcceptanceThreshold], values: Sequence[MetricValue]
) -> tuple[AcceptanceOutcome, ...]:
    """Compare values with thresholds that `check_thresholds` accepts.

    Examples:
        >>> value = MetricValue(
        ...     metric="BA", label="BA", value_of="all_classes", estimate=0.9, low=0.8, high=0.95, reason=None,
        ...     level=0.95, method="bca", replicates=1000, orientation="up", range=(0.0, 1.0),
        ... )
        >>> asked = [AcceptanceThreshold(metric="BA", value=0.85, by=by) for by in ("estimate", "interval")]
        >>> [outcome.passed for outcome in apply_thresholds(asked, [value])]
        [True, False]
    """
    return tuple(_outcome(threshold, _value_for(threshold, values)) for threshold in thresholds)


def all_passed(outcomes: Sequence[AcceptanceOutcome]) -> bool | None:
    """Whether all thresholds are reached; None if none is missed but one is undecided, or if there are none.

    Examples:
        >>> all_passed([]) is None
        True
    """
    verdicts = [outcome.passed for outcome in outcomes]
    if False in verdicts:
        return False
    return None if None in verdicts or not verdicts else True


def _value_for(threshold: AcceptanceThreshold, values: Sequence[MetricValue]) -> MetricValue:
    """The value of the class, else the summary of the metric, which comes first."""
    own = [value for value in values if value.label == threshold.metric]
    wanted = threshold.class_index
    return next(value for value in own if wanted is None or value.class_index == wanted)


def _outcome(threshold: AcceptanceThreshold, value: MetricValue) -> AcceptanceOutcome:
    bound = "estimate" if threshold.by == "estimate" else value.worse_end
    number = value.number(bound)
    shown = number if math.isfinite(number) else None
    if value.refusal is not None:
        return AcceptanceOutcome(threshold=threshold, value=shown, passed=None, why=value.refusal)
    what = (
        "the estimate" if threshold.by == "estimate" else f"the {'lower' if bound == 'low' else 'upper'} end"
    )
    if math.isnan(value.number("estimate")):
        return AcceptanceOutcome(
            threshold=threshold, value=None, passed=None, why=f"{value.label} is undefined: {value.reason}."
        )
    if math.isnan(number):
        why = f"{what} of the interval is undefined: {'; '.join(value.notes) or 'no resample has a value'}"
        return AcceptanceOutcome(threshold=threshold, value=None, passed=None, why=f"{why.rstrip('.')}.")
    is_up = value.orientation == "up"
    if math.isclose(number, threshold.value, rel_tol=ROUNDING):
        number = threshold.value
    passed = number >= threshold.value if is_up else number <= threshold.value
    relation = ("reaches" if passed else "is below") if is_up else ("stays within" if passed else "is above")
    of = "" if threshold.by == "estimate" else f" of the {100 * value.level:g} % interval"
    found, wanted = format_distinct(number, threshold.value)
    why = f"{what}{of}, {found}, {relation} {wanted}."
    return AcceptanceOutcome(threshold=threshold, value=shown, passed=passed, why=why[0].upper() + why[1:])


def _check_class(threshold: AcceptanceThreshold, metric: RecommendedMetric, classes: int) -> None:
    wanted = threshold.class_index
    if wanted is None:
        return
    reported = () if not metric.per_class else range(classes)
    if metric.per_class and metric.target_class is not None:
        reported = (metric.target_class,)
    if wanted not in reported:
        among = f"its classes are {', '.join(map(str, reported))}" if reported else "it is one number for all"
        raise InvalidInputError(
            f"{threshold.metric} has no value for class {wanted}: {among}.",
            field="thresholds",
            hint="Name another class, or none.",
        )


def _suggestion(label: str, labels: list[str]) -> str:
    close = difflib.get_close_matches(label, labels, n=3, cutoff=0.4)
    if not labels:
        return "Nothing is recommended."
    return f"Did you mean {' or '.join(close)}?" if close else f"Recommended: {', '.join(labels)}."
