"""`/v1/admin/tasks/{task}/retrainings` and `.../augmentation-searches`: trainings as jobs."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.trainings import RecipeDocument
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.operations.develop.knowledge import check_known_task
from lifelong_core.operations.develop.retrainings import (
    ImagePath,
    NewRetraining,
    RetrainingOptions,
    recipe_of,
    retraining_payload_of,
)
from lifelong_core.store.trainings.asking import (
    KIND,
    SEARCH_KIND,
)
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name
from lifelong_service.bodies.json_documents import NUL, field_with_nul, read_values
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.image_jobs import (
    MEDIA_TYPES,
    ImageRequest,
    submit_image_job,
)

router = APIRouter(route_class=GuardedRoute, tags=["trainings"])


class SearchOptions(RequestDocument):
    """How to search: `recipe` is that of the model that scores, `trials` the number of sub-policies that are tried."""

    recipe: RecipeDocument | None = None
    trials: Annotated[int, Field(ge=1, le=10_000)] | None = None


class NewAugmentationSearch(SearchOptions):
    """Labelled images of the task by their path, below one of the folders in LIFELONG_IMAGE_ROOTS."""

    path: ImagePath


def _recipe_text(text: str) -> dict[str, Any]:
    """The recipe of a query.

    Raises:
        InvalidInputError: it is not JSON, or holds a text that no database keeps.
        PayloadTooLargeError: it has too many parts.
    """
    content = text.encode()
    try:
        values = read_values(content)
    except ValueError as error:
        raise InvalidInputError("expected a recipe as JSON.", field="recipe") from error
    if (place := field_with_nul(content)) is not None:
        raise InvalidInputError(f"{NUL}.", field=f"recipe.{place}", hint="Send it without.")
    return values


_READERS, _FORMS = {"recipe": _recipe_text}, {"recipe": ", as JSON"}
_RETRAINING = ImageRequest[RetrainingOptions](NewRetraining, RetrainingOptions, _READERS, _FORMS)
_SEARCH = ImageRequest[SearchOptions](NewAugmentationSearch, SearchOptions, _READERS, _FORMS)


@router.post(
    "/v1/admin/tasks/{task}/retrainings",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=_RETRAINING.openapi,
)
@access(Scope.OPERATE, media_types=MEDIA_TYPES, body_limit="maximum_upload_bytes")
async def retrain(request: Request, task: Name) -> JSONResponse:
    """Train a model of the task on labelled images; the answer is a job.

    The body is a tar or zip file with images, and the query holds the options; or it is a JSON document with the
    options and a `path` on the machine that runs jobs. The result names the registered model, its evaluation on the
    test split, and the promotion report against the promoted model; the model is not promoted. Whether timm has the
    architecture is known to the job only.
    """
    worker = worker_of(request)

    def payload_of(asked: RetrainingOptions) -> dict[str, Any]:
        return retraining_payload_of(worker.store, worker.settings, task, asked)

    return await submit_image_job(request, KIND, _RETRAINING, payload_of)


@router.post(
    "/v1/admin/tasks/{task}/augmentation-searches",
    status_code=202,
    responses={202: {"model": JobAnswer}},
    openapi_extra=_SEARCH.openapi,
)
@access(Scope.OPERATE, media_types=MEDIA_TYPES, body_limit="maximum_upload_bytes")
async def search_augmentation(request: Request, task: Name) -> JSONResponse:
    """Search the augmentation policy that suits the images of a task; the answer is a job.

    The policy is kept with the task in the knowledge base, from where other tasks take it over by the suggestion
    `augmentation:{task}`. The images come as for retrainings.
    """
    worker = worker_of(request)

    def payload_of(asked: SearchOptions) -> dict[str, Any]:
        check_known_task(worker.store, task)
        recipe = recipe_of(asked.recipe)
        given = {"recipe": None if recipe is None else recipe.to_document(), "trials": asked.trials}
        return {"task": task, **{name: value for name, value in given.items() if value is not None}}

    return await submit_image_job(request, SEARCH_KIND, _SEARCH, payload_of)
