"""Jobs: long work that monitors do. List, show, read the log, cancel."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.jobs import JobAnswer, JobState, LogLine
from lifelong_core.operations.operation import Call, Context, operation

_EXAMPLE = UUID("01a20676-ec35-71e3-9541-7358988905de")


@dataclass(frozen=True, kw_only=True)
class JobList(Entity):
    """Jobs, newest first."""

    jobs: list[JobAnswer]


@dataclass(frozen=True, kw_only=True)
class JobLog(Entity):
    """Lines of the log of a job, in their order."""

    lines: list[LogLine]


@dataclass(frozen=True, kw_only=True)
class CancelledJobs(Entity):
    """Number of jobs that a request cancelled."""

    cancelled: int


class ListJobs(Call[JobList]):
    """Which jobs are wanted."""

    kind: str | None = None
    state: JobState | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ShowJob(Call[JobAnswer]):
    """A job."""

    job: UUID


class ShowLog(Call[JobLog]):
    """A job, and which lines of its log are wanted."""

    job: UUID
    after: Annotated[int | None, Field(ge=0, lt=2**31)] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000


class CancelJob(Call[JobAnswer]):
    """A job."""

    job: UUID


class CancelOwnJobs(Call[CancelledJobs]):
    """The kind of the jobs; without it, all kinds."""

    kind: str | None = None


@operation("GET", "/v1/admin/jobs", scope=Scope.READ, example=ListJobs())
def list_jobs(context: Context, call: ListJobs) -> JobList:
    """The newest jobs, newest first."""
    jobs = context.store.jobs.list(call.kind, call.state, call.limit)
    return JobList(jobs=[JobAnswer.of(job) for job in jobs])


@operation("GET", "/v1/admin/jobs/{job}", scope=Scope.READ, example=ShowJob(job=_EXAMPLE))
def show_job(context: Context, call: ShowJob) -> JobAnswer:
    """The request, state, progress and result of a job."""
    return JobAnswer.of(context.store.jobs.get(call.job))


@operation("GET", "/v1/admin/jobs/{job}/log", scope=Scope.READ, example=ShowLog(job=_EXAMPLE))
def show_log(context: Context, call: ShowLog) -> JobLog:
    """The last lines that a job wrote for people; with `after`, the first ones behind the line of this number."""
    jobs = context.store.jobs
    job = jobs.get(call.job)
    return JobLog(lines=jobs.log(job.id, after=call.after, limit=call.limit))


@operation("POST", "/v1/admin/jobs/{job}/cancel", scope=Scope.ADMIN, example=CancelJob(job=_EXAMPLE))
def cancel_job(context: Context, call: CancelJob) -> JobAnswer:
    """Cancel a job: one that waits ends at once, a running one within seconds; status 409 if it has ended."""
    return JobAnswer.of(context.store.jobs.cancel(call.job, actor=context.actor))


@operation(
    "POST", "/v1/admin/jobs/cancel", scope=Scope.OPERATE, example=CancelOwnJobs(kind="cycle"), has_body=False
)
def cancel_own_jobs(context: Context, call: CancelOwnJobs) -> CancelledJobs:
    """Cancel the queued jobs of this token, of one kind or all; running ones go on."""
    jobs, actor = context.store.jobs, context.actor
    return CancelledJobs(cancelled=jobs.cancel_queued(actor, kind=call.kind, actor=actor))
