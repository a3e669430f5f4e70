"""Evidence for a retraining, newest first: what recorded cycles and labelled predictions of a population show."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

from lifelong_core.deploy import PostProcessingHead, PrevalenceEstimate
from lifelong_core.deploy.adaptation.retraining import (
    ClassPerformance,
    Look,
    MissedThreshold,
    class_performances,
)
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import AttachedRecommendation, Cycle, Store
from lifelong_core.values.errors import LifelongError
from lifelong_monitor.realised.recommended_metrics import compute_recommended_metrics
from lifelong_monitor.realised.records import RealisedMetric

MOST_CYCLES = 1000
"""Cycles that are looked back over."""
CYCLES_AT_ONCE = 20
"""Recorded cycles that are in memory at once; their reports are long."""

ASSUMPTION = "assumption_p_value"
"""Label of the figure that a refusal misses: the p-value of "only the prevalence has changed"."""

Estimable: TypeAlias = Literal["AC", "EC"]
ESTIMABLE: tuple[Estimable, ...] = get_args(Estimable)
"""Metrics whose expected value follows from the estimated prevalence: means over the classes, weighted by it."""
Performances: TypeAlias = Mapping[Estimable, ClassPerformance]
_KEPT = 100
"""Heads whose performances are in memory."""

NEW_LABELS = 30
"""Labels that are recorded between two looks, at least."""


@dataclass(frozen=True)
class PastCycle:
    """A recorded cycle, and how many predictions came after its window."""

    cycle: Cycle
    later: int

    @property
    def assumption_test(self) -> dict[str, Any] | None:
        """The test that only the prevalence has changed; None: the window was too small, or could not be judged."""
        return self.cycle.report.get("assumption_test")

    @property
    def estimate(self) -> PrevalenceEstimate | None:
        """The estimated prevalence; None: there is none that can be read."""
        try:
            return PrevalenceEstimate.from_document(self.cycle.report["prevalence"])
        except (LifelongError, LookupError, TypeError):
            return None

    def look(self, missed: tuple[MissedThreshold, ...] | None, *, is_fine: bool = False) -> Look:
        """The look of this cycle; its window begins at the last change of the prevalence."""
        estimate = self.cycle.report.get("prevalence") or {}
        span = int(estimate.get("n", self.cycle.window_samples))
        return Look(str(self.cycle.id), self.cycle.finished_at, self.later, span, missed, is_fine=is_fine)


def past_cycles(store: Store, newest: Cycle) -> Iterator[PastCycle]:
    """Yield a cycle and the cycles before it, newest first; they are read as they are needed."""
    later, newer = 0, newest
    for cycle in islice(_backwards(store, newest), MOST_CYCLES):
        if cycle is not newest:
            later += _new_samples(store, newer, cycle)
        yield PastCycle(cycle, later)
        newer = cycle


def refusal_looks(cycles: Iterator[PastCycle]) -> Iterator[Look]:
    """Yield whether more than the prevalence has changed; windows that are too small to tell cannot tell.

    A test that cannot keep its level proves nothing when it rejects.
    """
    for past in cycles:
        test = past.assumption_test
        if test is None:
            yield past.look(None)
        elif not test["rejected"]:
            yield past.look((), is_fine=True)
        elif not test["reliable"]:
            yield past.look(None)
        else:
            figure = MissedThreshold(ASSUMPTION, None, test["p_value"], None, None, test["level"])
            yield past.look((figure,))


def performance_looks(
    cycles: Iterator[PastCycle],
    thresholds: Mapping[Estimable, float],
    performances_of: Callable[[Cycle], Performances | None],
) -> Iterator[Look]:
    """Yield whether the expected performance under the estimated prevalence misses its thresholds.

    A cycle cannot tell where more than the prevalence has changed, or where it selects another head: that comes first.

    Args:
        cycles: newest first.
        thresholds: by metric: AC at least, EC at most so large.
        performances_of: of the head that a cycle judged; None: not known.
    """
    for past in cycles:
        test, estimate = past.assumption_test, past.estimate
        is_judged = test is not None and not test["rejected"] and past.cycle.outcome != "swap"
        performances = performances_of(past.cycle) if is_judged else None
        yield (
            past.look(None)
            if estimate is None or performances is None
            else _compare(past, estimate, thresholds, performances)
        )


def estimable_thresholds(attached: AttachedRecommendation) -> dict[Estimable, float]:
    """The strictest threshold of each metric whose expected value can be estimated."""
    thresholds: dict[Estimable, float] = {}
    for metric in ESTIMABLE:
        values = [threshold.value for threshold in attached.thresholds if threshold.metric == metric]
        if values:
            thresholds[metric] = max(values) if metric == "AC" else min(values)
    return thresholds


class HeadPerformances:
    """Computes the performance per class of the heads that cycles judged; keeps the newest few."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[int, int, int], Performances | None] = {}

    def of_cycle(self, model: Model, cycle: Cycle) -> Performances | None:
        """The performances on the calibration set of the cycle; None: head or calibration set cannot be read."""
        key = model.id, cycle.head_version, int(cycle.report["inputs"]["calibration_set"])
        if key not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._compute(model, cycle.head_version, key[-1])
        return self._kept[key]

    def _compute(self, model: Model, version: int, calibration_set_id: int) -> Performances | None:
        try:
            head = self._store.heads.get(model.reference, version).head
            calibration = self._store.calibration_sets.load(calibration_set_id)
            return class_performances(calibration, head)
        except LifelongError:
            return None


