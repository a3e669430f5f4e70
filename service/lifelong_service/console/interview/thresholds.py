"""The form of acceptance thresholds: one optional value for each recommended metric."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_service.console.interview.inputs import number
from lifelong_service.console.interview.result_views import format_range

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation, RecommendedMetric
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

ESTIMATE = "estimate"

MOST_TO_PICK = 100
"""Largest number of classes for which a threshold can name a class; with more, thresholds apply to the mean."""


def threshold_rows(
    recommendation: "Recommendation",
    labels: Sequence[str],
    typed: Mapping[str, Any] | None = None,
    error: LifelongError | None = None,
) -> list[dict[str, Any]]:
    """Return one row for each metric, with the typed values.

    Args:
        recommendation: the recommendation.
        labels: the names of the classes.
        typed: the sent form.
        error: the error in the form.
    """
    from lifelong_core.design.recommendation.wording import THRESHOLD_RELATIONS, view_metrics

    rows: list[dict[str, Any]] = []
    known = {} if typed is None else typed
    for index, view in enumerate(view_metrics(recommendation, labels)):
        name = f"threshold-{index}"
        rows.append(
            {
                "label": view.label,
                "name": name,
                "by": f"{name}-by",
                "of": f"{name}-class",
                "classes": labels if _can_pick(view.metric, labels) else (),
                "indices": {str(index) for index in range(len(labels))},
                "chosen_class": known.get(f"{name}-class", ""),
                "relation": THRESHOLD_RELATIONS[view.card.orientation],
                "range": format_range(view.card.range),
                "text": known.get(name, ""),
                "is_estimate": known.get(f"{name}-by") == ESTIMATE,
                "is_wrong": error is not None and error.field == name,
            }
        )
    return rows


def prefilled(
    recommendation: "Recommendation", labels: Sequence[str], thresholds: "Sequence[AcceptanceThreshold]"
) -> dict[str, str]:
    """Return the values of the form for thresholds in force; of several of one metric, the first."""
    found: dict[str, str] = {}
    for row in threshold_rows(recommendation, labels):
        for threshold in thresholds:
            if threshold.metric == row["label"] and row["name"] not in found:
                found[row["name"]] = repr(threshold.value)
                found[row["by"]] = threshold.by
                found[row["of"]] = "" if threshold.class_index is None else str(threshold.class_index)
    return found


def _can_pick(metric: "RecommendedMetric", labels: Sequence[str]) -> bool:
    return metric.per_class and metric.target_class is None and len(labels) <= MOST_TO_PICK


def thresholds_of(
    recommendation: "Recommendation", labels: Sequence[str], form: Mapping[str, Any]
) -> "tuple[AcceptanceThreshold, ...]":
    """Return the thresholds in a form.

    Raises:
        InvalidInputError: a value is no number; `field` names its input.
    """
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold, check_thresholds

    found: list[AcceptanceThreshold] = []
    for row in threshold_rows(recommendation, labels, form):
        text, index = str(row["text"]).strip(), str(row["chosen_class"])
        if not text:
            continue
        value = number(text, field=row["name"], what=f"the threshold of {row['label']}")
        if not abs(value) <= LARGEST_NUMBER:
            raise InvalidInputError(f"the threshold of {row['label']} is too large.", field=row["name"])
        threshold = AcceptanceThreshold(
            metric=row["label"],
            value=value,
            by="estimate" if row["is_estimate"] else "interval",
            class_index=int(index) if index in row["indices"] else None,
        )
        found.append(threshold)
    check_thresholds(recommendation, found)
    return tuple(found)
