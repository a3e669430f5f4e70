"""The metrics that a cycle estimates without labels, and whether they reach their acceptance thresholds."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np

from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy.adaptation.reasons import performance_below_acceptance
from lifelong_core.deploy.performance.acceptance import Acceptance, JudgedMetric, PerformanceThreshold
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.design.recommendation.document import RecommendedMetric, label_metrics
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.values.evaluation import class_weights_of
from lifelong_core.metrics import METRICS
from lifelong_core.store import AttachedRecommendation, Store
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import UnavailableError

log = logging.getLogger(__name__)

MOST_ESTIMATES: Final = 45
"""Largest number of metrics: each gives a series for the current head and one for the candidate, and Prometheus advises
against more than a hundred."""
ASSUMPTION_REJECTED: Final = "assumption_rejected"
"""Code of the warning that the assumption test is rejected."""

_WRONG_SIDE: Final[tuple[Acceptance, ...]] = ("missed", "at_risk")

_WITH_COSTS = frozenset({"EC", "NEC", "WCK"})
_NOT_ESTIMATED = frozenset({"NB"})
"""NB counts decisions of its own cut-off, not decisions of the head"""
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
"""For each metric of class 0 in a binary task, the metric of class 1 that is equal to it."""


@dataclass(frozen=True)
class WantedEstimate:
    """A metric to estimate, and its acceptance threshold."""

    key: str
    """within the `estimates` of a PerformanceEstimate, such as TPR[2]"""
    metric: str
    """label of the metric in the recommendation, such as F_beta (beta=1.0)"""
    class_index: int | None = None
    """None: of all classes"""
    threshold: float | None = None
    """the strictest one; None: there is none"""

    @property
    def performance_threshold(self) -> PerformanceThreshold | None:
        """The threshold with its direction, which is that of the metric."""
        if self.threshold is None:
            return None
        acronym = self.key.partition("[")[0]
        return PerformanceThreshold(self.threshold, is_minimum=METRICS[acronym].orientation == "up")

    def judge(self, estimate: PerformanceEstimate) -> Acceptance | None:
        """Whether the threshold is reached; None: there is none, or the metric is undefined."""
        threshold, interval = self.performance_threshold, estimate.estimates.get(self.key)
        return None if threshold is None or interval is None else threshold.judge(interval)

    def to_document(self) -> dict[str, Any]:
        """The metric as JSON values."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(**document)


ALWAYS: Final = (WantedEstimate("AC", "AC"), WantedEstimate("EC", "EC"))
"""Accuracy, and the mean cost per decision by the costs of the head."""


def load_wanted_estimates(
    store: Store, task: str, costs: Floats, *, per_class: bool
) -> tuple[WantedEstimate, ...]:
    """Load the metrics that a cycle estimates: accuracy, expected cost, and the metrics of the recommendation.

    Args:
        store: holds the recommendation.
        task: name of the task.
        costs: of the head that is judged, shape (C, D).
        per_class: also metrics of single classes that have no threshold.
    """
    attached = store.recommendations.current(task)
    if attached is None:
        return ALWAYS

    try:
        return select_estimates(attached, costs, per_class=per_class)
    except UnavailableError as error:
        # A damaged recommendation does not stop the cycle.
        log.warning("%s: only accuracy and expected cost are estimated: %s", attached.name, error)
        return ALWAYS


def keys_of(wanted: Iterable[WantedEstimate]) -> tuple[str, ...]:
    """The different keys, in their order.

    Examples:
        >>> keys_of([*ALWAYS, WantedEstimate("TNR", "TPR", 0), WantedEstimate("TNR", "TNR", 1)])
        ('AC', 'EC', 'TNR')
    """
    return tuple(dict.fromkeys(estimate.key for estimate in wanted))


def judge_acceptance(
    report: AdaptationReport, wanted: Sequence[WantedEstimate], class_names: Sequence[str]
) -> AdaptationReport:
    """Return the report with a reason for estimates of the current head on the wrong side of their thresholds.

    The outcome of the cycle does not depend on it: another head may not help.
    """
    estimate = report.performance
    if estimate is None:
        return report
    is_rejected = any(warning.code == ASSUMPTION_REJECTED for warning in estimate.warnings)
    judged = list(_judge(wanted, estimate, class_names))
    by_acceptance = {
        one: [metric for acceptance, metric in judged if acceptance == one] for one in _WRONG_SIDE
    }
    added = [
        performance_below_acceptance(
            metrics, is_missed=acceptance == "missed", is_assumption_rejected=is_rejected
        )
        for acceptance, metrics in by_acceptance.items()
        if metrics
    ]
    return replace(report, reasons=(*report.reasons, *added))


def _judge(
    wanted: Sequence[WantedEstimate], estimate: PerformanceEstimate, class_names: Sequence[str]
) -> Iterator[tuple[Acceptance, JudgedMetric]]:
    """The metrics that have a threshold and a defined estimate."""
    for wanted_estimate in wanted:
        threshold, acceptance = wanted_estimate.performance_threshold, wanted_estimate.judge(estimate)
        if threshold is not None and acceptance is not None:
            of_class = (
                ""
                if wanted_estimate.class_index is None
                else f" of {class_names[wanted_estimate.class_index]}"
            )
            name = (
                f"{METRICS[wanted_estimate.key.partition('[')[0]].name} ({wanted_estimate.metric}){of_class}"
            )
            yield acceptance, JudgedMetric(name, estimate.estimates[wanted_estimate.key], threshold)


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
    estimates = [
        *ALWAYS,
        *(
            wanted
            for label, metric in label_metrics(attached.recommendation)
            if _is_estimable(metric, costs)
            for wanted in _of_metric(label, metric, attached, classes=costs.shape[0])
        ),
    ]
    distinct = {(one.metric, one.class_index): one for one in estimates}
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
