"""Estimated beside realised performance by day and by head version, as pure functions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.labelled.agreement import Agreement, adjust_for_number, agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.performance import METRICS, ComparedPeriod, Estimated, Realised
from lifelong_core.store import LabelledPredictions, logged_at
from lifelong_core.store.engine.clock import midnight
from lifelong_core.store.performance.comparisons import CycleEstimate
from lifelong_core.store.performance.realised import realised_figures
from lifelong_core.store.performance.statements import TITLES
from lifelong_core.values.arrays import Floats, Integers

_DAY = timedelta(days=1)
_Key: TypeAlias = tuple[date, int]
"""UTC day and head version."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The inputs of a comparison."""

    estimates: Sequence[CycleEstimate]
    """the last of each day and head version, oldest first"""
    labelled: LabelledPredictions
    costs_of: Callable[[int], Floats]
    """costs, shape (C, D), of a head version"""
    error_rates: ArrayLike | None
    """shape (C,), largest share of wrong labels of each class; None: no label is wrong"""
    confidence: float
    """nominal coverage of the intervals"""

    def rows_by_day(self) -> dict[_Key, Integers]:
        """Indices of the labelled predictions by day and head version."""
        rows_of: dict[_Key, list[int]] = {}
        versions = self.labelled.head_versions.tolist()
        for row, (identifier, version) in enumerate(zip(self.labelled.ids, versions, strict=True)):
            rows_of.setdefault((logged_at(identifier).date(), version), []).append(row)
        return {key: np.array(rows) for key, rows in rows_of.items()}

    def realised(self, rows: Integers | None, head_version: int) -> Realised | None:
        """Performance of the labelled predictions of one head version."""
        if rows is None:
            return None
        return realised_figures(
            self.labelled,
            rows,
            self.costs_of(head_version),
            error_rates=self.error_rates,
            confidence=self.confidence,
        )


def compare_days(evidence: Evidence) -> tuple[ComparedPeriod, ...]:
    """Compare by UTC day and head version, oldest first; days with neither estimate nor label are left out.

    The p-values of a metric are corrected for the number of days (Holm 1979).
    """
    estimates = {
        (estimate.day, estimate.head_version): _estimated(estimate) for estimate in evidence.estimates
    }
    rows = evidence.rows_by_day()
    days = [
        _compare(
            evidence,
            midnight(day),
            midnight(day) + _DAY,
            head_version,
            estimates.get((day, head_version)),
            evidence.realised(rows.get((day, head_version)), head_version),
        )
        for day, head_version in sorted({*estimates, *rows})
    ]
    return tuple(_adjust(days))


def compare_heads(evidence: Evidence, days: Sequence[ComparedPeriod]) -> tuple[ComparedPeriod, ...]:
    """Compare by head version over all of its days, in order of their last day, on one day of their last estimate.

    The estimate is the mean over the days with labels, weighted by their number of labels; so are the bounds, because
    the estimates of days depend on each other. Only labelled predictions of days with an estimate count. Without such
    a day the last estimate stands alone.
    """
    rows = evidence.rows_by_day()
    by_head: dict[int, list[ComparedPeriod]] = {}
    for day in days:
        by_head.setdefault(day.head_version, []).append(day)
    due: dict[int, datetime] = {}
    for estimate in evidence.estimates:
        due[estimate.head_version] = max(estimate.due_at, due.get(estimate.head_version, estimate.due_at))
    periods: list[ComparedPeriod] = []
    for head_version, own in sorted(
        by_head.items(), key=lambda item: (item[1][-1].since, due.get(item[0], item[1][-1].since))
    ):
        both = [day for day in own if day.estimated is not None and day.realised is not None]
        estimated = [day.estimated for day in own if day.estimated is not None]
        counted = np.concatenate([rows[day.since.date(), head_version] for day in both]) if both else None
        periods.append(
            _compare(
                evidence,
                own[0].since,
                own[-1].until,
                head_version,
                _mean_estimate(both) if both else estimated[-1] if estimated else None,
                evidence.realised(counted, head_version),
            )
        )
    return tuple(periods)


def _compare(
    evidence: Evidence,
    since: datetime,
    until: datetime,
    head_version: int,
    estimated: Estimated | None,
    realised: Realised | None,
) -> ComparedPeriod:
    found: Mapping[str, Agreement] = {}
    if estimated is not None and realised is not None:
        found = {
            name: agreement(
                estimated.metrics[name],
                realised.metrics[name],
                labelled=realised.samples,
                name=TITLES[name],
                confidence=evidence.confidence,
            )
            for name in METRICS
            if name in estimated.metrics
        }
    return ComparedPeriod(since, until, head_version, estimated, realised, found)


def _adjust(days: Iterable[ComparedPeriod]) -> list[ComparedPeriod]:
    """Judge the days together, each metric by itself."""
    adjusted = list(days)
    for name in METRICS:
        places = [place for place, day in enumerate(adjusted) if name in day.agreement]
        judged = adjust_for_number([adjusted[place].agreement[name] for place in places])
        for place, one in zip(places, judged, strict=True):
            day = adjusted[place]
            adjusted[place] = replace(day, agreement={**day.agreement, name: one})
    return adjusted


def _mean_estimate(days: Sequence[ComparedPeriod]) -> Estimated:
    """Mean of the estimates of days with labels, weighted by their number, with the facts of the last one."""
    pairs = [
        (day.estimated, day.realised.samples)
        for day in days
        if day.estimated is not None and day.realised is not None
    ]
    weights = np.array([samples for _, samples in pairs], dtype=np.float64)
    metrics: dict[str, EstimatedMetric] = {}
    for name in METRICS:
        if all(name in estimated.metrics for estimated, _ in pairs):
            values = np.array([estimated.metrics[name] for estimated, _ in pairs])
            metrics[name] = EstimatedMetric(*(weights @ values / weights.sum()).tolist())
    return replace(pairs[-1][0], metrics=metrics)


def _estimated(cycle_estimate: CycleEstimate) -> Estimated:
    estimate = cycle_estimate.estimate
    return Estimated(
        cycle=cycle_estimate.cycle_id,
        made_at=cycle_estimate.due_at,
        method=estimate.method,
        samples=estimate.samples,
        metrics={name: estimate.estimates[name] for name in METRICS if name in estimate.estimates},
        warnings=tuple(warning.text for warning in estimate.warnings),
    )
