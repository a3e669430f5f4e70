"""The gauges of the performance that a cycle estimated without labels."""

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from lifelong_core.deploy.performance.acceptance import Acceptance
from lifelong_core.deploy.performance.warnings import CODES
from lifelong_monitor.exporter.status import EstimatedFigure, PerformanceFigures, PopulationStatus

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""By the values of the labels that a gauge has beside those of the population."""

Gauge: TypeAlias = tuple[str, tuple[str, ...], Callable[[PopulationStatus], Values]]
"""Meaning, further labels, values."""

Head: TypeAlias = Literal["current", "candidate"]
_ACCEPTED: Final[Mapping[Acceptance, float]] = {"accepted": 1.0, "at_risk": 0.5, "missed": 0.0}


def _estimates(status: PopulationStatus) -> dict[Head, PerformanceFigures]:
    """The estimates of the last cycle by head.

    Current is the head that serves now: after a swap it is the candidate of the cycle. An estimate of a head that is
    neither is not shown.
    """
    if status.cycle is None or status.head is None:
        return {}
    of_cycle = [
        one for one in (status.cycle.performance, status.cycle.candidate_performance) if one is not None
    ]
    serving = next((one for one in of_cycle if one.head_digest == status.head.digest), None)
    candidate = status.cycle.candidate_performance
    found: dict[Head, PerformanceFigures] = {}
    if serving is not None:
        found["current"] = serving
        if candidate is not None and candidate is not serving:
            found["candidate"] = candidate
    return found


def _metrics(status: PopulationStatus, part: Callable[[EstimatedFigure], float]) -> Values:
    """By metric, class and head, where it is defined."""
    return {
        (*_labels(status, figure), head): part(figure)
        for head, estimate in _estimates(status).items()
        for figure in estimate.metrics
        if not math.isnan(part(figure))
    }


def _current(status: PopulationStatus, part: Callable[[EstimatedFigure], float | None]) -> Values:
    """By metric and class, of the current head."""
    estimate = _estimates(status).get("current")
    found = [] if estimate is None else [(figure, part(figure)) for figure in estimate.metrics]
    return {_labels(status, figure): value for figure, value in found if value is not None}


def _labels(status: PopulationStatus, figure: EstimatedFigure) -> tuple[str, str]:
    return figure.metric, "" if figure.class_index is None else status.class_names[figure.class_index]


def _accepted(figure: EstimatedFigure) -> float | None:
    return None if figure.acceptance is None else _ACCEPTED[figure.acceptance]


def _method(status: PopulationStatus) -> Values:
    return {(estimate.method, head): 1.0 for head, estimate in _estimates(status).items()}


def _validated_error(status: PopulationStatus) -> Values:
    return {
        (head,): estimate.validated_error
        for head, estimate in _estimates(status).items()
        if estimate.validated_error is not None
    }


def _warnings(status: PopulationStatus) -> Values:
    """By code and head; 0 where there is none, as an empty panel looks like a broken one."""
    return {
        (code, head): float(estimate.warnings.count(code))
        for head, estimate in _estimates(status).items()
        for code in dict.fromkeys((*CODES, *estimate.warnings))
    }


PERFORMANCE_GAUGES: Final[Mapping[str, Gauge]] = {
    "lifelong_estimated_performance": (
        "Metric of the decisions of a head on the recent predictions, estimated without labels; head: current (the one"
        " that serves now) or candidate (the refitted one that the last cycle considered); class is empty for all"
        " classes.",
        ("metric", "class", "head"),
        lambda status: _metrics(status, lambda figure: figure.value),
    ),
    "lifelong_estimated_performance_low": (
        "Lower bound of the interval of lifelong_estimated_performance.",
        ("metric", "class", "head"),
        lambda status: _metrics(status, lambda figure: figure.low),
    ),
    "lifelong_estimated_performance_high": (
        "Upper bound of the interval of lifelong_estimated_performance.",
        ("metric", "class", "head"),
        lambda status: _metrics(status, lambda figure: figure.high),
    ),
    "lifelong_estimated_performance_threshold": (
        "Acceptance threshold of lifelong_estimated_performance, set with the recommendation of the task.",
        ("metric", "class"),
        lambda status: _current(status, lambda figure: figure.threshold),
    ),
    "lifelong_estimated_performance_accepted": (
        "1 where lifelong_estimated_performance of the current head reaches its acceptance threshold, 0.5 where it does"
        " not but its interval does, 0 where its whole interval is on the wrong side.",
        ("metric", "class"),
        lambda status: _current(status, _accepted),
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
