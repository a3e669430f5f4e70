"""Answers of the routes that submit a job."""

from starlette.responses import JSONResponse

from lifelong_core.store import Job
from lifelong_service.documents.design import job_document


def accept_job(job: Job) -> JSONResponse:
    """Return status 202 with the job; `Location` is the address of its state."""
    return JSONResponse(job_document(job), 202, {"Location": f"/v1/admin/jobs/{job.id}"})
