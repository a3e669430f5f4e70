"""`/v1/admin/models`: register a model; logits of images without a log entry."""

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse
from typing_extensions import TypedDict

from lifelong_core.entities.access import Scope
from lifelong_core.entities.registry import ModelAnswer
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_service.bodies.parameters import check_fields
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.model_uploads import MEDIA_TYPES, OPENAPI, register_model
from lifelong_service.worker.worker import Worker

MAXIMUM_IMAGES = 1000


class ImageLogits(TypedDict):
    """Logits (N, C) of N images, and how they were preprocessed: a calibration set is sent back with this digest."""

    model: str
    logits: list[list[float]]
    preprocessing_digest: str


router = APIRouter(route_class=GuardedRoute, tags=["models"])


@router.post(
    "/v1/admin/models", status_code=201, openapi_extra=OPENAPI, responses={201: {"model": ModelAnswer}}
)
@access(Scope.ADMIN, media_types=MEDIA_TYPES, body_limit="maximum_model_bytes")
async def add_model(request: Request) -> JSONResponse:
    """Register a model: parts `document` (JSON) and `onnx` (the graph); an external model is the JSON document alone.

    Weights in separate files come as parts `external_data`; they are embedded in the graph, which is loaded, run on a
    grey image and stored as one file. A graph that does not fit task and preprocessing is refused.
    """
    return JSONResponse((await register_model(request)).to_document(), 201)


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
