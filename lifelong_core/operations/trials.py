"""Trials of models beside the promoted one; roll-back and the history of promotions."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.develop.rollouts import PromotionAnswer, Rollout, Stage, TrialAnswer
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.registry import Model, Task
from lifelong_core.operations.models import PromotedAnswer, promoted_answer
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.runtime.graph_check import check_servable
from lifelong_core.store import describe_serving, start_trial
from lifelong_core.store.rollouts.trials import LabelledFigures, TrialPopulation, trial_populations
from lifelong_core.values.names import Name


@dataclass(frozen=True, kw_only=True)
class StartedTrialAnswer(TrialAnswer):
    """A trial after its start or change."""

    fitted_heads: list[str]
    """environments for which the candidate got a head of its own"""
    serving: str
    """a sentence about the workers that have loaded it"""


@dataclass(frozen=True, kw_only=True)
class ClassEstimate(Entity):
    """The estimated prevalence of one class with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class TrialCycle(Entity):
    """The newest cycle of a population."""

    id: UUID
    outcome: Outcome
    effect: str
    """as outcome; of a swap that is not published: would swap, proposes a swap"""
    finished_at: Moment
    samples: int
    prevalence: dict[str, ClassEstimate] | None
    """by class; null: the cycle estimated none"""


@dataclass(frozen=True, kw_only=True)
class TrialPopulationAnswer(Entity):
    """One of the two models in one environment."""

    model: str
    role: str
    environment: str
    cycle: TrialCycle | None
    labelled: LabelledFigures | None


@dataclass(frozen=True, kw_only=True)
class TrialState(Entity):
    """The trial of a task that goes on, with the populations of the promoted model and the candidate."""

    task: str
    promoted_model: str | None
    trial: TrialAnswer | None
    """null: none goes on"""
    populations: list[TrialPopulationAnswer]


@dataclass(frozen=True, kw_only=True)
class PromotionList(Entity):
    """All promotions of a task, oldest first."""

    task: str
    rollback_model: str | None
    """the model that a roll-back restores now; null: there is none"""
    promotions: list[PromotionAnswer]


class StartShadow(Call[StartedTrialAnswer]):
    """The candidate."""

    model: ModelReference


class NewCanary(Call[StartedTrialAnswer]):
    """The share of the requests without a version that the candidate answers."""

    model: ModelReference
    share: Annotated[
        float,
        Field(
            strict=True,  # true would be a share of 1
            description="Above 0 and at most 1; 0.05 gives it 5 % of the groups.",
        ),
    ]
    force_reason: Annotated[
        str | None,
        Field(
            description="Why it answers although it would not be promoted without a reason; kept in the audit log."
        ),
    ] = None


class ShowTrial(Call[TrialState]):
    """The task."""

    task: Name


class EndTrial(Call[TrialAnswer]):
    """The task."""

    task: Name


class RollBackModel(Call[PromotedAnswer]):
    """The task whose promotion is undone."""

    task: Name
    expected_sequence: Annotated[
        int | None,
        Field(
            ge=0,
            strict=True,
            description="The newest promotion that the caller has seen; another one is a conflict.",
        ),
    ] = None


class ListPromotions(Call[PromotionList]):
    """The task."""

    task: Name


@operation(
    "POST",
    "/v1/admin/models/{model}/shadow",
    scope=Scope.OPERATE,
    example=StartShadow(model="resnet@2"),
)
def start_shadow(context: Context, call: StartShadow) -> StartedTrialAnswer:
    """Let this version decide about the images of its task, too, for the log only; a canary becomes a shadow again.

    Heads are fitted first for environments of known prevalence. Status 409 if the task has no promoted model or another
    candidate, the model has no head or runs elsewhere, or a worker cannot load it.
    """
    return _start(context, call.model, "shadow", 0.0, None)


@operation(
    "POST",
    "/v1/admin/models/{model}/canary",
    scope=Scope.OPERATE,
    example=NewCanary(model="resnet@2", share=0.05),
)
def start_canary(context: Context, call: NewCanary) -> StartedTrialAnswer:
    """Let this version answer a share of the requests that name no version, always the same groups; or change it.

    Status 409 as for a shadow, and where its promotion would be refused without a reason; `force_reason` overrides
    the latter.
    """
    return _start(context, call.model, "canary", call.share, call.force_reason)


