"""The pages of jobs: the newest ones, and one with its progress, its log, its report, and the button to cancel it."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.operations.administration.jobs import CancelJob, ListJobs, ShowJob, ShowLog
from lifelong_core.store import Store
from lifelong_core.values.errors import LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, LIVE, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out, worker_of

if TYPE_CHECKING:
    from lifelong_core.design import UncertaintyAwareScores

MOST = 100
"""Newest jobs that are listed."""
LIST = "/console/jobs"
_LINES = 100
"""Last lines of the log that are shown."""
_FIGURES = {
    "validation_loss": "Validation loss",
    "validation_metric": "Balanced accuracy",
    "learning_rate": "Learning rate",
    "images_per_second": "Images per second",
    "device": "Device",
}

_REPORTED = ("validate", "compare")
"""Kinds of jobs whose result has a report."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(ListJobs.operation.scope)
def list_jobs(request: Request) -> Response:
    """Show the newest jobs."""
    jobs = carry_out(request, ListJobs(limit=MOST)).jobs
    is_live = any(job.finished_at is None for job in jobs)
    return page(
        request,
        "jobs",
        headers=LIVE if is_live else None,
        is_live=is_live,
        path=LIST,
        lines=[_shown(job) for job in jobs],
    )


@router.get(LIST + "/{identifier}")
@access(ShowJob.operation.scope)
def show_job(request: Request, identifier: UUID) -> Response:
    """Show a job; the page of one that has not ended keeps its progress up to date."""
    return _job_page(request, identifier)


@router.get(LIST + "/{identifier}/report")
@access(Scope.READ)
def show_report(request: Request, identifier: UUID) -> Response:
    """The report of a validation or a comparison as a self-contained page."""
    from lifelong_service.routes.admin.validations import REPORT_HEADERS, artifact_of

    content = artifact_of(worker_of(request).store, identifier, "report")
    return Response(content, media_type="text/html", headers=REPORT_HEADERS)


@router.post(LIST + "/{identifier}/cancel")
@access(CancelJob.operation.scope, media_types=FORM)
def cancel(request: Request, identifier: UUID, form: Form) -> Response:
    """Cancel the job."""

    def refused(error: LifelongError, status: int) -> Response:
        return _job_page(request, identifier, status=status, error=error)

    return decide(
        request, form, lambda: CancelJob(job=identifier), back=f"{LIST}/{identifier}", refused=refused
    )


def _job_page(
    request: Request, identifier: UUID, *, status: int = 200, error: LifelongError | None = None
) -> Response:
    job = carry_out(request, ShowJob(job=identifier))
    return page(
        request,
        "job",
        status=status,
        headers=None if job.finished_at else LIVE,
        is_live=job.finished_at is None,
        path=f"{LIST}/{job.id}",
        job_view=_shown(job),
        log=carry_out(request, ShowLog(job=identifier, limit=_LINES)).lines,
        error=error,
        report=f"{LIST}/{job.id}/report" if _has_report(job) else None,
        scores=_scores(worker_of(request).store, job),
    )


def _has_report(job: JobAnswer) -> bool:
    return job.kind in _REPORTED and job.state == "succeeded" and "report" in (job.result or {})


def _scores(store: Store, job: JobAnswer) -> dict[str, Any] | None:
    """The changes of the uncertainty-aware scores of a validation in words; None without any."""
    from lifelong_core.design import ValidationResult
    from lifelong_core.design.report.uncertainty import change_rows, uncertainty_source

    digest = (job.result or {}).get("result")
    if job.kind != "validate" or job.state != "succeeded" or not isinstance(digest, str):
        return None
    try:
        found = ValidationResult.from_json(store.artifacts.get(digest))
    except LifelongError:  # deleted after its retention time, or of a newer version
        return None
    scores: UncertaintyAwareScores | None = found.uncertainty_aware
    if scores is None:
        return None
    return {
        "source": uncertainty_source(scores),
        "rows": change_rows(scores),
        "level": found.level,
        "warnings": scores.warnings,
    }


def _shown(job: JobAnswer) -> dict[str, Any]:
    """A job with its progress in words."""
    progress = job.progress or {}
    return {
        "job": job,
        "path": f"{LIST}/{job.id}",
        "state": "being cancelled" if job.finished_at is None and job.cancelled_at else job.state,
        "fraction": progress.get("fraction"),
        "phase": _phase(progress),
        "figures": {
            title: progress[name] for name, title in _FIGURES.items() if progress.get(name) is not None
        },
    }


def _phase(progress: dict[str, Any]) -> str:
    """Phase and epoch of a training; empty for other kinds."""
    phase = str(progress.get("phase", "")).replace("_", " ")
    epoch, epochs = progress.get("epoch"), progress.get("epochs")
    return phase if epoch is None or epochs is None else f"{phase}, epoch {epoch} of at most {epochs}"
