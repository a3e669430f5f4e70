"""Realised performance: how good the answers were, where labels have arrived."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import AttachedRecommendation, LabelledPredictions, Store
from lifelong_core.store.performance.realised import realised_figures
from lifelong_core.values.errors import LifelongError
from lifelong_monitor.realised.recommended_metrics import compute_recommended_metrics
from lifelong_monitor.realised.records import (
    LeftOutMetric,
    LeftOutPredictions,
    RealisedPerformance,
    RecommendedMetrics,
)

LEVEL = 0.95
"""Default confidence of the intervals."""
_UNFIT = "count nowhere: they have another number of logits than the task has classes"


@dataclass(frozen=True)
class _CachedMetrics:
    """The newest metrics of a population."""

    inputs_digest: str
    metrics: RecommendedMetrics


class RealisedPerformances:
    """Computes realised performance; the recommended metrics only where their inputs have changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: dict[tuple[int, str], _CachedMetrics] = {}

    def compute(
        self,
        task: Task,
        model: Model,
        environment: str,
        *,
        limit: int,
        confidence: float = LEVEL,
        error_rates: ArrayLike | None = None,
    ) -> RealisedPerformance | None:
        """Compute accuracy, expected cost and recommended metrics of the answers that a population got.

        Args:
            task: of the model; its costs weigh the mistakes.
            model: of the population.
            environment: of the population.
            limit: largest number of labelled predictions; the newest count.
            confidence: nominal coverage of the intervals of accuracy and expected cost.
            error_rates: shape (C,), assumed largest share of wrong labels of each class; None: no label is wrong.

        Returns:
            None while no prediction has a label.
        """
        labelled = self._store.labels.newest_labelled(
            model.id, environment, limit=limit, classes=task.costs.shape[0]
        )
        rows = np.arange(labelled.labels.size)
        figures = realised_figures(labelled, rows, task.costs, error_rates=error_rates, confidence=confidence)
        if figures is None:
            return None
        accuracy, cost = figures.metrics["AC"], figures.metrics["EC"]
        recommended = self._load_recommended(task, model, environment, labelled)
        unfit = (LeftOutPredictions(labelled.quarantined, _UNFIT),) if labelled.quarantined else ()
        return RealisedPerformance(
            samples=figures.samples,
            accuracy=accuracy.value,
            expected_cost=cost.value,
            accuracy_interval=(accuracy.low, accuracy.high),
            expected_cost_interval=(cost.low, cost.high),
            recommended=recommended,
            left_out=(*unfit, *recommended.unscored),
        )

    def _load_recommended(
        self, task: Task, model: Model, environment: str, labelled: LabelledPredictions
    ) -> RecommendedMetrics:
        attached = self._store.recommendations.current(task.name)
        if attached is None:
            return RecommendedMetrics()
        inputs_digest = _digest(attached, labelled)
        cached = self._cache.get((model.id, environment))
        if cached is not None and cached.inputs_digest == inputs_digest:
            return cached.metrics
        try:
            metrics = self._compute_metrics(task, model, attached, labelled)
        except LifelongError as error:
            # The other figures do not depend on it.
            return RecommendedMetrics(left_out=(LeftOutMetric(attached.name, str(error)),))
        # A head that is damaged now may be brought back.
        if not metrics.unscored:
            self._cache[model.id, environment] = _CachedMetrics(inputs_digest, metrics)
        return metrics

    def _compute_metrics(
        self, task: Task, model: Model, attached: AttachedRecommendation, labelled: LabelledPredictions
    ) -> RecommendedMetrics:
        def head_of(version: int) -> PostProcessingHead:
            return self._store.heads.get(model.reference, version).head

        return compute_recommended_metrics(attached, labelled, head_of, classes=len(task.class_names))


def _digest(attached: AttachedRecommendation, labelled: LabelledPredictions) -> str:
    """SHA-256 (hex) of the inputs of the metrics; of a logged prediction only the label can change."""
    ids = b"".join(identifier.bytes for identifier in labelled.ids)
    parts = (f"{attached.version} {attached.digest} ".encode(), ids, labelled.labels.tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()