@operation("GET", "/v1/admin/tasks/{task}/trial", scope=Scope.READ, example=ShowTrial(task="skin"))
def show_trial(context: Context, call: ShowTrial) -> TrialState:
    """The trial of a task that goes on (null: none), with estimates and labelled decisions of both models."""
    store = context.store
    task = store.tasks.get(call.task)
    models = {model.id: model for model in store.models.list()}
    promoted = models.get(task.promoted_model_id or 0)
    rollout = store.rollouts.current(call.task)
    populations = () if rollout is None else trial_populations(store, task, rollout)
    return TrialState(
        task=task.name,
        promoted_model=None if promoted is None else promoted.reference,
        trial=None if rollout is None else _trial_answer(rollout, task, models[rollout.model_id]),
        populations=[_population_answer(population, task) for population in populations],
    )


@operation("DELETE", "/v1/admin/tasks/{task}/trial", scope=Scope.OPERATE, example=EndTrial(task="skin"))
def end_trial(context: Context, call: EndTrial) -> TrialAnswer:
    """End the trial: the promoted model answers all requests that name no version. Status 404 if there is none."""
    store = context.store
    ended = store.rollouts.end(call.task, actor=context.actor)
    models = {model.id: model for model in store.models.list()}
    return _trial_answer(ended, store.tasks.get(call.task), models[ended.model_id])


@operation("POST", "/v1/admin/tasks/{task}/rollback", scope=Scope.OPERATE, example=RollBackModel(task="skin"))
def roll_back_model(context: Context, call: RollBackModel) -> PromotedAnswer:
    """Promote the model that was promoted before the present one; workers have kept its graph. Body: `{}`.

    Each call goes one promotion further back. Status 409 if there is none before, a canary goes on, or another
    promotion than `expected_sequence` is the newest.
    """
    model = context.store.promotions.roll_back(
        call.task, actor=context.actor, expected_sequence=call.expected_sequence
    )
    return promoted_answer(context, model)


@operation("GET", "/v1/admin/tasks/{task}/promotions", scope=Scope.READ, example=ListPromotions(task="skin"))
def list_promotions(context: Context, call: ListPromotions) -> PromotionList:
    """The models that were promoted, oldest first, roll-backs included."""
    store = context.store
    references = {model.id: model.reference for model in store.models.list()}
    restored = store.promotions.rollback_model(call.task)
    return PromotionList(
        task=call.task,
        rollback_model=None if restored is None else restored.reference,
        promotions=[
            PromotionAnswer.of(promotion, model=references.get(promotion.model_id, ""))
            for promotion in store.promotions.list(call.task)
        ],
    )


def _start(
    context: Context, reference: str, stage: Stage, share: float, force_reason: str | None
) -> StartedTrialAnswer:
    store, patience = context.store, context.patience_seconds
    check_servable(
        store,
        context.settings,
        reference,
        patience_seconds=patience,
        may_be_released=stage == "shadow",
    )
    started = start_trial(
        store, reference, stage=stage, share=share, actor=context.actor, force_reason=force_reason
    )
    task = store.tasks.with_id(started.model.task_id)
    return StartedTrialAnswer.of(
        _trial_answer(started.rollout, task, started.model),
        fitted_heads=list(started.fitted),
        serving=describe_serving(store, started.model.reference, patience_seconds=patience),
    )


def _trial_answer(rollout: Rollout, task: Task, candidate: Model) -> TrialAnswer:
    return TrialAnswer.of(rollout, task=task.name, model=candidate.reference)


def _population_answer(population: TrialPopulation, task: Task) -> TrialPopulationAnswer:
    cycle = population.cycle
    return TrialPopulationAnswer(
        model=population.model.reference,
        role=population.role,
        environment=population.environment,
        cycle=None
        if cycle is None
        else TrialCycle(
            id=cycle.id,
            outcome=cycle.outcome,
            effect=cycle.effect,
            finished_at=cycle.finished_at,
            samples=cycle.window_samples,
            prevalence=_prevalence(population, task),
        ),
        labelled=population.labelled,
    )


def _prevalence(population: TrialPopulation, task: Task) -> dict[str, ClassEstimate] | None:
    found = population.prevalence
    if found is None:
        return None
    rows = zip(task.class_names, found["prevalence"], found["low"], found["high"], strict=True)
    return {name: ClassEstimate(estimate=estimate, low=low, high=high) for name, estimate, low, high in rows}
