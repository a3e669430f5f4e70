"""`/v1/admin/jobs/{job}/events`: follow a job; and the answer of routes that submit one."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import Job, JobAnswer
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.job_events import job_events, last_number
from lifelong_service.transport.responses import MEDIA_TYPE, EventStream

router = APIRouter(route_class=GuardedRoute, tags=["jobs"])

_EVENTS = {
    "description": "Events `log` (a line), `progress` and `end` (the job), each with JSON data.",
    "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
}


@router.get(
    "/v1/admin/jobs/{job}/events",
    response_class=Response,
    responses={200: _EVENTS, 204: {"description": "The client has all events of the job, which has ended."}},
)
@access(Scope.READ)
async def follow_job(
    request: Request, job: UUID, last_event_id: Annotated[str | None, Header()] = None
) -> Response:
    """Progress and log lines of a job as server-sent events, until its end.

    A stream ends earlier, before the time limit of requests: reconnect with `Last-Event-ID`, as browsers do.
    """
    worker = worker_of(request)
    after = last_number(last_event_id)
    found = await run_in_threadpool(worker.store.jobs.get, job)
    if after is None:
        return Response(status_code=204)
    token = actor_of(request)
    worker.streams.open(token)
    return EventStream(job_events(worker, found.id, after), partial(worker.streams.close, token))


def accept_job(job: Job) -> JSONResponse:
    """Return status 202 with the job; `Location` is the address of its state."""
    return JSONResponse(JobAnswer.of(job).to_document(), 202, {"Location": f"/v1/admin/jobs/{job.id}"})
