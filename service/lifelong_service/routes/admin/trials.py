"""Trials of models under `/v1/admin/models` and `/v1/admin/tasks`; roll-back and the history of promotions."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.runtime.graph_check import check_servable
from lifelong_core.store import Store, describe_serving, start_trial
from lifelong_core.store.registry.records import Task
from lifelong_core.store.rollouts.records import Stage
from lifelong_core.store.rollouts.trials import trial_populations
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name
from lifelong_service.documents.registry import model_document
from lifelong_service.documents.trials import promotion_document, trial_document, trial_population_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.registry import PromotedAnswer
from lifelong_service.schemas.trials import PromotionList, StartedTrialAnswer, TrialAnswer, TrialState

router = APIRouter(route_class=GuardedRoute, tags=["trials"])


class NewCanary(RequestDocument):
    """The share of the requests without a version that the candidate answers."""

    share: float = Field(
        strict=True,  # true would be a share of 1
        description="Above 0 and at most 1; 0.05 gives it 5 % of the groups.",
    )
    force_reason: str | None = Field(
        None,
        description="Why it answers although it would not be promoted without a reason; kept in the audit log.",
    )


class Rollback(RequestDocument):
    """`expected_sequence`: the newest promotion that the caller has seen; another one is a conflict."""

    expected_sequence: int | None = Field(None, ge=0, strict=True)


@router.post("/v1/admin/models/{reference}/shadow")
@access(Scope.OPERATE)
def start_shadow(request: Request, reference: str) -> StartedTrialAnswer:
    """Let this version decide about the images of its task, too, for the log only; a canary becomes a shadow again.

    Heads are fitted first for environments of known prevalence. Status 409 if the task has no promoted model or another
    candidate, the model has no head or runs elsewhere, or a worker cannot load it.
    """
    return _start(request, reference, "shadow", 0.0, None)


@router.post("/v1/admin/models/{reference}/canary")
@access(Scope.OPERATE)
def start_canary(request: Request, reference: str, new: NewCanary) -> StartedTrialAnswer:
    """Let this version answer a share of the requests that name no version, always the same groups; or change it.

    Status 409 as for a shadow, and where its promotion would be refused without a reason; `force_reason` overrides
    the latter.
    """
    return _start(request, reference, "canary", new.share, new.force_reason)


@router.get("/v1/admin/tasks/{task}/trial")
@access(Scope.READ)
def show_trial(request: Request, task: Name) -> TrialState:
    """The trial of a task that goes on (null: none), with estimates and labelled decisions of both models."""
    store = worker_of(request).store
    found = store.tasks.get(task)
    models = {model.id: model for model in store.models.list()}
    promoted = models.get(found.promoted_model_id or 0)
    rollout = store.rollouts.current(task)
    populations = () if rollout is None else trial_populations(store, found, rollout)
    return {
        "task": found.name,
        "promoted_model": None if promoted is None else promoted.reference,
        "trial": None if rollout is None else trial_document(rollout, found, models[rollout.model_id]),
        "populations": [trial_population_document(population, found) for population in populations],
    }


@router.delete("/v1/admin/tasks/{task}/trial")
@access(Scope.OPERATE)
def end_trial(request: Request, task: Name) -> TrialAnswer:
    """End the trial: the promoted model answers all requests that name no version. Status 404 if there is none."""
    store = worker_of(request).store
    ended = store.rollouts.end(task, actor=actor_of(request))
    models = {model.id: model for model in store.models.list()}
    return trial_document(ended, store.tasks.get(task), models[ended.model_id])


@router.post("/v1/admin/tasks/{task}/rollback")
@access(Scope.OPERATE)
def roll_back(request: Request, task: Name, seen: Rollback) -> PromotedAnswer:
    """Promote the model that was promoted before the present one; workers have kept its graph. Body: `{}`.

    Each call goes one promotion further back. Status 409 if there is none before, a canary goes on, or another
    promotion than `expected_sequence` is the newest.
    """
    worker = worker_of(request)
    model = worker.store.promotions.roll_back(
        task, actor=actor_of(request), expected_sequence=seen.expected_sequence
    )
    return {
        **model_document(model, worker.store.tasks.get(task)),
        "serving": describe_serving(worker.store, model.reference, patience_seconds=_patience(request)),
    }


@router.get("/v1/admin/tasks/{task}/promotions")
@access(Scope.READ)
def list_promotions(request: Request, task: Name) -> PromotionList:
    """The models that were promoted, oldest first, roll-backs included."""
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    restored = store.promotions.rollback_model(task)
    return {
        "task": task,
        "rollback_model": None if restored is None else restored.reference,
        "promotions": [promotion_document(one, models) for one in store.promotions.list(task)],
    }


def _start(
    request: Request, reference: str, stage: Stage, share: float, force_reason: str | None
) -> StartedTrialAnswer:
    worker, patience = worker_of(request), _patience(request)
    store = worker.store
    check_servable(
        store,
        worker.settings,
        reference,
        patience_seconds=patience,
        may_be_released=stage == "shadow",
    )
    started = start_trial(
        store, reference, stage=stage, share=share, actor=actor_of(request), force_reason=force_reason
    )
    return {
        **trial_document(started.rollout, _task(store, started.model.task_id), started.model),
        "fitted_heads": list(started.fitted),
        "serving": describe_serving(store, started.model.reference, patience_seconds=patience),
    }


def _patience(request: Request) -> float:
    """Longest wait for the workers; the rest of the request's time is for the answer."""
    return worker_of(request).settings.request_timeout_seconds / 2


def _task(store: Store, task_id: int) -> Task:
    return next(task for task in store.tasks.list() if task.id == task_id)
