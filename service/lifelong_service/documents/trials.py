"""Trials and promotions as JSON documents."""

from collections.abc import Mapping

from lifelong_core.store.registry.records import Model, Task
from lifelong_core.store.rollouts.records import Promotion, Rollout
from lifelong_core.store.rollouts.trials import TrialPopulation
from lifelong_service.schemas.trials import (
    ClassEstimate,
    PromotionAnswer,
    TrialAnswer,
    TrialPopulationAnswer,
)


def trial_document(rollout: Rollout, task: Task, candidate: Model) -> TrialAnswer:
    """A trial with the names of its task and candidate."""
    return {
        "task": task.name,
        "model": candidate.reference,
        "stage": rollout.stage,
        "share": rollout.share,
        "started_at": rollout.started_at.isoformat(),
        "started_by": rollout.started_by,
        "changed_at": rollout.changed_at.isoformat(),
        "ended_at": rollout.ended_at.isoformat() if rollout.ended_at else None,
        "ended_by": rollout.ended_by,
        "outcome": rollout.outcome,
    }


def trial_population_document(population: TrialPopulation, task: Task) -> TrialPopulationAnswer:
    """A population of a trial with its newest cycle and its labelled decisions."""
    cycle, labelled = population.cycle, population.labelled
    return {
        "model": population.model.reference,
        "role": population.role,
        "environment": population.environment,
        "cycle": None
        if cycle is None
        else {
            "id": str(cycle.id),
            "outcome": cycle.outcome,
            "finished_at": cycle.finished_at.isoformat(),
            "samples": cycle.window_samples,
            "prevalence": _prevalence(population, task),
        },
        "labelled": None
        if labelled is None
        else {
            "samples": labelled.samples,
            "accuracy": labelled.accuracy,
            "expected_cost": labelled.expected_cost,
        },
    }


def promotion_document(promotion: Promotion, models: Mapping[int, Model]) -> PromotionAnswer:
    """A promotion with the name of its model."""
    model = models.get(promotion.model_id)
    return {
        "sequence": promotion.sequence,
        "model": "" if model is None else model.reference,
        "reason": promotion.reason,
        "restores": promotion.previous,
        "promoted_at": promotion.promoted_at.isoformat(),
        "promoted_by": promotion.promoted_by,
    }


def _prevalence(population: TrialPopulation, task: Task) -> dict[str, ClassEstimate] | None:
    found = population.prevalence
    if found is None:
        return None
    rows = zip(task.class_names, found["prevalence"], found["low"], found["high"], strict=True)
    return {name: {"estimate": estimate, "low": low, "high": high} for name, estimate, low, high in rows}
