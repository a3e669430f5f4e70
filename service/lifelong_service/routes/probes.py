"""Probes, open without a token, and metrics, for which a setting can require a token."""

from dataclasses import asdict
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from lifelong_core.entities.access import Scope
from lifelong_service import metrics
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.transport.responses import FixedDocument

_THREADS = anyio.CapacityLimiter(4)
"""Separate threads: probes are answered even while all other threads wait for the database."""
_ONE_THREAD = anyio.CapacityLimiter(1)
"""One thread for the slow answers that need no token."""

router = APIRouter(route_class=GuardedRoute, tags=["operations"])


class SpoolAnswer(TypedDict):
    """Predictions that wait on the local disk for the database; sizes in bytes."""

    bytes: int
    maximum_bytes: int
    predictions: int
    oldest: str | None
    damaged_records: int
    refused_records: int


class Readiness(TypedDict):
    """Whether this worker answers predictions, and its faults."""

    ready: bool
    reasons: Annotated[list[str], Field(description="Why it is not ready.")]
    degraded: Annotated[list[str], Field(description="Faults that do not stop predictions.")]
    spool: SpoolAnswer | None
    revision: Annotated[int | None, Field(description="Of the registry that this worker has taken over.")]
    damaged_heads: list[str]
    failed_models: Annotated[dict[str, str], Field(description="Model -> why it cannot be loaded.")]
    execution_providers: Annotated[
        dict[str, str], Field(description="Loaded model -> the ONNX Runtime execution provider that runs it.")
    ]


@router.get(
    "/livez",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": "alive\n"}}}},
)
@access(None)
async def livez() -> Response:
    """Liveness: status 200 while the process answers."""
    return PlainTextResponse("alive\n")


@router.get(
    "/readyz",
    responses={
        200: {"model": Readiness},
        503: {"model": Readiness, "description": "Not ready; `reasons` says why."},
    },
)
@access(None)
async def readyz(request: Request) -> Response:
    """Readiness: status 200 if this worker can answer predictions, else 503 with the reasons.

    A promoted model that cannot be loaded is a reason if it is the default model and no previous one replaces it.
    `degraded` lists faults that do not stop predictions, such as models that cannot be loaded. The answer also
    has the state of the spool and the execution provider of each model.
    """
    worker = worker_of(request)
    spool = await anyio.to_thread.run_sync(_spool, worker.log, limiter=_THREADS)
    reasons = worker.not_ready()
    body = {
        "ready": not reasons,
        "reasons": reasons,
        "degraded": worker.degraded(),
        "spool": spool,
        "revision": worker.serving.revision,
        "damaged_heads": worker.serving.damaged_heads(),
        "failed_models": worker.serving.failed_models(),
        "execution_providers": worker.serving.providers(),
    }
    return JSONResponse(
        body, status_code=503 if reasons else 200, headers={"Retry-After": "1"} if reasons else None
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}}},
)
@access(Scope.METRICS, opens="open_metrics")
async def prometheus_metrics(request: Request) -> Response:
    """Prometheus metrics of all workers; open without a token unless `LIFELONG_OPEN_METRICS` is false."""
    await anyio.to_thread.run_sync(_spool, worker_of(request).log, limiter=_THREADS)
    text = await anyio.to_thread.run_sync(metrics.exposition, limiter=_ONE_THREAD)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False)
@access(None)
async def openapi_document(request: Request) -> Response:
    """The OpenAPI document of this API."""
    document = getattr(request.app.state, "openapi_document", None)
    if document is None:
        document = await anyio.to_thread.run_sync(_openapi_document, request.app, limiter=_ONE_THREAD)
    return document.answer(request)


@router.get("/", include_in_schema=False)
@access(None)
async def root() -> Response:
    """Redirect to the console."""
    return RedirectResponse("/console")


def _openapi_document(app: FastAPI) -> FixedDocument:
    """Return the document; building it takes a second, so only the first of the requests that wait does it."""
    if not hasattr(app.state, "openapi_document"):
        content = bytes(JSONResponse(app.openapi()).body)
        app.state.openapi_document = FixedDocument(content, "application/json")
    return app.state.openapi_document


def _spool(log: PredictionLog) -> dict[str, Any] | None:
    """Return the state of this machine's spool, and set its metrics."""
    state = log.state()
    if state is None:
        return None
    return asdict(state) | {"oldest": state.oldest and state.oldest.isoformat()}
