"""The gauges of the performance that a cycle estimated without labels."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from lifelong_core.deploy.performance.acceptance import Acceptance
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceEstimate
from lifelong_core.deploy.performance.warnings import CODES
from lifelong_monitor.cycle.estimates import WantedEstimate
from lifelong_monitor.exporter.status import PopulationStatus

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""Values of a gauge by its further labels, beside the labels of the population."""

Reader: TypeAlias = Callable[[PopulationStatus], Values]
"""Reads the values of a gauge from a status."""
Gauge: TypeAlias = tuple[str, tuple[str, ...], Reader]
"""Meaning, further labels, values."""

Head: TypeAlias = Literal["current", "candidate"]
_ACCEPTED: Final[Mapping[Acceptance, float]] = {"accepted": 1.0, "at_risk": 0.5, "missed": 0.0}


def _estimates(status: PopulationStatus) -> dict[Head, PerformanceEstimate]:
    """The estimates of the last cycle by head.

    Current is the head that serves now: after a swap it is the candidate of the cycle. An estimate of a head that is
    neither is not shown.
    """
    report, head = status.report, status.head
    if report is None or head is None:
        return {}
    candidate = report.candidate_performance
    of_cycle = [estimate for estimate in (report.performance, candidate) if estimate is not None]
    serving = next((estimate for estimate in of_cycle if estimate.head_digest == head.digest), None)
    estimates: dict[Head, PerformanceEstimate] = {}
    if serving is not None:
        estimates["current"] = serving
        if candidate is not None and candidate is not serving:
            estimates["candidate"] = candidate
    return estimates


def _wanted(
    status: PopulationStatus, estimate: PerformanceEstimate
) -> Iterator[tuple[tuple[str, str], WantedEstimate, EstimatedMetric]]:
    """The metrics that the cycle was asked for and that have an estimate: labels, metric, estimate."""
    for wanted in () if status.inputs is None else status.inputs.wanted:
        if wanted.key in estimate.estimates:
            name = "" if wanted.class_index is None else status.class_names[wanted.class_index]
            yield (wanted.metric, name), wanted, estimate.estimates[wanted.key]


def _metrics(part: Callable[[EstimatedMetric], float]) -> Reader:
    """A figure of each estimate by metric, class and head, where it is defined."""
    return lambda status: {
        (*labels, head): part(metric)
        for head, estimate in _estimates(status).items()
        for labels, _, metric in _wanted(status, estimate)
        if not math.isnan(part(metric))
    }


def _threshold(status: PopulationStatus) -> Values:
    """The thresholds of the current head by metric and class."""
    estimate = _estimates(status).get("current")
    found = () if estimate is None else _wanted(status, estimate)
    return {labels: wanted.threshold for labels, wanted, _ in found if wanted.threshold is not None}


def _accepted(status: PopulationStatus) -> Values:
    """Whether the current head reaches its thresholds, by metric and class."""
    estimate = _estimates(status).get("current")
    if estimate is None:
        return {}
    judged: list[tuple[tuple[str, str], Acceptance | None]]
    judged = [(labels, wanted.judge(estimate)) for labels, wanted, _ in _wanted(status, estimate)]
    return {labels: _ACCEPTED[acceptance] for labels, acceptance in judged if acceptance is not None}


def _method(status: PopulationStatus) -> Values:
    return {(estimate.method, head): 1.0 for head, estimate in _estimates(status).items()}


def _validated_error(status: PopulationStatus) -> Values:
    return {
        (head,): estimate.validated_error
        for head, estimate in _estimates(status).items()
        if estimate.validated_error is not None
    }


def _warnings(status: PopulationStatus) -> Values:
    """Number of warnings by code and head; 0 where there is none, as an empty panel looks like a broken one."""
    return {
        (code, head): float(count)
        for head, estimate in _estimates(status).items()
        for code, count in (dict.fromkeys(CODES, 0) | Counter(one.code for one in estimate.warnings)).items()
    }


PERFORMANCE_GAUGES: Final[Mapping[str, Gauge]] = {
    "lifelong_estimated_performance": (
        "Metric of the decisions of a head on the recent predictions, estimated without labels; head: current (the one"
        " that serves now) or candidate (the refitted one that the last cycle considered); class is empty for all"
        " classes.",
        ("metric", "class", "head"),
        _metrics(lambda metric: metric.value),
    ),
    "lifelong_estimated_performance_low": (
        "Lower bound of the interval of lifelong_estimated_performance.",
        ("metric", "class", "head"),
        _metrics(lambda metric: metric.low),
    ),
    "lifelong_estimated_performance_high": (
        "Upper bound of the interval of lifelong_estimated_performance.",
        ("metric", "class", "head"),
        _metrics(lambda metric: metric.high),
    ),
    "lifelong_estimated_performance_threshold": (
        "Acceptance threshold of lifelong_estimated_performance, set with the recommendation of the task.",
        ("metric", "class"),
        _threshold,
    ),
    "lifelong_estimated_performance_accepted": (
        "1 where lifelong_estimated_performance of the current head reaches its acceptance threshold, 0.5 where it does"
        " not but its interval does, 0 where its whole interval is on the wrong side.",
        ("metric", "class"),
        _accepted,
    ),
    "lifelong_estimated_performance_method": (
        "1 for the method of lifelong_estimated_performance.",
        ("method", "head"),
        _method,
    ),
    "lifelong_estimated_performance_validated_error": (
        "Mean absolute error of the estimated accuracy in windows simulated from the calibration set.",
        ("head",),
        _validated_error,
    ),
    "lifelong_estimated_performance_warnings": (
        "Warnings of lifelong_estimated_performance: limits that its intervals do not include.",
        ("code", "head"),
        _warnings,
    ),
}
