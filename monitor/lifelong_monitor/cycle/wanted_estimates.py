"""The metrics that a cycle estimates without labels, and whether they reach their acceptance thresholds."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy.adaptation.reasons import performance_below_acceptance
from lifelong_core.deploy.performance.acceptance import Acceptance, JudgedMetric, PerformanceThreshold
from lifelong_core.deploy.performance.estimate import PerformanceEstimate
from lifelong_core.metrics import METRICS
from lifelong_core.store import Store
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import UnavailableError

log = logging.getLogger(__name__)

MOST_ESTIMATES: Final = 45
"""Largest number of metrics: each gives a series for the current head and one for the candidate, and Prometheus advises
against more than a hundred."""
ASSUMPTION_REJECTED: Final = "assumption_rejected"
"""Code of the warning that the assumption test is rejected."""


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
        threshold, found = self.performance_threshold, estimate.estimates.get(self.key)
        return None if threshold is None or found is None else threshold.judge(found)

    def to_document(self) -> dict[str, Any]:
        """The metric as JSON values."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote."""
        return cls(**document)


_WRONG_SIDE: Final[tuple[Acceptance, ...]] = ("missed", "at_risk")

ALWAYS: Final = (WantedEstimate("AC", "AC"), WantedEstimate("EC", "EC"))
"""Accuracy, and the mean cost per decision by the costs of the head."""


def load_wanted_estimates(
    store: Store, task: str, costs: Floats, *, per_class: bool
) -> tuple[WantedEstimate, ...]:
    """Load the metrics that a cycle estimates: accuracy, expected cost, and those that the task's recommendation names.

    Args:
        store: holds the recommendation.
        task: name of the task.
        costs: of the head that is judged, shape (C, D).
        per_class: also metrics of single classes that have no threshold.
    """
    attached = store.recommendations.current(task)
    if attached is None:
        return ALWAYS
    # Takes a moment, and only where it is needed.
    from lifelong_monitor.cycle.recommended_estimates import select_estimates

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
    return tuple(dict.fromkeys(one.key for one in wanted))


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
    found = {one: [metric for acceptance, metric in judged if acceptance == one] for one in _WRONG_SIDE}
    added = [
        performance_below_acceptance(
            metrics, is_missed=acceptance == "missed", is_assumption_rejected=is_rejected
        )
        for acceptance, metrics in found.items()
        if metrics
    ]
    return replace(report, reasons=(*report.reasons, *added))


def _judge(
    wanted: Sequence[WantedEstimate], estimate: PerformanceEstimate, class_names: Sequence[str]
) -> Iterator[tuple[Acceptance, JudgedMetric]]:
    """The metrics that have a threshold and a defined estimate."""
    for one in wanted:
        threshold, acceptance = one.performance_threshold, one.judge(estimate)
        if threshold is not None and acceptance is not None:
            of_class = "" if one.class_index is None else f" of {class_names[one.class_index]}"
            name = f"{METRICS[one.key.partition('[')[0]].name} ({one.metric}){of_class}"
            yield acceptance, JudgedMetric(name, estimate.estimates[one.key], threshold)
