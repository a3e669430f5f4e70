"""The checked start of a trial and of each of its stages, and its populations side by side.

A population shows estimates and labelled decisions of the candidate and of the promoted model.
"""

from dataclasses import dataclass
from typing import Any

from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.develop.rollouts import Rollout, Stage
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.registry import Model, ModelRole, Task
from lifelong_core.store.registry.models import check_graph_is_stored, model_with_id
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.rollouts.candidate_heads import fit_candidate_heads, publish_candidate_heads
from lifelong_core.store.rollouts.checked_promotion import check_promotion
from lifelong_core.store.rollouts.rollouts import check_candidate, check_share, put_on_trial
from lifelong_core.store.store import Store

LABELLED_SAMPLES = 2000
"""Newest labelled predictions of a population that are read."""


@dataclass(frozen=True)
class StartedTrial:
    """A trial after its start or change.

    Attributes:
        model: the candidate.
        rollout: the trial.
        fitted: environments for which the candidate got a head of its own.
    """

    model: Model
    rollout: Rollout
    fitted: tuple[str, ...]


def start_trial(
    store: Store,
    reference: str,
    *,
    stage: Stage,
    share: float = 0.0,
    actor: str,
    force_reason: str | None = None,
) -> StartedTrial:
    """Try a model beside the promoted one of its task, or change the stage or share of its trial.

    First, heads are fitted for the environments of known prevalence (see `candidate_heads`). The caller makes sure that
    every living worker can load the model: `graph_check.check_servable`.

    Args:
        store: the store of the model.
        reference: the candidate, a calibrated model of kind onnx.
        stage: `shadow` decides for the log only; `canary` answers requests.
        share: of the requests that name no version, above 0 and at most 1; not used by a shadow.
        actor: name for the audit log.
        force_reason: reason for a canary that would not be promoted (see `check_promotion`), for the audit log.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: the share or the reason is not valid.
        NotAcceptedError, CalibratedOtherwiseError, WorseModelError: as for `promote_calibrated`, of a canary.
        ConflictError: the model cannot be tried (see `rollouts.check_candidate`), its stored graph is missing or
            damaged, or the heads of its task changed meanwhile.
        UnavailableError: the database or the artifact storage does not answer.
    """
    share = check_share(stage, share)
    model = store.models.get(reference)
    with store.database.read() as connection:
        check_candidate(connection, model)
    check_graph_is_stored(store.artifacts, model)
    details: dict[str, Any] = {}
    # A shadow answers no request, and its decisions may give the evidence that the gate needs.
    if stage == "canary":
        details |= check_promotion(store, model.reference, force_reason=force_reason) or {}
    heads = fit_candidate_heads(store, model)
    with change_registry(store.database) as connection:
        model = model_with_id(connection, model.id)
        check_candidate(connection, model)
        fitted = publish_candidate_heads(connection, heads, actor=actor)
        details["heads"] = fitted
        rollout = put_on_trial(connection, model, stage, share, actor=actor, details=details)
    return StartedTrial(model, rollout, tuple(fitted))


@dataclass(frozen=True)
class LabelledFigures(Entity):
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
    labelled = store.labels.newest_labelled(model.id, environment, limit=LABELLED_SAMPLES, classes=classes)
    if not labelled.labels.size:
        return None
    return LabelledFigures(
        samples=int(labelled.labels.size),
        accuracy=float((labelled.labels == labelled.decisions).mean()),
        expected_cost=float(task.costs[labelled.labels, labelled.decisions].mean()),
    )
