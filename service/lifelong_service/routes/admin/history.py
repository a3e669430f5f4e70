"""POST `/v1/admin/cycles/{cycle}/replay`: judge a past cycle again, as a job."""

from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job

router = APIRouter(route_class=GuardedRoute, tags=["history"])


@router.post("/v1/admin/cycles/{cycle}/replay", status_code=202, responses={202: {"model": JobAnswer}})
@access(Scope.OPERATE)
def replay_cycle(request: Request, cycle: UUID) -> JSONResponse:
    """Run a past cycle again on its window and compare the reports; the answer is a job for a monitor.

    The result of the job has `same`; `tolerance`, 0 for an exact comparison (1e-9 for a window of summaries); and
    `differences`, each field that differs with its `recorded` and its `replayed` value. The job fails if the log no
    longer holds the predictions of that window.
    """
    store = worker_of(request).store
    payload = {"cycle": str(store.cycles.get(cycle).id)}
    return accept_job(store.jobs.submit("replay", payload, actor=actor_of(request)))
