"""Models: list, show, promote, remove. Serving processes register models, since they check the graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.heads import HeadPopulation, HeadRecord
from lifelong_core.entities.registry import Model, ModelAnswer, Task
from lifelong_core.operations.administration.processes import DEFAULT_HEAD
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.runtime.graph_check import check_servable
from lifelong_core.store import describe_serving, promote_calibrated
from lifelong_core.store.design.effects import differing_heads, refit_hint
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class PromotedAnswer(ModelAnswer):
    """The promoted model."""

    serving: str
    """a sentence about the workers that run it"""
    fitted_heads: list[str]
    """environments for which heads were fitted with the promotion"""
    notes: list[str]
    """sentences about heads that no longer fit their task, and how to refit them"""


@dataclass(frozen=True, kw_only=True)
class RemovedAnswer(Entity):
    """The removed model."""

    removed: str
    """name@version; neither its id nor its version is used again"""


@dataclass(frozen=True, kw_only=True)
class ModelDetails(ModelAnswer):
    """A model with the heads that serve it."""

    heads: dict[str, int]
    """active head version of each environment with a head of its own; `*` is the default head"""


@dataclass(frozen=True, kw_only=True)
class ModelList(Entity):
    """All versions of all models."""

    models: list[ModelAnswer]


class ListModels(Call[ModelList]):
    """Nothing is chosen."""


class ShowModel(Call[ModelDetails]):
    """A model."""

    model: ModelReference


class PromoteModel(Call[PromotedAnswer]):
    """The version to promote."""

    model: ModelReference
    force_reason: Annotated[
        str | None,
        Field(
            description="Why it is promoted although it misses acceptance thresholds or is worse than the promoted"
            " model, or its promotion report advises against it; kept in the audit log."
        ),
    ] = None


class RemoveModel(Call[RemovedAnswer]):
    """The version to remove."""

    model: Annotated[str, Field(description="name@version.")]


@operation("GET", "/v1/admin/models", scope=Scope.READ, example=ListModels())
def list_models(context: Context, call: ListModels) -> ModelList:  # noqa: ARG001
    """All versions of all models."""
    tasks = {task.id: task for task in context.store.tasks.list()}
    return ModelList(
        models=[model_answer(model, tasks[model.task_id]) for model in context.store.models.list()]
    )


@operation("GET", "/v1/admin/models/{model}", scope=Scope.READ, example=ShowModel(model="resnet"))
def show_model(context: Context, call: ShowModel) -> ModelDetails:
    """One model with the classes of its task and the heads that serve it."""
    model = context.store.models.get(call.model)
    registry = context.store.registry()
    heads = {
        environment or DEFAULT_HEAD: record.version
        for (model_id, environment), record in registry.heads.items()
        if model_id == model.id
    }
    return ModelDetails.of(model_answer(model, registry.tasks[model.task_id]), heads=heads)


@operation(
    "POST",
    "/v1/admin/models/{model}/promote",
    scope=Scope.OPERATE,
    example=PromoteModel(model="resnet@1"),
    has_body=False,
)
def promote_model(context: Context, call: PromoteModel) -> PromotedAnswer:
    """Promote this version: it answers requests that name no model, or only its name.

    Status 409 with the code `not_accepted` if the task has acceptance thresholds and the newest validation of the model
    with its present head, by the present recommendation, misses one, or there is none; status 409 if it is
    significantly worse on its calibration set than the promoted model on its own, if its newest promotion report
    against that model advises against it, or if its calibration set was made with another preprocessing than this
    worker computes for it. `force_reason` overrides all four. Status 409, too, if a worker cannot load it, or has not
    loaded it within half of the request's time limit. `serving` is a sentence with the number of workers that run the
    model afterwards.
    """
    store = context.store
    check_servable(store, context.settings, call.model, patience_seconds=context.patience_seconds)
    former = store.registry().heads
    model = promote_calibrated(store, call.model, actor=context.actor, force_reason=call.force_reason)
    return promoted_answer(context, model, former)


@operation("DELETE", "/v1/admin/models/{model}", scope=Scope.ADMIN, example=RemoveModel(model="resnet@3"))
def remove_model(context: Context, call: RemoveModel) -> RemovedAnswer:
    """Remove an unused model, given as name@version, with its calibration sets, heads and graph.

    Status 409 names its use: it is promoted, predictions are logged, a head is in force in an environment, a job waits.
    """
    if "@" not in call.model:
        raise InvalidInputError(
            f"{call.model[:80]!r} names no version.", field="reference", hint="Name one, as name@1."
        )
    return RemovedAnswer(removed=context.store.remove_model(call.model, actor=context.actor).reference)


def model_answer(model: Model, task: Task) -> ModelAnswer:
    """A model with the name and classes of its task."""
    return ModelAnswer.of(
        model,
        model=model.reference,
        task=task.name,
        classes=list(task.class_names),
        promoted=task.promoted_model_id == model.id,
    )


def promoted_answer(
    context: Context, model: Model, former: Mapping[HeadPopulation, HeadRecord] | None = None
) -> PromotedAnswer:
    """A model that has just been promoted, and the workers that run it; `former`: the heads in force before."""
    store = context.store
    serving = describe_serving(store, model.reference, patience_seconds=context.patience_seconds)
    registry = store.registry()
    task = registry.tasks[model.task_id]
    differing = differing_heads(registry, task)
    fitted = [
        str(place[1])
        for place, head in registry.heads.items()
        if former is not None
        and place[0] == model.id
        and (place not in former or former[place].version != head.version)
    ]
    notes = [head.sentence for head in differing] + ([refit_hint(task, differing)] if differing else [])
    return PromotedAnswer.of(model_answer(model, task), serving=serving, fitted_heads=fitted, notes=notes)
