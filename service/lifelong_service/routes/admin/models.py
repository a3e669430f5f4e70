"""`/v1/admin/models`: register, promote and remove models; logits without a log entry."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.runtime.graph_check import check_servable
from lifelong_core.store import Store, describe_serving, promote_calibrated
from lifelong_core.store.registry.records import Task
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_service.bodies.parameters import check_fields, check_parameters
from lifelong_service.documents.registry import active_heads_document, model_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.model_uploads import MEDIA_TYPES, OPENAPI, register_model
from lifelong_service.schemas.registry import (
    ImageLogits,
    ModelAnswer,
    ModelDetails,
    ModelList,
    PromotedAnswer,
    RemovedAnswer,
)
from lifelong_service.worker.worker import Worker

MAXIMUM_IMAGES = 1000

router = APIRouter(route_class=GuardedRoute, tags=["models"])


@router.get("/v1/admin/models")
@access(Scope.READ)
def list_models(request: Request) -> ModelList:
    """All versions of all models."""
    store = worker_of(request).store
    tasks = {task.id: task for task in store.tasks.list()}
    return {"models": [model_document(model, tasks[model.task_id]) for model in store.models.list()]}


@router.get("/v1/admin/models/{reference}")
@access(Scope.READ)
def show_model(request: Request, reference: str) -> ModelDetails:
    """One model with the classes of its task and the heads that serve it."""
    store = worker_of(request).store
    model = store.models.get(reference)
    registry = store.registry()
    return {
        **model_document(model, registry.tasks[model.task_id]),
        "heads": active_heads_document(model, registry),
    }


@router.post("/v1/admin/models", status_code=201, openapi_extra=OPENAPI)
@access(Scope.ADMIN, media_types=MEDIA_TYPES, body_limit="maximum_model_bytes")
async def add_model(request: Request) -> ModelAnswer:
    """Register a model: parts `document` (JSON) and `onnx` (the graph); an external model is the JSON document alone.

    Weights in separate files come as parts `external_data`; they are embedded in the graph, which is loaded, run on a
    grey image and stored as one file. A graph that does not fit task and preprocessing is refused.
    """
    return await register_model(request)


@router.post("/v1/admin/models/{reference}/promote")
@access(Scope.OPERATE)
def promote(
    request: Request,
    reference: str,
    force_reason: Annotated[
        str | None,
        Query(
            description="Why it is promoted although it misses acceptance thresholds or is worse than the promoted"
            " model, or its promotion report advises against it; kept in the audit log."
        ),
    ] = None,
) -> PromotedAnswer:
    """Promote this version: it answers requests that name no model, or only its name.

    Status 409 with the code `not_accepted` if the task has acceptance thresholds and the newest validation of the model
    with its present head, by the present recommendation, misses one, or there is none; status 409 if it is
    significantly worse on its calibration set than the promoted model on its own, if its newest promotion report
    against that model advises against it, or if its calibration set was made with another preprocessing than this
    worker computes for it. `force_reason` overrides all four. Status 409, too, if a worker cannot load it, or has not
    loaded it within half of the request's time limit. `serving` is a sentence with the number of workers that run the
    model afterwards.
    """
    check_parameters(request.query_params, ("force_reason",))
    worker = worker_of(request)
    store = worker.store
    patience = worker.settings.request_timeout_seconds / 2
    check_servable(store, worker.settings, reference, patience_seconds=patience)
    model = promote_calibrated(store, reference, actor=actor_of(request), force_reason=force_reason)
    return {
        **model_document(model, _task(store, model.task_id)),
        "serving": describe_serving(store, model.reference, patience_seconds=patience),
    }


@router.delete("/v1/admin/models/{reference}")
@access(Scope.ADMIN)
def remove_model(request: Request, reference: str) -> RemovedAnswer:
    """Remove an unused model, given as name@version, with its calibration sets, heads and graph.

    Status 409 names its use: it is promoted, predictions are logged, a head is in force in an environment, a job waits.
    """
    if "@" not in reference:
        raise InvalidInputError(
            f"{reference[:80]!r} names no version.", field="reference", hint="Name one, as name@1."
        )
    return {"removed": worker_of(request).store.remove_model(reference, actor=actor_of(request)).reference}


@router.post(
    "/v1/admin/models/{reference}/logits",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["images"],
                        "properties": {
                            "images": {"type": "array", "items": {"type": "string", "format": "binary"}}
                        },
                    }
                }
            },
        }
    },
)
@access(Scope.OPERATE, media_types=("multipart/form-data",))
async def logits_of_images(request: Request, reference: str) -> ImageLogits:
    """Logits of the multipart parts `images`, computed as for predictions; nothing is logged or counted."""
    worker = worker_of(request)
    async with request.form(max_files=MAXIMUM_IMAGES, max_fields=8) as form:
        check_fields(form, ("images",), repeatable=("images",))
        images = [await part.read() for part in form.getlist("images") if isinstance(part, UploadFile)]
    if not images:
        raise InvalidInputError(
            "there are no images in the body.", field="images", hint="Send parts named 'images'."
        )
    return await run_in_threadpool(_logits, worker, reference, images)


def _logits(worker: Worker, reference: str, images: list[bytes]) -> ImageLogits:
    model = worker.store.models.get(reference)
    classifier = worker.classifier(model)
    rows: list[list[float]] = []
    for index, image in enumerate(images):
        try:
            pixels = worker.decoder.decode_now(image, classifier.preprocessing)
            rows += classifier.logits([pixels]).tolist()
        except LifelongError as error:
            error.field = f"images.{index}"
            raise
    return {
        "model": model.reference,
        "logits": rows,
        "preprocessing_digest": classifier.preprocessing_digest,
    }


def _task(store: Store, task_id: int) -> Task:
    return next(task for task in store.tasks.list() if task.id == task_id)
