"""`/v1/admin/jobs`: list, follow and cancel jobs; and the answer of routes that submit one."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.entities.access import Scope
from lifelong_core.store import Job, JobState
from lifelong_service.documents.design import job_document, log_line_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.job_events import job_events, last_number
from lifelong_service.schemas.design import CancelledJobs, JobAnswer, JobList, JobLog
from lifelong_service.transport.responses import MEDIA_TYPE, EventStream

router = APIRouter(route_class=GuardedRoute, tags=["jobs"])

_EVENTS = {
    "description": "Events `log` (a line), `progress` and `end` (the job), each with JSON data.",
    "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
}


@router.get("/v1/admin/jobs")
@access(Scope.READ)
def list_jobs(
    request: Request,
    kind: str | None = None,
    state: JobState | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JobList:
    """The newest jobs, newest first."""
    jobs = worker_of(request).store.jobs.list(kind, state, limit)
    return {"jobs": [job_document(job) for job in jobs]}


@router.get("/v1/admin/jobs/{job}")
@access(Scope.READ)
def show_job(request: Request, job: UUID) -> JobAnswer:
    """The request, state, progress and result of a job."""
    return job_document(worker_of(request).store.jobs.get(job))


@router.get("/v1/admin/jobs/{job}/log")
@access(Scope.READ)
def show_log(
    request: Request,
    job: UUID,
    after: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> JobLog:
    """The last lines that a job wrote for people; with `after`, the first ones behind the line of this number."""
    jobs = worker_of(request).store.jobs
    found = jobs.get(job)
    return {"lines": [log_line_document(line) for line in jobs.log(found.id, after=after, limit=limit)]}


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


@router.post("/v1/admin/jobs/{job}/cancel")
@access(Scope.ADMIN)
def cancel_job(request: Request, job: UUID) -> JobAnswer:
    """Cancel a job: one that waits ends at once, a running one within seconds; status 409 if it has ended."""
    return job_document(worker_of(request).store.jobs.cancel(job, actor=actor_of(request)))


@router.post("/v1/admin/jobs/cancel")
@access(Scope.OPERATE)
def cancel_own_jobs(request: Request, kind: str | None = None) -> CancelledJobs:
    """Cancel the queued jobs of this token, of one kind or all; running ones go on."""
    actor = actor_of(request)
    return {"cancelled": worker_of(request).store.jobs.cancel_queued(actor, kind=kind, actor=actor)}


def accept_job(job: Job) -> JSONResponse:
    """Return status 202 with the job; `Location` is the address of its state."""
    return JSONResponse(job_document(job), 202, {"Location": f"/v1/admin/jobs/{job.id}"})
