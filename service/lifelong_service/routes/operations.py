"""Probes and metrics; anybody who reaches the port may call them."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lifelong_service import metrics
from lifelong_service.guard import GuardedRoute, access, worker_of

router = APIRouter(route_class=GuardedRoute, tags=["operations"])


@router.get("/livez")
@access(None)
async def livez() -> Response:
    """200 while the process answers at all."""
    return PlainTextResponse("alive\n")


@router.get("/readyz", responses={503: {"description": "Not ready; `reasons` says why."}})
@access(None)
async def readyz(request: Request) -> Response:
    """200 when this worker can answer predictions, else 503 with the reasons; names models that cannot be loaded."""
    worker = worker_of(request)
    reasons = worker.not_ready()
    snapshot = worker.poller.snapshot
    body = {
        "ready": not reasons,
        "reasons": reasons,
        "revision": worker.poller.revision,
        "failed_models": {
            snapshot.registry.models[model_id].reference: reason
            for model_id, reason in snapshot.failures.items()
        }
        if snapshot is not None
        else {},
    }
    return JSONResponse(
        body, status_code=503 if reasons else 200, headers={"Retry-After": "1"} if reasons else None
    )


@router.get("/metrics")
@access(None)
async def prometheus_metrics() -> Response:
    """Prometheus metrics of all workers."""
    return Response(await run_in_threadpool(metrics.exposition), media_type=CONTENT_TYPE_LATEST)
