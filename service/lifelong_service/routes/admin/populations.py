"""`/v1/admin/populations/{reference}/{environment}`: operations on one population."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job

router = APIRouter(route_class=GuardedRoute, tags=["populations"])


@router.post(
    "/v1/admin/populations/{reference}/{environment}/cycle",
    status_code=202,
    responses={202: {"model": JobAnswer}},
)
@access(Scope.OPERATE)
def run_cycle(request: Request, reference: str, environment: str) -> JSONResponse:
    """Run a cycle of a population now, even without new predictions; the answer is a job.

    A monitor runs it like a scheduled cycle: under the lease of the population, with its policy, mode and pins, and
    records it. The result of the job has the id of the cycle (equal to the id of the job), its outcome (`keep`, `swap`,
    `proposes a swap`, `would swap`, `refuse`; `skip`: no cycle was recorded) and the reason.
    """
    store = worker_of(request).store
    payload = {
        "model": store.models.get(reference).reference,
        "environment": store.environments.get(environment).name,
    }
    return accept_job(store.jobs.submit("cycle", payload, actor=actor_of(request)))
