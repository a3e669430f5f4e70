"""The populations of a trial side by side: estimates and labelled decisions of the candidate and the promoted model."""

from dataclasses import dataclass
from typing import Any

from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.registry.records import Model, ModelRole, Task
from lifelong_core.store.rollouts.records import Rollout
from lifelong_core.store.store import Store

LABELLED_SAMPLES = 2000
"""Newest labelled predictions of a population that are read."""


@dataclass(frozen=True)
class LabelledFigures:
    """How good the newest labelled decisions of a population are."""

    samples: int
    accuracy: float
    """share of correct decisions"""
    expected_cost: float
    """mean cost of a decision, by the costs of the task"""


@dataclass(frozen=True)
class TrialPopulation:
    """One of the two models in one environment.

    Attributes:
        model: the candidate or the promoted model.
        role: its role.
        environment: name of the environment.
        cycle: the newest cycle; None: there is none.
        labelled: of labelled predictions; None: there are none.
    """

    model: Model
    role: ModelRole
    environment: str
    cycle: Cycle | None
    labelled: LabelledFigures | None

    @property
    def prevalence(self) -> dict[str, Any] | None:
        """The estimate of the newest cycle: `prevalence`, `low`, `high` by class; None: it holds none."""
        return None if self.cycle is None else self.cycle.report.get("prevalence")


def trial_populations(store: Store, task: Task, rollout: Rollout) -> tuple[TrialPopulation, ...]:
    """The populations of the promoted model and the candidate that have a cycle or a label, by environment.

    Raises:
        UnavailableError: the database does not answer.
    """
    registry = store.registry()
    models = [
        registry.models[model_id]
        for model_id in (task.promoted_model_id, rollout.model_id)
        if model_id is not None and model_id in registry.models
    ]
    newest, labels = store.watching.newest_cycles(), store.watching.labels()
    ids = [cycle.id for (model_id, _), cycle in newest.items() if model_id in {one.id for one in models}]
    cycles = {(one.model_id, one.environment): one for one in store.cycles.get_all(ids)}
    return tuple(
        TrialPopulation(
            model=model,
            role=registry.role(model.id),
            environment=environment,
            cycle=cycles.get((model.id, environment)),
            labelled=_labelled(store, task, model, environment)
            if (model.id, environment) in labels
            else None,
        )
        for environment in sorted({environment for _, environment in (*cycles, *labels)})
        for model in models
        if (model.id, environment) in cycles or (model.id, environment) in labels
    )


def _labelled(store: Store, task: Task, model: Model, environment: str) -> LabelledFigures | None:
    classes = len(task.class_names)
    found = store.labels.newest_labelled(model.id, environment, limit=LABELLED_SAMPLES, classes=classes)
    if not found.labels.size:
        return None
    return LabelledFigures(
        samples=int(found.labels.size),
        accuracy=float((found.labels == found.decisions).mean()),
        expected_cost=float(task.costs[found.labels, found.decisions].mean()),
    )
