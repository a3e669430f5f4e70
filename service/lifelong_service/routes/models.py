"""`/v1/admin/models`: register, promote, and look at logits without logging anything."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from lifelong_core.errors import InvalidInputError, LifelongError
from lifelong_core.store import Store, describe_serving
from lifelong_core.store.preprocessing import Preprocessing
from lifelong_core.store.records import ModelKind, Scope, Task
from lifelong_service.bodies import media_type, parsed
from lifelong_service.documents import active_heads_document, model_document
from lifelong_service.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.images import decode, preprocess
from lifelong_service.inference import load_classifier
from lifelong_service.parameters import check_fields
from lifelong_service.worker import Worker

MAXIMUM_IMAGES = 1000

router = APIRouter(route_class=GuardedRoute, tags=["models"])


class NewModel(BaseModel):
    """A model of a task; `preprocessing` belongs to kind onnx and defaults to RGB in 0..1 at the image's own size."""

    model_config = ConfigDict(extra="forbid")

    task: str
    name: str
    kind: ModelKind = "onnx"
    preprocessing: Preprocessing | None = None


@router.get("/v1/admin/models")
@access(Scope.READ)
def list_models(request: Request) -> dict[str, Any]:
    """All versions of all models."""
    store = worker_of(request).store
    tasks = {task.id: task for task in store.tasks.list()}
    return {"models": [model_document(model, tasks[model.task_id]) for model in store.models.list()]}


@router.get("/v1/admin/models/{reference}")
@access(Scope.READ)
def show_model(request: Request, reference: str) -> dict[str, Any]:
    """One model with the classes of its task and the heads that serve it."""
    store = worker_of(request).store
    model = store.models.get(reference)
    registry = store.registry()
    if registry is None:
        raise TypeError("a registry that nobody knows yet is always given")
    return model_document(model, registry.tasks[model.task_id]) | {
        "heads": active_heads_document(model, registry)
    }


@router.post(
    "/v1/admin/models",
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["document"],
                        "properties": {
                            "document": {"type": "string", "description": "A NewModel as JSON."},
                            "onnx": {"type": "string", "format": "binary"},
                        },
                    }
                },
                "application/json": {"schema": {"$ref": "#/components/schemas/NewModel"}},
            },
        }
    },
)
@access(
    Scope.ADMIN, media_types=("multipart/form-data", "application/json"), body_limit="maximum_model_bytes"
)
async def add_model(request: Request) -> dict[str, Any]:
    """Register a model: parts `document` (JSON) and `onnx` (the graph); an external model is the JSON document alone.

    The graph is loaded and run once on a grey image; one that does not fit task and preprocessing is refused.
    """
    worker = worker_of(request)
    actor = actor_of(request)
    if media_type(request.headers) != "multipart/form-data":
        document, onnx = parsed(await request.body(), NewModel), None
    else:
        async with request.form(max_files=2, max_fields=8) as form:
            check_fields(form, ("document", "onnx"))
            document = parsed(await _part(form.get("document")), NewModel)
            onnx = await _part(form.get("onnx")) or None
    return await run_in_threadpool(_register, worker, document, onnx, actor)


@router.post("/v1/admin/models/{reference}/promote")
@access(Scope.OPERATE)
def promote(request: Request, reference: str) -> dict[str, Any]:
    """Let this version answer requests that name no model, or its name alone.

    `serving` says in words what is true afterwards: how many workers run the model.
    """
    worker = worker_of(request)
    store = worker.store
    model = store.models.promote(reference, actor=actor_of(request))
    patience = worker.settings.request_timeout_seconds / 2
    return model_document(model, _task(store, model.task_id)) | {
        "serving": describe_serving(store, model.reference, patience_seconds=patience)
    }


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
async def logits_of_images(request: Request, reference: str) -> dict[str, Any]:
    """Logits of the multipart parts `images`, by the path that serves predictions; nothing is logged or counted."""
    worker = worker_of(request)
    async with request.form(max_files=MAXIMUM_IMAGES, max_fields=8) as form:
        check_fields(form, ("images",), repeated=True)
        images = [await part.read() for part in form.getlist("images") if isinstance(part, UploadFile)]
    if not images:
        raise InvalidInputError(
            "there are no images in the body.", field="images", mend="Send parts named 'images'."
        )
    return await run_in_threadpool(_logits, worker, reference, images)


async def _part(part: UploadFile | str | None) -> bytes:
    if isinstance(part, UploadFile):
        return await part.read()
    return (part or "").encode()


def _register(worker: Worker, new: NewModel, onnx: bytes | None, actor: str) -> dict[str, Any]:
    store = worker.store
    task = store.tasks.get(new.task)
    preprocessing = new.preprocessing
    if onnx is not None and new.kind == "onnx":
        preprocessing = preprocessing or Preprocessing.model_validate({})
        settings = worker.settings
        load_classifier(
            onnx,
            preprocessing,
            classes=len(task.class_names),
            providers=settings.execution_providers,
            threads=settings.intra_op_threads,
        )
    model = store.models.add(
        new.task, new.name, kind=new.kind, onnx=onnx, preprocessing=preprocessing, actor=actor
    )
    return model_document(model, task)


def _logits(worker: Worker, reference: str, images: list[bytes]) -> dict[str, Any]:
    model = worker.store.models.get(reference)
    classifier = worker.classifier(model)
    limit = worker.settings.maximum_image_pixels
    rows: list[list[float]] = []
    for index, image in enumerate(images):
        try:
            pixels = preprocess(
                decode(image, maximum_pixels=limit), classifier.preprocessing, maximum_pixels=limit
            )
            rows += classifier.logits([pixels]).tolist()
        except LifelongError as error:
            error.field = f"images.{index}"
            raise
    return {"model": model.reference, "logits": rows}


def _task(store: Store, task_id: int) -> Task:
    return next(task for task in store.tasks.list() if task.id == task_id)
