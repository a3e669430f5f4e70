"""What an attached recommendation changes: the decision rule of its task, and the heads that still decide otherwise."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.entities.design.recommendations import (
    AttachedRecommendation,
    AttachmentEffects,
    Difference,
    DifferingHead,
)
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Registry, Task
from lifelong_core.store.heads.refitting import is_same_mix, stated_prevalences
from lifelong_core.store.store import Store
from lifelong_core.values.arrays import Floats

MOST_NAMED = 4
"""Classes whose shares are named"""


def effects_of(store: Store, attached: AttachedRecommendation) -> AttachmentEffects:
    """The present effects of a recommendation that is in force.

    Raises:
        UnavailableError: the recommendation is damaged, or the database does not answer.
    """
    from lifelong_core.design.recommendation.stated_rule import recommended_rule

    registry = store.registry()
    task = next(task for task in registry.tasks.values() if task.name == attached.task)
    stated = stated_prevalences(attached.recommendation)
    differing = differing_heads(registry, task, stated)
    return AttachmentEffects(
        costs=task.costs,
        decision_rule=task.decision_rule,
        decision_rule_text=describe_rule(task.decision_rule, task.class_names),
        not_executed=recommended_rule(attached.recommendation).reason,
        differing_heads=differing,
        hint=refit_hint(task, differing) if differing else None,
    )


def differing_heads(
    registry: Registry, task: Task, stated: Floats | None = None
) -> tuple[DifferingHead, ...]:
    """The heads in force of the task's promoted model, and of a model on trial, that differ from the task.

    Damaged heads are left out: how they decide is unknown.

    Args:
        registry: models and heads.
        task: one of its tasks.
        stated: shape (C,), class mix of use that the recommendation in force states, for which the default head of the
            promoted model should be; None: not stated.
    """
    roles = {
        model.id: registry.role(model.id) for model in registry.models.values() if model.task_id == task.id
    }
    served = [model_id for model_id, role in roles.items() if role in ("promoted", "canary", "shadow")]
    places = sorted(
        (place for place in registry.heads if place[0] in served and place not in registry.damaged),
        key=lambda place: (roles[place[0]] != "promoted", place[0], place[1] or ""),
    )
    compared = (
        _differing(
            registry,
            registry.heads[place],
            place[1],
            task,
            stated if place == (task.promoted_model_id, None) else None,
        )
        for place in places
    )
    return tuple(head for head in compared if head.differs_in)


def refit_hint(task: Task, differing: Sequence[DifferingHead]) -> str:
    """How to make these heads decide as their task says."""
    steps: list[str] = []
    promoted = [head for head in differing if head.is_promoted]
    if promoted:
        pinned = any(head.is_pinned for head in promoted)
        steps.append(
            f"{'Unpin the pinned heads, then attach' if pinned else 'Attach'} the recommendation with new heads:"
            f" `refit_head` over HTTP, `lifelong recommend --attach {task.name} --refit-head`."
        )
    others = sorted({head.model for head in differing if not head.is_promoted})
    steps += [f"Calibrate {name} again: it is on trial." for name in others]
    return " ".join(steps)


def _differing(
    registry: Registry, record: HeadRecord, environment: str | None, task: Task, stated: Floats | None
) -> DifferingHead:
    head = record.head
    differences: dict[Difference, str] = {}
    if not np.array_equal(head.costs, task.costs):
        differences["costs"] = "other costs"
    if head.decision_rule != task.decision_rule:
        own = describe_rule(head.decision_rule, head.class_names)
        differences["decision_rule"] = f"another decision rule ({own})"
    if stated is not None and not is_same_mix(head, stated):
        differences["prevalence"] = (
            f"another class mix ({_shares(head.assumed_prevalence, head.class_names)}; stated for the use:"
            f" {_shares(stated, head.class_names)})"
        )
    model = registry.models[record.model_id].reference
    is_pinned = (record.model_id, environment) in registry.pins
    place = "the default head" if environment is None else f"the head of {environment}"
    held = ", pinned" if is_pinned else ""
    others = " and ".join(differences.values())
    return DifferingHead(
        model=model,
        environment=environment,
        version=record.version,
        differs_in=tuple(differences),
        sentence=f"{place} of {model} (version {record.version}{held}) still has {others}.",
        is_promoted=record.model_id == task.promoted_model_id,
        is_pinned=is_pinned,
    )


def _shares(prevalence: Floats, class_names: Sequence[str]) -> str:
    """A class mix in words; of more than four classes the most frequent ones.

    Examples:
        >>> _shares(np.array([0.98, 0.02]), ("benign", "malignant"))
        'benign 0.98, malignant 0.02'
    """
    first = (
        np.argsort(-prevalence, kind="stable")[:MOST_NAMED]
        if prevalence.size > MOST_NAMED
        else range(prevalence.size)
    )
    rest = ", ..." if prevalence.size > MOST_NAMED else ""
    return ", ".join(f"{class_names[k]} {prevalence[k]:.2g}" for k in first) + rest
