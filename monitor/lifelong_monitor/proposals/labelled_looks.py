"""What the labelled predictions of a population showed at its recorded cycles, newest first."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.adaptation.retraining import Look, MissedThreshold
from lifelong_core.store import AttachedRecommendation, Cycle, Store
from lifelong_core.store.registry.records import Model, Task
from lifelong_monitor.exporter.status import RealisedMetric
from lifelong_monitor.proposals.cycle_looks import MOST_CYCLES

NEW_LABELS = 30
"""Labels that are recorded between two looks, at least."""


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
    # Takes a moment, and only where it is needed.
    from lifelong_monitor.realised.recommended_metrics import compute_recommended_metrics

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
