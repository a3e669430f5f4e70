"""`/v1/admin/jobs/{job}/events`: progress and log of a job as server-sent events; the answer of routes that submit one.

A stream ends before the time limit of requests, when the worker drains, and with the job. Clients reconnect by
themselves and go on behind the last event that they have; after the event `end` the answer is 204, which stops them.
"""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import Job, JobAnswer, LogLine
from lifelong_core.values.errors import InvalidInputError, NotFoundError, UnavailableError
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.transport.responses import HEARTBEAT, MEDIA_TYPE, EventStream, event_text, retry_text
from lifelong_service.worker.worker import Worker

router = APIRouter(route_class=GuardedRoute, tags=["jobs"])

END = "end"
"""Identifier of the last event of a job."""
POLL_SECONDS = 0.5
_HEARTBEAT_SECONDS = 3.0
_RETRY_MILLISECONDS = 1000
_MOST_LINES = 200
"""Lines that are read at once."""
_MARGIN_SECONDS = 1.0
"""A stream ends so long before the time limit of a request."""

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
    present = await run_in_threadpool(worker.store.jobs.get, job)
    if after is None:
        return Response(status_code=204)
    token = actor_of(request)
    worker.streams.open(token)
    return EventStream(job_events(worker, present.id, after), partial(worker.streams.close, token))


def accept_job(job: Job) -> JSONResponse:
    """Return status 202 with the job; `Location` is the address of its state."""
    return JSONResponse(JobAnswer.of(job).to_document(), 202, {"Location": f"/v1/admin/jobs/{job.id}"})


def last_number(last_event_id: str | None) -> int | None:
    """The number of the last log line that a client has; None: it has the whole job.

    Args:
        last_event_id: the header `Last-Event-ID`; None: the client begins.

    Raises:
        InvalidInputError: no event has this identifier.
    """
    if last_event_id == END:
        return None
    text = last_event_id or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(2**31 - 1)) - 1:
        raise InvalidInputError(
            f"no event has the identifier {text[:80]!r}.", field="Last-Event-ID", hint="Leave it out."
        )
    return int(text)


async def job_events(worker: Worker, job_id: UUID, after: int) -> AsyncGenerator[str, None]:
    """Events of a job: `log` for each line behind `after`, `progress` for each change, `end` with the job.

    Args:
        worker: its store is asked every POLL_SECONDS.
        job_id: of the job.
        after: number of a log line.
    """
    clock = asyncio.get_running_loop().time
    ends_at = clock() + max(POLL_SECONDS, worker.settings.request_timeout_seconds - _MARGIN_SECONDS)
    shown: tuple[object, ...] = ()
    silent_since = clock()
    yield retry_text(_RETRY_MILLISECONDS)
    while True:
        try:
            job, lines = await run_in_threadpool(_look, worker, job_id, after)
        except (UnavailableError, NotFoundError):  # the next stream says it
            return
        for line in lines:
            after = line.number
            yield event_text("log", line.to_document(), identifier=str(after))
        is_complete = len(lines) < _MOST_LINES
        present = job.state, job.attempts, job.progress, job.cancelled_at
        if present != shown and is_complete:
            shown, silent_since = present, clock()
            yield event_text("progress", _progress(job), identifier=str(after))
        elif lines:
            silent_since = clock()
        elif clock() - silent_since > _HEARTBEAT_SECONDS:
            silent_since = clock()
            yield HEARTBEAT
        if job.finished_at is not None and is_complete:
            yield event_text("end", job.to_document(), identifier=END)
            return
        if clock() >= ends_at or worker.is_draining:
            return
        if is_complete:
            await asyncio.sleep(POLL_SECONDS)


def _look(worker: Worker, job_id: UUID, after: int) -> tuple[JobAnswer, list[LogLine]]:
    """The job, then its lines: a job that has ended writes no more of them."""
    job = JobAnswer.of(worker.store.jobs.get(job_id))
    return job, worker.store.jobs.log(job_id, after=after, limit=_MOST_LINES)


def _progress(job: JobAnswer) -> dict[str, object]:
    document = job.to_document()
    return {name: document[name] for name in ("state", "attempts", "progress", "cancelled_at")}
