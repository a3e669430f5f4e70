"""Realised performance: how good the answers were, where labels have come in."""

import hashlib
from dataclasses import dataclass

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.errors import LifelongError
from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost
from lifelong_core.store import AttachedRecommendation, LabelledPredictions, Store
from lifelong_core.store.registry.records import Model, Task
from lifelong_monitor.exporter.status import (
    LeftOutMetric,
    LeftOutPredictions,
    RealisedPerformance,
    RecommendedMetrics,
)

_UNFIT = "count nowhere: they have another number of logits than the task has classes"


@dataclass(frozen=True)
class _Known:
    """What was computed last for a population."""

    rests_on: str
    metrics: RecommendedMetrics


class RealisedPerformances:
    """Realised performance of populations; what takes time is computed only where something has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[int, str], _Known] = {}

    def of(self, task: Task, model: Model, environment: str, *, limit: int) -> RealisedPerformance | None:
        """Accuracy, expected cost and what the task's recommendation names, of the answers as they were given, by
        whichever head served then.

        Args:
            task: of the model; its costs weigh the mistakes.
            model: whose answers.
            environment: from where.
            limit: the newest labelled predictions that count.

        Returns:
            None while no prediction has a label.
        """
        classes, decisions = task.costs.shape
        labelled = self._store.labels.newest_labelled(model.id, environment, limit=limit, classes=classes)
        if labelled.labels.size == 0:
            return None
        confusion = confusion_matrix(
            labelled.labels, labelled.decisions, classes=classes, decisions_count=decisions
        )
        recommended = self._recommended(task, model, environment, labelled)
        unfit = (LeftOutPredictions(labelled.quarantined, _UNFIT),) if labelled.quarantined else ()
        return RealisedPerformance(
            samples=int(labelled.labels.size),
            accuracy=accuracy(confusion),
            expected_cost=expected_cost(confusion, task.costs),
            recommended=recommended,
            left_out=(*unfit, *recommended.unscored),
        )

    def _recommended(
        self, task: Task, model: Model, environment: str, labelled: LabelledPredictions
    ) -> RecommendedMetrics:
        attached = self._store.recommendations.current(task.name)
        if attached is None:
            return RecommendedMetrics()
        rests_on = _digest(attached, labelled)
        known = self._known.get((model.id, environment))
        if known is not None and known.rests_on == rests_on:
            return known.metrics
        try:
            metrics = self._computed(task, model, attached, labelled)
        except LifelongError as error:
            # The other figures do not depend on it.
            return RecommendedMetrics(left_out=(LeftOutMetric(attached.name, str(error)),))
        # A head that is damaged now may be brought back.
        if not metrics.unscored:
            self._known[model.id, environment] = _Known(rests_on, metrics)
        return metrics

    def _computed(
        self, task: Task, model: Model, attached: AttachedRecommendation, labelled: LabelledPredictions
    ) -> RecommendedMetrics:
        # Takes a moment, and only where it is needed.
        from lifelong_monitor.realised.recommended_metrics import realised_metrics

        def head_of(version: int) -> PostProcessingHead:
            return self._store.heads.get(model.reference, version).head

        return realised_metrics(attached, labelled, head_of, classes=len(task.class_names))


def _digest(attached: AttachedRecommendation, labelled: LabelledPredictions) -> str:
    """SHA-256 (hex) of what the metrics rest on. What was logged of a prediction never changes, but for its label."""
    ids = b"".join(one.bytes for one in labelled.ids)
    parts = (f"{attached.version} {attached.digest} ".encode(), ids, labelled.labels.tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()
