"""Recommendations for the task of `population`, and the metrics that the monitor exports for them."""

import json
from datetime import UTC, datetime
from typing import Any

from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.entities.entity import text_digest
from lifelong_core.metrics import METRICS
from lifelong_core.store import AttachedRecommendation, Model, Store
from lifelong_monitor.realised.performance import RealisedPerformances
from lifelong_monitor.realised.records import RealisedMetric, RealisedPerformance
from tests.unit.monitor.population import COSTS

RECOMMENDED = recommend(
    ProblemFingerprint(
        number_of_classes=3,
        class_scores_available=True,
        decision_rule="argmax",
        unequal_severity=True,
        costs_available=True,
        costs=COSTS,
        unequal_interest=False,
        prevalences_representative=True,
        class_imbalance=False,
        predictive_values="unimportant",
        calibration_assessment=False,
        dependent_cases=False,
        invalid_outputs=False,
    )
)
"""EC with these costs, TPR of each class, AUROC of each class."""


def metric(acronym: str, **more: Any) -> RecommendedMetric:
    return RecommendedMetric(metric=acronym, per_class=METRICS[acronym].is_per_class, **more)


def naming(*metrics: RecommendedMetric | str) -> Recommendation:
    """A recommendation of these."""
    named = tuple(metric(one) if isinstance(one, str) else one for one in metrics)
    first = RECOMMENDED.steps[0].model_copy(update={"metrics": named})
    return RECOMMENDED.model_copy(update={"steps": (first,)})


def attached(
    *metrics: RecommendedMetric | str, thresholds: tuple[AcceptanceThreshold, ...] = ()
) -> AttachedRecommendation:
    """A recommendation of these that is in force, without a store."""
    document = naming(*metrics).to_json()
    texts = json.dumps([threshold.model_dump(mode="json") for threshold in thresholds])
    return AttachedRecommendation(
        task="t",
        version=1,
        document=document,
        thresholds_document=texts,
        digest=text_digest(document, texts),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        created_by="tests",
    )


def attach(store: Store, *thresholds: AcceptanceThreshold, what: Recommendation = RECOMMENDED) -> None:
    store.recommendations.attach("lesions", what, thresholds=thresholds, actor="tests")


def realised(
    store: Store, model: Model, *, limit: int = 1000, known: RealisedPerformances | None = None
) -> RealisedPerformance:
    """What is known of the clinic, where there are labels."""
    performances = known or RealisedPerformances(store)
    found = performances.compute(store.tasks.get("lesions"), model, "clinic", limit=limit)
    assert found is not None
    return found


def of(performance: RealisedPerformance, label: str, class_index: int | None = None) -> RealisedMetric:
    """One value."""
    (found,) = [
        metric
        for metric in performance.recommended.values
        if (metric.label, metric.class_index) == (label, class_index)
    ]
    return found


def reasons(performance: RealisedPerformance) -> dict[str, str]:
    """Of the metrics that are left out, by label."""
    return {metric.label: metric.reason for metric in performance.recommended.left_out}
