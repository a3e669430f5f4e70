"""What the pages of tasks show."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.criterion.expected_criterion import describe_expectation, describe_head_rule
from lifelong_core.entities.registry import ModelRole
from lifelong_core.operations.operation import Context
from lifelong_core.operations.trials import (
    ListPromotions,
    ShowTrial,
    TrialPopulationAnswer,
    list_promotions,
    show_trial,
)
from lifelong_core.store import Registry, Store, Task
from lifelong_core.store.heads.checks import follows_task
from lifelong_core.store.heads.outlook import describe_outlook

ROLES: dict[ModelRole, str] = {
    "promoted": "promoted: answers requests without a version",
    "canary": "canary: answers a share of the requests",
    "shadow": "shadow: decides for the log only",
    "former": "promoted or on trial earlier",
    "other": "answers only requests that name it",
}
_REASONS = {"first": "first model of the task", "promote": "promoted", "rollback": "rolled back to"}
_MOST_CLASSES = 12
"""Classes of a prevalence that are shown."""
_MOST_PROMOTIONS = 20


def task_lines(store: Store) -> list[dict[str, Any]]:
    """The tasks by name, each with its promoted model and its candidate."""
    registry = store.registry()
    return [
        {
            "name": task.name,
            "promoted": _reference(registry, task.promoted_model_id),
            "trial": _trial(registry, task),
        }
        for task in sorted(registry.tasks.values(), key=lambda task: task.name)
    ]


def task_view(context: Context, name: str) -> dict[str, Any]:
    """The models of a task, its decision rule, its trial with the populations of both models, and its promotions,
    newest first.
    """
    store = context.store
    task, registry = store.tasks.get(name), store.registry()
    state = show_trial(context, ShowTrial(task=name))
    listed = list_promotions(context, ListPromotions(task=name))
    models = sorted(
        (model for model in registry.models.values() if model.task_id == task.id),
        key=lambda model: (model.name, -model.version),
    )
    return {
        "task": task,
        "promoted": state.promoted_model,
        "models": [
            {"model": model.reference, "kind": model.kind, "role": ROLES[registry.role(model.id)]}
            for model in models
        ],
        "decision": decision_view(store, registry, task),
        "candidates": [
            model.reference
            for model in models
            if model.kind == "onnx"
            and model.id != task.promoted_model_id
            and (model.id, None) in registry.heads
        ],
        "trial": _trial(registry, task),
        "rollout": state.trial,
        "populations": [_population(population) for population in state.populations],
        "promotions": [
            {
                "model": promotion.model or "removed",
                "what": _REASONS[promotion.reason],
                "at": promotion.promoted_at,
                "by": promotion.promoted_by,
            }
            for promotion in listed.promotions[: -_MOST_PROMOTIONS - 1 : -1]
        ],
        "sequence": listed.promotions[-1].sequence if listed.promotions else 0,
        "restored": listed.rollback_model,
    }


def _trial(registry: Registry, task: Task) -> dict[str, Any] | None:
    rollout = registry.rollouts.get(task.id)
    if rollout is None:
        return None
    return {
        "model": _reference(registry, rollout.model_id),
        "stage": rollout.stage,
        "percent": f"{100 * rollout.share:.3g}",
    }


def _population(population: TrialPopulationAnswer) -> dict[str, Any]:
    cycle = population.cycle
    shares = {} if cycle is None else cycle.prevalence or {}
    return {
        "environment": population.environment,
        "model": population.model,
        "role": population.role,
        "outcome": None if cycle is None else cycle.effect,
        "samples": None if cycle is None else cycle.samples,
        "prevalence": [
            f"{name} {share.estimate:.3f} ({share.low:.3f} to {share.high:.3f})"
            for name, share in islice(shares.items(), _MOST_CLASSES)
        ],
        "labelled": population.labelled,
    }


def _reference(registry: Registry, model_id: int | None) -> str | None:
    model = None if model_id is None else registry.models.get(model_id)
    return None if model is None else model.reference


def decision_view(store: Store, registry: Registry, task: Task) -> dict[str, Any]:
    """The rule as a phrase, and the heads in force of the models that serve or are on trial."""
    at = datetime.now(UTC)
    return {
        "rule": describe_rule(task.decision_rule, task.class_names),
        "heads": [
            {
                "model": registry.models[model_id].reference,
                "place": environment or "default head",
                "environment": environment or "",
                "sequence": store.heads.activations(
                    registry.models[model_id].reference, environment=environment
                )[-1].sequence,
                "outlook": describe_outlook(store, registry.models[model_id], environment, at=at),
                "version": record.version,
                "rule": describe_head_rule(record.head),
                "expected": describe_expectation(record.head),
                "follows": follows_task(record.head, task),
            }
            for (model_id, environment), record in sorted(
                registry.heads.items(), key=lambda item: (item[0][0], item[0][1] or "")
            )
            if registry.models[model_id].task_id == task.id
            and registry.role(model_id) in ("promoted", "canary", "shadow")
        ],
    }
