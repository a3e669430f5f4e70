"""Heads of a candidate for the environments whose prevalence the promoted model has shown.

A candidate has one head of its own, the default head of its calibration. Where an environment has another prevalence,
that head would decide worse than the promoted model's, whatever the quality of the candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from lifelong_core.decision_rules.rules import DecisionRule
from lifelong_core.deploy import PostProcessingHead, fit_head
from lifelong_core.deploy.criterion.expected_criterion import with_expectation
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.store.heads.heads import publish_head
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.registry.registry import active_versions
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.store import Store
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import ConflictError, NotFoundError

ORIGIN = "rollout"
"""Origin of these heads in their provenance."""
_SAME_SHARE = 1e-12


@dataclass(frozen=True)
class KnownPrevalence:
    """The prevalence of an environment as the promoted model knows it."""

    values: Floats
    """shape (C,)"""
    source: str
    """`head 3` or `cycle <id>` of the promoted model"""


@dataclass(frozen=True)
class CandidateHeads:
    """Fitted heads of a candidate by environment, and the state that they rest on."""

    model: Model
    promoted_model_id: int | None
    costs: Floats
    decision_rule: DecisionRule
    versions: Mapping[str | None, int]
    """heads of the candidate in force when these were fitted, by environment"""
    heads: Mapping[str, PostProcessingHead]


def fit_candidate_heads(store: Store, model: Model) -> CandidateHeads:
    """Fit heads of a candidate from its own calibration set, one for each environment of known prevalence.

    An environment's own head of the promoted model states its prevalence; without one, the newest cycle does unless it
    was refused or its window was too small. A head that people or cycles gave the candidate there is kept, and so is
    the default head. Without a promoted model, or without the artifact of the calibration set, no head is fitted.

    Raises:
        UnavailableError: the database or the artifact storage does not answer.
    """
    registry = store.registry()
    task = registry.tasks[model.task_id]
    versions = _versions(registry, model)
    nothing = CandidateHeads(model, task.promoted_model_id, task.costs, task.decision_rule, versions, {})
    promoted = registry.models.get(task.promoted_model_id or 0)
    if promoted is None or promoted.id == model.id or model.calibration_set_id is None:
        return nothing
    known = known_prevalences(store, registry, promoted)
    wanted = {
        environment: prevalence
        for environment, prevalence in known.items()
        if _is_open(registry, model, environment, prevalence)
    }
    if not wanted:
        return nothing
    try:
        calibration = store.calibration_sets.load(model.calibration_set_id)
    except NotFoundError:
        return nothing
    heads = {
        environment: with_expectation(
            fit_head(
                calibration,
                task.costs,
                target_prevalence=prevalence.values,
                class_names=task.class_names,
                provenance={
                    "origin": ORIGIN,
                    "model": model.reference,
                    "environment": environment,
                    "prevalence": f"{prevalence.source} of {promoted.reference}",
                },
                decision_rule=task.decision_rule,
            ),
            calibration,
        )
        for environment, prevalence in sorted(wanted.items())
    }
    return CandidateHeads(model, task.promoted_model_id, task.costs, task.decision_rule, versions, heads)


def known_prevalences(store: Store, registry: Registry, promoted: Model) -> dict[str, KnownPrevalence]:
    """The prevalences of environments that the promoted model knows, by environment."""
    known = {
        environment: KnownPrevalence(record.head.assumed_prevalence, f"head {record.version}")
        for (model_id, environment), record in registry.heads.items()
        if model_id == promoted.id and environment is not None
    }
    newest = {
        environment: cycle.id
        for (model_id, environment), cycle in store.watching.newest_cycles().items()
        if model_id == promoted.id and environment not in known
    }
    classes = len(registry.tasks[promoted.task_id].class_names)
    for cycle in store.cycles.get_all(list(newest.values())):
        estimated = _estimated(cycle, classes)
        if estimated is not None:
            known[cycle.environment] = KnownPrevalence(estimated, f"cycle {cycle.id}")
    return known


def publish_candidate_heads(connection: sa.Connection, fitted: CandidateHeads, *, actor: str) -> list[str]:
    """Put the heads in force, within a transaction that changes the registry; return their environments.

    Raises:
        ConflictError: the promoted model, costs or decision rule of the task, the calibration set or a head changed
            since they were fitted.
    """
    model = model_with_id(connection, fitted.model.id)
    task: Task = task_with_id(connection, model.task_id)
    present = {
        environment: version
        for (model_id, environment), version in active_versions(connection).items()
        if model_id == model.id
    }
    unchanged = (
        model.calibration_set_id == fitted.model.calibration_set_id
        and task.promoted_model_id == fitted.promoted_model_id
        and np.array_equal(task.costs, fitted.costs)
        and task.decision_rule == fitted.decision_rule
        and present == dict(fitted.versions)
    )
    if not unchanged:
        raise ConflictError(
            f"the promoted model, costs or decision rule of {task.name}, or a head of {model.reference}, changed while"
            " heads were fitted.",
            field="model",
            hint="Look at them and try again.",
        )
    for environment, head in fitted.heads.items():
        publish_head(connection, model, head, environment=environment, actor=actor, reason="publish")
    return list(fitted.heads)


def _versions(registry: Registry, model: Model) -> dict[str | None, int]:
    return {
        environment: record.version
        for (model_id, environment), record in registry.heads.items()
        if model_id == model.id
    }


def _is_open(registry: Registry, model: Model, environment: str, known: KnownPrevalence) -> bool:
    """Whether the candidate needs a new head there: it has none, or one of an earlier trial with another prevalence."""
    place = (model.id, environment)
    if place in registry.pins or place in registry.damaged:
        return False
    present = registry.heads.get(place)
    if present is None:
        return True
    same = np.allclose(present.head.assumed_prevalence, known.values, rtol=0, atol=_SAME_SHARE)
    return present.head.provenance.get("origin") == ORIGIN and not same


def _estimated(cycle: Cycle, classes: int) -> NDArray[np.float64] | None:
    """The estimate of a cycle; None: it was refused (the shift may be another one), or holds no estimate to rely on."""
    estimate: dict[str, Any] | None = cycle.report.get("prevalence")
    if cycle.outcome == "refuse" or estimate is None:
        return None
    if any(reason["code"] == "window_too_small" for reason in cycle.report.get("reasons", ())):
        return None
    values = np.asarray(estimate["prevalence"], dtype=np.float64)
    return values if values.shape == (classes,) and np.isfinite(values).all() else None
