"""Retrainings: what people ask for, the plan of it, the payload of the job, and how models were trained."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import Field, StringConstraints

from lifelong_core.configuration.image_roots import find_root
from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.trainings import RecipeDocument, TrainingAnswer, TrainingSummary
from lifelong_core.entities.entity import Entity, schema_of
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store import Model, Registry, Store, StoredTraining
from lifelong_core.store.trainings.asking import (
    Retraining,
    StatedFacts,
    complete_retraining,
    plan_retraining,
    retraining_payload,
)
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name

PlanDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.training.plan:TrainingPlan")
]
ImagePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Count = Annotated[int, Field(ge=1, le=10**12)]
MOST_COUNTED = 20_000
"""Images that the plan of a request counts."""
SLOWEST_STATED = 0.001
"""Images per second; with less, the planned duration of a large training would be infinite."""


class RetrainingOptions(RequestDocument):
    """How to train, and under which name."""

    recipe: RecipeDocument | None = None
    suggestion: Annotated[str, StringConstraints(max_length=200)] | None = None
    measure: Annotated[str, StringConstraints(min_length=1, max_length=64)] = "BA"
    model: Name | None = None
    source_path: ImagePath | None = None
    replicates: Annotated[int, Field(ge=100, le=10_000)] = 1000
    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95


class NewRetraining(RetrainingOptions):
    """Labelled images by their path, below one of the folders in LIFELONG_IMAGE_ROOTS, and how to train on them.

    `path`: a folder with one sub-folder per class, or a CSV, tar or zip file. `suggestion` (`SCENARIO:SOURCE`) is
    followed by the recipe; without it, `recipe` says all, and without both it is the uninformed baseline. `measure`
    finds the best architecture of the source. `model`: name of the model whose next version is trained; else that of
    the promoted model. `source_path`: images of the source task, for the scenarios pretraining and co_training.
    `replicates` and `level` are those of the intervals.
    """

    path: ImagePath


class NewRetrainingPlan(Call[PlanDocument], RetrainingOptions):
    """What would be asked for; images are counted at `path` (at most 20,000), stated, or taken from the task card."""

    task: Name
    path: ImagePath | None = None
    images: Count | None = None
    source_images: Count | None = None
    images_per_second: Annotated[float, Field(ge=SLOWEST_STATED, le=10**9)] | None = None


@operation(
    "POST",
    "/v1/admin/tasks/{task}/retrainings/plan",
    scope=Scope.READ,
    example=NewRetrainingPlan(task="skin", images=2000),
)
def plan(context: Context, call: NewRetrainingPlan) -> PlanDocument:
    """What a retraining would do, how long it takes, what it needs, and what is missing; nothing is started.

    Devices and limits are those of the settings of this process; they should be those of the monitor.
    """
    store, settings = context.store, context.settings
    complete = complete_asked(store, call.task, call)
    check_path(settings, call.path, field="path")
    check_path(settings, call.source_path, field="source_path")
    facts = StatedFacts(
        images=call.images,
        source_images=call.source_images,
        path=call.path,
        source_path=call.source_path,
        images_per_second=call.images_per_second,
        most_counted=MOST_COUNTED,
    )
    return plan_retraining(store, settings, complete, facts).to_document()


@dataclass(frozen=True, kw_only=True)
class TrainingList(Entity):
    """Trainings, newest first."""

    trainings: list[TrainingSummary]


class ListTrainings(Call[TrainingList]):
    """How many trainings are wanted."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


@operation("GET", "/v1/admin/trainings", scope=Scope.READ, example=ListTrainings())
def list_trainings(context: Context, call: ListTrainings) -> TrainingList:
    """The newest trainings of models that were made here, newest first."""
    registry = context.store.registry()
    return TrainingList(
        trainings=[
            TrainingSummary.of(training, **_facts(training, registry.models[training.model_id], registry))
            for training in context.store.trainings.list(call.limit)
            if training.model_id in registry.models
        ]
    )


class ShowTraining(Call[TrainingAnswer]):
    """A model."""

    model: ModelReference


@operation(
    "GET",
    "/v1/admin/models/{model}/training",
    scope=Scope.READ,
    example=ShowTraining(model="trained@1"),
)
def show_training(context: Context, call: ShowTraining) -> TrainingAnswer:
    """How a model was trained here: recipe, splits, epochs, parity of the graph, versions and durations."""
    store = context.store
    model = store.models.get(call.model)
    training = store.trainings.get(model.reference)
    return TrainingAnswer.of(
        training,
        **_facts(training, model, store.registry()),
        result=json.loads(store.artifacts.get(training.result)),
    )


def retraining_payload_of(
    store: Store, settings: Settings, task: str, asked: RetrainingOptions
) -> dict[str, Any]:
    """The payload of the job that a request asks for, with the path of its images if it names one.

    Raises:
        NotFoundError: there is no such task, or nothing is known of the source.
        InvalidInputError: the options contradict each other, or a path is outside the folders of images.
    """
    complete = complete_asked(store, task, asked)
    check_path(settings, asked.source_path, field="source_path")
    location = {"path": asked.path} if isinstance(asked, NewRetraining) else {}
    check_path(settings, location.get("path"), field="path")
    return retraining_payload(
        complete, source_path=asked.source_path, replicates=asked.replicates, level=asked.level, **location
    )


def complete_asked(store: Store, task: str, asked: RetrainingOptions) -> Retraining:
    """What a request asks for, complete and checked, as `complete_retraining`."""
    return complete_retraining(
        store,
        task,
        recipe=recipe_of(asked.recipe),
        suggestion=asked.suggestion,
        model=asked.model,
        measure=asked.measure,
    )


def _facts(training: StoredTraining, model: Model, registry: Registry) -> dict[str, Any]:
    """The fields of a training's summary that its row does not have."""
    return {
        "model": model.reference,
        "task": registry.tasks[model.task_id].name,
        "job": training.job_id,
        "recipe": training.recipe.to_document(),
        "report": training.report is not None,
    }


def recipe_of(document: dict[str, Any] | None) -> Recipe | None:
    """The recipe that a request holds; None: it holds none.

    Raises:
        InvalidInputError: it is not valid; the message names the field.
    """
    if document is None:
        return None
    try:
        return Recipe.from_document(document)
    except InvalidInputError as error:
        error.field = f"recipe.{error.field}"
        raise


def check_path(settings: Settings, path: str | None, *, field: str) -> None:
    """Check that a path, if there is one, is below one of the folders of images.

    Raises:
        InvalidInputError: it is not; the error names `field`.
    """
    if path is None:
        return
    try:
        find_root(path, settings.image_roots)
    except InvalidInputError as error:
        error.field = field
        raise