def _compare(
    past: PastCycle,
    estimate: PrevalenceEstimate,
    thresholds: Mapping[Estimable, float],
    performances: Performances,
) -> Look:
    missed, reached = list[MissedThreshold](), list[bool]()
    for metric, threshold in thresholds.items():
        expected = performances[metric].expected(estimate)
        if expected is None:
            return past.look(None)
        is_up = metric == "AC"
        reached.append(expected.value >= threshold if is_up else expected.value <= threshold)
        if expected.high < threshold if is_up else expected.low > threshold:
            missed.append(
                MissedThreshold(metric, None, expected.value, expected.low, expected.high, threshold)
            )
    return past.look(tuple(missed), is_fine=all(reached))


def _backwards(store: Store, newest: Cycle) -> Iterator[Cycle]:
    yield newest
    last = newest
    while some := store.cycles.list(newest.model_id, newest.environment, CYCLES_AT_ONCE, before=last):
        yield from some
        last = some[-1]


def _new_samples(store: Store, newer: Cycle, older: Cycle) -> int:
    """Number of predictions between two successive cycles; the newer one mostly counted them."""
    inputs: dict[str, Any] = newer.report.get("inputs") or {}
    base: dict[str, Any] = inputs.get("base") or {}
    if base.get("cycle") == str(older.id):
        return int(inputs["new_samples"])
    place = newer.model_id, newer.environment
    return store.predictions.count_between(*place, older.log_position, newer.log_position)


def labelled_looks(
    store: Store, task: Task, model: Model, newest: Cycle, attached: AttachedRecommendation, *, limit: int
) -> Iterator[Look]:
    """Yield whether the realised performance, as it was known at a cycle, misses its thresholds.

    Each look takes the newest labelled predictions, as the realised metrics of the monitor do. Between two looks,
    NEW_LABELS labels are recorded or corrected. Nothing is yielded where no label is newer than the previous cycle.

    Args:
        store: with labels and cycles.
        task: of the model.
        model: of the population.
        newest: cycle of the population.
        attached: the recommendation in force.
        limit: largest number of labelled predictions of a look; the newest count.
    """
    place = model.id, newest.environment
    recorded = store.labels.recorded_times(*place, limit=limit)
    if not recorded:
        return
    moments = {newest.id: newest.finished_at} | store.cycles.finished(*place, limit=MOST_CYCLES)
    known = [bisect_right(recorded, at) for at in moments.values()]
    if not known[0] or known[1:2] == known[:1]:
        return
    last: int | None = None
    for (cycle_id, at), labels in zip(moments.items(), known, strict=True):
        if last is not None and last - labels < NEW_LABELS:
            continue
        if not labels:
            return
        last = labels
        values = _values_at(store, task, model, newest.environment, attached, at, limit=limit)
        yield _look(str(cycle_id), at, values, later=known[0] - labels)


def _values_at(
    store: Store,
    task: Task,
    model: Model,
    environment: str,
    attached: AttachedRecommendation,
    at: datetime,
    *,
    limit: int,
) -> Sequence[RealisedMetric]:
    """The metrics with a threshold from the labels that were known at a time."""

    def head_of(version: int) -> PostProcessingHead:
        return store.heads.get(model.reference, version).head

    classes = len(task.class_names)
    labelled = store.labels.newest_labelled(
        model.id, environment, limit=limit, classes=classes, recorded_by=at
    )
    if labelled.labels.size == 0:
        return ()
    found = compute_recommended_metrics(
        attached, labelled, head_of, classes=classes, only_with_threshold=True
    )
    return [value for value in found.values if value.threshold is not None]


def _look(cycle: str, at: datetime, values: Sequence[RealisedMetric], *, later: int) -> Look:
    judged = [value for value in values if value.accepted is not None]
    missed = tuple(_missed(value) for value in judged if not value.accepted)
    is_known = bool(judged)
    return Look(cycle, at, later, NEW_LABELS, missed if is_known else None, is_fine=is_known and not missed)


def _missed(value: RealisedMetric) -> MissedThreshold:
    threshold = value.threshold if value.threshold is not None else value.estimate
    return MissedThreshold(value.label, value.class_index, value.estimate, value.low, value.high, threshold)
