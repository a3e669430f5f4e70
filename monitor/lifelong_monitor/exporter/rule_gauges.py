"""The gauges of the metric that the decision rule of the serving head keeps or optimises."""

from collections.abc import Callable, Mapping
from typing import Final

from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.entities.performance import RealisedRuleMetric
from lifelong_monitor.exporter.performance_gauges import Gauge, Values
from lifelong_monitor.exporter.status import PopulationStatus

_LABELS: Final = ("metric", "class")


def _expected(
    status: PopulationStatus, part: Callable[[ExpectedCriterion], float | None], *more: str
) -> Values:
    """A figure of the expected criterion of the serving head, by metric and class."""
    if status.head is None:
        return {}
    criterion = _criteria(status).get(status.head.digest)
    value = None if criterion is None else part(criterion)
    if criterion is None or value is None:
        return {}
    return {(criterion.metric, status.head.rule_class, *more): float(value)}


def _criteria(status: PopulationStatus) -> dict[str, ExpectedCriterion]:
    """The expected criteria of the judged head and of the swapped-in head, by digest of the head.

    Rules that minimise a cost have none.
    """
    report = status.report
    if report is None:
        return {}
    criterion = {} if report.criterion is None else {report.head_digest: report.criterion}
    if report.candidate is not None and report.candidate_criterion is not None:
        criterion[report.candidate.digest] = report.candidate_criterion
    return criterion


def _missed_cycles(status: PopulationStatus) -> Values:
    return {(): float(status.inputs.missed_cycles)} if status.inputs and _criteria(status) else {}


def _realised(
    status: PopulationStatus, part: Callable[[RealisedRuleMetric], float | None], *more: str
) -> Values:
    """A figure of the labelled decisions of the serving head, by metric and class."""
    criterion = None if status.performance is None else status.performance.rule_metric
    if criterion is None or status.head is None or criterion.head_version != status.head.version:
        return {}
    value = part(criterion)
    return (
        {}
        if value is None or value != value
        else {(criterion.metric, criterion.class_name, *more): float(value)}
    )


def _reached(criterion: ExpectedCriterion | RealisedRuleMetric) -> float | None:
    if criterion.target is None:
        return None
    return 0.0 if criterion.is_missed else 1.0 if criterion.is_reached else 0.5


RULE_GAUGES: Final[Mapping[str, Gauge]] = {
    "lifelong_decision_rule_expected": (
        "Metric of the decision rule of the head that serves now, as the last cycle expected it in the population,"
        " without labels; class is empty for a metric of all classes. Absent for rules without a searched cut-off.",
        _LABELS,
        lambda status: _expected(status, lambda criterion: criterion.value),
    ),
    "lifelong_decision_rule_expected_low": (
        "Lower bound of the interval of lifelong_decision_rule_expected.",
        _LABELS,
        lambda status: _expected(status, lambda criterion: criterion.low),
    ),
    "lifelong_decision_rule_expected_high": (
        "Upper bound of the interval of lifelong_decision_rule_expected.",
        _LABELS,
        lambda status: _expected(status, lambda criterion: criterion.high),
    ),
    "lifelong_decision_rule_target": (
        "Value that the decision rule demands of its metric: at least, for PPR at most; absent for an optimised one.",
        _LABELS,
        lambda status: _expected(status, lambda criterion: criterion.target),
    ),
    "lifelong_decision_rule_reached": (
        "1 where the metric reaches the target of the decision rule, 0.5 where it does not but its interval does, 0"
        " where its whole interval misses it; by: estimate (lifelong_decision_rule_expected) or labels"
        " (lifelong_decision_rule_realised).",
        (*_LABELS, "by"),
        lambda status: {
            **_expected(status, _reached, "estimate"),
            **_realised(status, _reached, "labels"),
        },
    ),
    "lifelong_decision_rule_reachable": (
        "1 where some cut-off of the calibration set reaches the target in the population, else 0.",
        _LABELS,
        lambda status: _expected(
            status, lambda criterion: None if criterion.target is None else float(criterion.is_reachable)
        ),
    ),
    "lifelong_decision_rule_cut_off": (
        "Probability of the class from which on the head decides for it.",
        _LABELS,
        lambda status: _expected(status, lambda criterion: criterion.cut_off),
    ),
    "lifelong_decision_rule_missed_cycles": (
        "Cycles in a row, up to the last one, that expected the whole interval of the metric to miss the target.",
        (),
        _missed_cycles,
    ),
    "lifelong_decision_rule_realised": (
        "Metric of the decision rule on the labelled decisions of the head that serves now; absent while there are too"
        " few.",
        _LABELS,
        lambda status: _realised(status, lambda criterion: criterion.value.value),
    ),
    "lifelong_decision_rule_realised_low": (
        "Lower bound of the interval of lifelong_decision_rule_realised.",
        _LABELS,
        lambda status: _realised(status, lambda criterion: criterion.value.low),
    ),
    "lifelong_decision_rule_realised_high": (
        "Upper bound of the interval of lifelong_decision_rule_realised.",
        _LABELS,
        lambda status: _realised(status, lambda criterion: criterion.value.high),
    ),
}
