"""`/v1/admin/tasks/{task}/retrainings` and `.../augmentation-searches`: trainings as jobs; how models were trained."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar, cast

from fastapi import APIRouter
from pydantic import Field, StringConstraints, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.errors import InvalidInputError, NotFoundError
from lifelong_core.image_roots import find_root
from lifelong_core.names import Name
from lifelong_core.store import Job, Store
from lifelong_core.store.access.records import Scope
from lifelong_core.store.trainings.asking import (
    KIND,
    SEARCH_KIND,
    Retraining,
    StatedFacts,
    complete_retraining,
    plan_retraining,
    retraining_payload,
)
from lifelong_core.validation_errors import as_input_error
from lifelong_service.http.bodies import media_type, parse_document, parse_in_turn
from lifelong_service.http.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.http.parameters import check_parameters
from lifelong_service.http.uploads import ARCHIVE_TYPES, archive_form, receive_file
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.schemas.design import JobAnswer
from lifelong_service.schemas.requests import RequestDocument
from lifelong_service.schemas.training import PlanDocument, RecipeDocument, TrainingAnswer
from lifelong_service.worker.worker import Worker

if TYPE_CHECKING:
    from lifelong_core.develop.training.recipe import Recipe

MOST_COUNTED = 20_000
"""Images that the plan of a request counts."""

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_JSON = "application/json"

Options = TypeVar("Options", bound=RequestDocument)
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Count = Annotated[int, Field(ge=1, le=10**12)]

router = APIRouter(route_class=GuardedRoute, tags=["trainings"])


class RetrainingOptions(RequestDocument):
    """How to train, and under which name."""

    recipe: RecipeDocument | None = None
    suggestion: Annotated[str, StringConstraints(max_length=200)] | None = None
    measure: Annotated[str, StringConstraints(min_length=1, max_length=64)] = "BA"
    model: Name | None = None
    source_path: Path | None = None
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

    path: Path


class NewRetrainingPlan(RetrainingOptions):
    """What would be asked for; images are counted at `path` (at most 20,000), stated, or taken from the task card."""

    path: Path | None = None
    images: Count | None = None
    source_images: Count | None = None
    images_per_second: Annotated[float, Field(gt=0, le=10**9)] | None = None


class SearchOptions(RequestDocument):
    """How to search: `recipe` is that of the model that scores, `trials` the number of sub-policies that are tried."""

    recipe: RecipeDocument | None = None
    trials: Annotated[int, Field(ge=1, le=10_000)] | None = None


class NewAugmentationSearch(SearchOptions):
    """Labelled images of the task by their path, below one of the folders in LIFELONG_IMAGE_ROOTS."""

    path: Path


def _body_of(document: str, options: type[RequestDocument]) -> dict[str, Any]:
    """The OpenAPI entry of a request with a JSON document, or an archive and its options in the query."""
    return {
        "requestBody": {
            "required": True,
            "content": {
                _JSON: {"schema": {"$ref": f"#/components/schemas/{document}"}},
                **dict.fromkeys(ARCHIVE_TYPES, _BINARY),
            },
        },
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": {"type": "string"},
                "description": f"Of an archive: as in {document}{', as JSON' if name == 'recipe' else ''}.",
            }
            for name in options.model_fields
        ],
    }


@router.post(
    "/v1/admin/tasks/{task}/retrainings",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=_body_of("NewRetraining", RetrainingOptions),
)
@access(Scope.OPERATE, media_types=(_JSON, *ARCHIVE_TYPES), body_limit="maximum_upload_bytes")
async def retrain(request: Request, task: Name) -> JSONResponse:
    """Train a model of the task on labelled images; the answer is a job.

    The body is a tar or zip file with images, and the query holds the options; or it is a JSON document with the
    options and a `path` on the machine that runs jobs. The result names the registered model, its evaluation on the
    test split, and the promotion report against the promoted model; the model is not promoted. Whether timm has the
    architecture is known to the job only.
    """
    worker = worker_of(request)

    def payload_of(asked: RetrainingOptions) -> dict[str, Any]:
        return retraining_payload_of(worker, task, asked)

    return await _submit(request, KIND, (NewRetraining, RetrainingOptions), payload_of)


@router.post(
    "/v1/admin/tasks/{task}/augmentation-searches",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=_body_of("NewAugmentationSearch", SearchOptions),
)
@access(Scope.OPERATE, media_types=(_JSON, *ARCHIVE_TYPES), body_limit="maximum_upload_bytes")
async def search_augmentation(request: Request, task: Name) -> JSONResponse:
    """Search the augmentation policy that suits the images of a task; the answer is a job.

    The policy is kept with the task in the knowledge base, from where other tasks take it over by the suggestion
    `augmentation:{task}`. The images come as for retrainings.
    """
    worker = worker_of(request)

    def payload_of(asked: SearchOptions) -> dict[str, Any]:
        _check_known(worker.store, task)
        recipe = _recipe_of(asked.recipe)
        given = {"recipe": None if recipe is None else recipe.to_document(), "trials": asked.trials}
        return {"task": task, **{name: value for name, value in given.items() if value is not None}}

    return await _submit(request, SEARCH_KIND, (NewAugmentationSearch, SearchOptions), payload_of)


@router.post("/v1/admin/tasks/{task}/retrainings/plan")
@access(Scope.READ)
def plan(request: Request, task: Name, asked: NewRetrainingPlan) -> PlanDocument:
    """What a retraining would do, how long it takes, what it needs, and what is missing; nothing is started.

    Devices and limits are those of the settings of this process; they should be those of the monitor.
    """
    worker = worker_of(request)
    complete = _complete(worker.store, task, asked)
    _check_path(worker, asked.path, field="path")
    _check_path(worker, asked.source_path, field="source_path")
    facts = StatedFacts(
        images=asked.images,
        source_images=asked.source_images,
        path=asked.path,
        source_path=asked.source_path,
        images_per_second=asked.images_per_second,
        most_counted=MOST_COUNTED,
    )
    found = plan_retraining(worker.store, worker.settings, complete, facts)
    return cast("PlanDocument", found.to_document())


@router.get("/v1/admin/models/{reference}/training")
@access(Scope.READ)
def show_training(request: Request, reference: str) -> TrainingAnswer:
    """How a model was trained here: recipe, splits, epochs, parity of the graph, versions and durations."""
    store = worker_of(request).store
    model = store.models.get(reference)
    training = store.trainings.get(model.reference)
    return {
        "model": model.reference,
        "job": str(training.job_id),
        "recipe": training.recipe.to_document(),
        "result": json.loads(store.artifacts.get(training.result)),
        "report": training.report is not None,
        "created_at": training.created_at.isoformat(),
        "created_by": training.created_by,
    }


def retraining_payload_of(worker: Worker, task: str, asked: RetrainingOptions) -> dict[str, Any]:
    """The payload of the job that a request asks for, with the path of its images if it names one.

    Raises:
        NotFoundError: there is no such task, or nothing is known of the source.
        InvalidInputError: the options contradict each other, or a path is outside the folders of images.
    """
    complete = _complete(worker.store, task, asked)
    _check_path(worker, asked.source_path, field="source_path")
    location = {"path": asked.path} if isinstance(asked, NewRetraining) else {}
    _check_path(worker, location.get("path"), field="path")
    return retraining_payload(
        complete, source_path=asked.source_path, replicates=asked.replicates, level=asked.level, **location
    )


def _complete(store: Store, task: str, asked: RetrainingOptions) -> Retraining:
    return complete_retraining(
        store,
        task,
        recipe=_recipe_of(asked.recipe),
        suggestion=asked.suggestion,
        model=asked.model,
        measure=asked.measure,
    )


def _recipe_of(document: dict[str, Any] | None) -> "Recipe | None":
    """The recipe that a request holds.

    Raises:
        InvalidInputError: it is none; the message names the field.
    """
    from lifelong_core.develop.training.recipe import Recipe

    if document is None:
        return None
    try:
        return Recipe.from_document(document)
    except InvalidInputError as error:
        error.field = f"recipe.{error.field}"
        raise


def _check_path(worker: Worker, path: str | None, *, field: str) -> None:
    if path is None:
        return
    try:
        find_root(path, worker.settings.image_roots)
    except InvalidInputError as error:
        error.field = field
        raise


def _check_known(store: Store, task: str) -> None:
    """Check that the task is registered, or one of the knowledge base.

    Raises:
        NotFoundError: it is neither.
    """
    try:
        store.tasks.get(task)
    except NotFoundError as error:
        try:
            store.knowledge.get(task)
        except NotFoundError:
            raise error from None


async def _submit(
    request: Request,
    kind: str,
    documents: tuple[type[Any], type[Any]],
    payload_of: Callable[[Any], dict[str, Any]],
) -> JSONResponse:
    """Submit a job on images by their path, or on an archive in the body.

    Args:
        request: its body is read.
        kind: of the job.
        documents: the JSON document with a path, and the options that come with an archive.
        payload_of: from the document or the options to the payload without the images.
    """
    worker, actor = worker_of(request), actor_of(request)
    with_path, options = documents
    if (media_type(request.headers) or _JSON) == _JSON:
        check_parameters(request.query_params, ())
        content = await request.body()
        asked = await parse_in_turn(lambda: parse_document(content, with_path), len(content))
        find_root(asked.path, worker.settings.image_roots)
        payload = await run_in_threadpool(payload_of, asked)
        return accept_job(
            await run_in_threadpool(_insert, worker.store, kind, payload | {"path": asked.path}, None, actor)
        )
    payload = await run_in_threadpool(payload_of, _options(request, options))
    async with receive_file(request, worker.settings.data_directory) as file:
        payload["archive"] = archive_form(file)
        return accept_job(await run_in_threadpool(_insert, worker.store, kind, payload, file, actor))


def _insert(store: Store, kind: str, payload: dict[str, Any], upload: BinaryIO | None, actor: str) -> Job:
    return store.jobs.submit(kind, payload, upload=upload, actor=actor)


def _options(request: Request, options: type[Options]) -> Options:
    """The options of an archive, from the query."""
    check_parameters(request.query_params, tuple(options.model_fields))
    given: dict[str, Any] = dict(request.query_params)
    if "recipe" in given:
        given["recipe"] = _parsed(given["recipe"])
    try:
        return options.model_validate(given, strict=False)
    except ValidationError as error:
        raise as_input_error(error, options) from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInputError("expected a recipe as JSON.", field="recipe") from error
    return found
