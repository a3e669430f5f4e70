"""`/v1/predict` and `/v1/logits`: decisions about images and about logits."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope, Token
from lifelong_core.entities.answers import LogitsAnswer, PredictAnswer
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.bodies.limits import media_type
from lifelong_service.bodies.parameters import check_fields
from lifelong_service.bodies.parsing import parse_in_turn
from lifelong_service.clients.authentication import check_binding
from lifelong_service.guard.access import access, actor_of, client_address, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.prediction.requests import (
    ImageRequest,
    LogitsRequest,
    PredictionRequest,
    RequestContext,
)
from lifelong_service.routes.prediction_requests import (
    HEADERS,
    parameters_of,
    read_json_request,
    read_npy_request,
    request_context,
)

WATCHED_SECONDS = 0.1
"""Expected wait in seconds from which a closed connection cancels its request; watching a connection costs time."""
IMAGE_TYPES = ("image/", "application/octet-stream", "multipart/form-data")
LOGITS_TYPES = ("application/json", "application/x-npy", "application/octet-stream")
IMAGE_PARTS = ("image", "file")
_BELONGS = (
    f" A parameter ({', '.join(HEADERS)}) belongs in the query or a header, e.g. {HEADERS['environment']}."
)

_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": name,
        "in": "query",
        "schema": {"type": "string"},
        "description": f"Also as the header {header}.",
    }
    for name, header in HEADERS.items()
]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_IMAGE_FORM = {
    "schema": {
        "type": "object",
        "properties": {"image": {"type": "string", "format": "binary"}},
        "required": ["image"],
    }
}
_LOGITS = {
    "schema": {"$ref": "#/components/schemas/LogitsBody"},
    "example": {"logits": [[2.1, -0.3], [0.2, 0.9]], "environment": "clinic-a", "groups": ["p1", None]},
}
_NPY = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "An npy file: numbers of shape (N, C), as `numpy.save` writes it.",
    }
}

router = APIRouter(route_class=GuardedRoute, tags=["predictions"])


@router.post(
    "/v1/predict",
    response_class=JSONResponse,
    responses={200: {"model": PredictAnswer}},
    openapi_extra={
        "parameters": _PARAMETERS,
        "requestBody": {
            "required": True,
            "content": {
                "image/*": _BINARY,
                "application/octet-stream": _BINARY,
                "multipart/form-data": _IMAGE_FORM,
            },
        },
    },
)
@access(Scope.PREDICT, opens="open_access", media_types=IMAGE_TYPES, limits="queue")
async def predict(request: Request) -> Response:
    """Decide about one image: raw bytes, or a multipart part `image` or `file`; logged before the answer."""
    context = _permitted(request, request_context(_parameters(request)))
    image_request = ImageRequest(context, await _image(request))
    worker = worker_of(request)
    return await _answer(request, await worker.decoder.prepare(image_request, worker.snapshot))


@router.post(
    "/v1/logits",
    response_class=JSONResponse,
    responses={200: {"model": LogitsAnswer}},
    openapi_extra={
        "parameters": _PARAMETERS,
        "requestBody": {
            "required": True,
            "content": {
                "application/json": _LOGITS,
                "application/x-npy": _NPY,
                "application/octet-stream": _NPY,
            },
        },
    },
)
@access(Scope.PREDICT, opens="open_access", media_types=LOGITS_TYPES, limits="queue")
async def logits(request: Request) -> Response:
    """Decide about logits (N, C) of an external (or served) model: JSON, or the bytes of an npy file."""
    given = _parameters(request)
    parse = read_npy_request if media_type(request.headers) in LOGITS_TYPES[1:] else read_json_request
    rows = worker_of(request).settings.maximum_logits_rows
    body = await request.body()
    watch, client = worker_of(request).probability_watch, actor_of(request)

    def parsed() -> LogitsRequest:
        found = parse(body, given, maximum_rows=rows)
        watch.check(found.logits, client)
        return found

    logits_request = await parse_in_turn(parsed, len(body))
    context = _permitted(request, logits_request.context)
    return await _answer(request, replace(logits_request, context=context))


class JsonBytes(Response):
    """A response of JSON that is encoded already; cheaper than the framework's for a small answer."""

    def __init__(self, content: bytes) -> None:
        self.status_code = 200
        self.background = None
        self.body = content
        self.raw_headers = [
            (b"content-length", str(len(content)).encode()),
            (b"content-type", b"application/json"),
        ]


def _parameters(request: Request) -> dict[str, str]:
    """Return the parameters of the request; the environment defaults to the one of its token."""
    token: Token | None = request.state.token
    own = {} if token is None else {"environment": token.default_environment}
    return own | parameters_of(request)


def _permitted(request: Request, context: RequestContext) -> RequestContext:
    """Return the context with the token and the source of its request.

    Raises:
        ForbiddenError: the token may not predict in this environment, or the environment is disabled.
        NotFoundError: there is no such environment, and the request may not create it.
    """
    token: Token | None = request.state.token
    if token is not None:
        check_binding(token, context.environment)
    worker = worker_of(request)
    worker.snapshot.registry.check_environment(
        context.environment, may_be_new=worker.settings.environment_creation == "open"
    )
    return context.sent_by(token, client_address(request))


async def _answer(request: Request, prediction_request: PredictionRequest) -> Response:
    worker, name = worker_of(request), actor_of(request)
    worker.token_limiter.take_rows(name, prediction_request.samples)
    answer = worker.batcher.submit(
        prediction_request,
        samples=prediction_request.weight,
        owner=name,
        preparation_samples=prediction_request.preparation_weight,
    )
    if worker.batcher.expected_wait_seconds < WATCHED_SECONDS:
        return JsonBytes(await answer)
    return JsonBytes(await _unless_closed(request, answer))


async def _unless_closed(request: Request, answer: Coroutine[Any, Any, bytes]) -> bytes:
    """Return the answer; a request that waits in a long queue is cancelled when its client closes the connection.

    Raises:
        ClientDisconnect: the client has closed the connection.
    """
    waiting = asyncio.ensure_future(answer)
    closed = asyncio.ensure_future(_closed(request))
    try:
        await asyncio.wait((waiting, closed), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ClientDisconnect
        return waiting.result()
    finally:
        for task in (waiting, closed):
            task.cancel()


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _image(request: Request) -> bytes:
    if media_type(request.headers) != "multipart/form-data":
        image = await request.body()
    else:
        async with request.form(max_files=1, max_fields=8) as form:
            check_fields(form, IMAGE_PARTS, hint=_BELONGS)
            parts = [form[name] for name in IMAGE_PARTS if name in form]
            image = await parts[0].read() if parts and isinstance(parts[0], UploadFile) else b""
    if not image:
        raise InvalidInputError(
            "there is no image in the body.",
            field="image",
            hint="Send its bytes as the body, or as a file in a multipart part named 'image'.",
        )
    return image
