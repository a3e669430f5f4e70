"""The recommended metrics of a task that can be estimated without labels.

Import this module only where a task has a recommendation: `lifelong_core.design` takes a moment to load.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from lifelong_core.design.recommendation.document import RecommendedMetric, label_metrics
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.values.evaluation import class_weights_of
from lifelong_core.metrics import METRICS
from lifelong_core.store import AttachedRecommendation
from lifelong_core.values.arrays import Floats
from lifelong_monitor.cycle.wanted_estimates import ALWAYS, MOST_ESTIMATES, WantedEstimate

_WITH_COSTS = frozenset({"EC", "NEC", "WCK"})
_NOT_ESTIMATED = frozenset({"NB"})
"""counts decisions of a cut-off of its own, not those of the head"""
_MIRRORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "TPR": "TNR",
        "TNR": "TPR",
        "FPR": "FNR",
        "FNR": "FPR",
        "PPV": "NPV",
        "NPV": "PPV",
        "FDR": "FOR",
        "FOR": "FDR",
        "J": "J",
        "MK": "MK",
        "AUROC": "AUROC",
    }
)
"""Of a binary task: the metric of class 1 that is equal to a metric of class 0."""


def select_estimates(
    attached: AttachedRecommendation, costs: Floats, *, per_class: bool
) -> tuple[WantedEstimate, ...]:
    """Select accuracy, expected cost, and the recommended metrics that can be estimated without labels.

    Metrics with a threshold come first, then those of all classes; at most MOST_ESTIMATES. Left out are metrics of
    probabilities other than AUROC, metrics at a target or a cut-off or for other costs than those of the head, and
    means over classes other than BA. A metric with stated prevalences is estimated at the estimated ones.

    Args:
        attached: the recommendation of the task.
        costs: of the head, shape (C, D).
        per_class: also metrics of single classes that have no threshold.

    Raises:
        UnavailableError: the recommendation cannot be read.
    """
    found = [
        *ALWAYS,
        *(
            wanted
            for label, metric in label_metrics(attached.recommendation)
            if _is_estimable(metric, costs)
            for wanted in _of_metric(label, metric, attached, classes=costs.shape[0])
        ),
    ]
    distinct = {(one.metric, one.class_index): one for one in found}
    kept = [
        one for one in distinct.values() if one.class_index is None or one.threshold is not None or per_class
    ]
    always = {one.metric for one in ALWAYS}
    first = [one for one in kept if one.metric in always]
    others = [one for one in kept if one.metric not in always]
    others.sort(key=lambda one: (one.threshold is None, one.class_index is not None))
    return tuple((first + others)[:MOST_ESTIMATES])


def _is_estimable(metric: RecommendedMetric, costs: Floats) -> bool:
    """Whether decisions (or for AUROC probabilities) of the head under the estimated prevalence give the metric."""
    is_counting = METRICS[metric.metric].family == "counting" and metric.metric not in _NOT_ESTIMATED
    if not is_counting and metric.metric != "AUROC":
        return False
    parameters = dict(metric.parameters)
    # What counts in use is the metric at the estimated prevalences, not at those that were stated beforehand.
    parameters.pop("prevalence", None)
    own_costs = parameters.pop("costs", None)
    if metric.metric in _WITH_COSTS and (own_costs is None or not np.array_equal(own_costs, costs)):
        return False
    return parameters.pop("beta", 1.0) == 1.0 and not parameters


def _of_metric(
    label: str, metric: RecommendedMetric, attached: AttachedRecommendation, *, classes: int
) -> Iterator[WantedEstimate]:
    thresholds = [one for one in attached.thresholds if one.metric == label]
    if not metric.per_class:
        yield WantedEstimate(metric.metric, label, None, _strictest(metric, thresholds))
        return
    weights = class_weights_of(metric, attached.recommendation.fingerprint)
    if metric.metric == "TPR" and metric.target_class is None and weights is None:
        of_mean = [one for one in thresholds if one.class_index is None]
        yield WantedEstimate("BA", label, None, _strictest(metric, of_mean))
    for k in range(classes) if metric.target_class is None else (metric.target_class,):
        key = _key(metric.metric, k, classes)
        own = [
            one
            for one in thresholds
            if (metric.target_class if one.class_index is None else one.class_index) == k
        ]
        if key is not None:
            yield WantedEstimate(key, label, k, _strictest(metric, own))


def _key(acronym: str, class_index: int, classes: int) -> str | None:
    """Key of a metric of one class in `estimates`; None: there is none.

    Examples:
        >>> _key("TPR", 2, 3), _key("TPR", 1, 2), _key("TPR", 0, 2), _key("F_beta", 0, 2)
        ('TPR[2]', 'TPR', 'TNR', None)
    """
    if classes > 2:
        return f"{acronym}[{class_index}]"
    return acronym if class_index == 1 else _MIRRORED.get(acronym)


def _strictest(metric: RecommendedMetric, thresholds: Sequence[AcceptanceThreshold]) -> float | None:
    sign = 1 if METRICS[metric.metric].orientation == "up" else -1
    return max((one.value for one in thresholds), key=lambda value: sign * value, default=None)
