"""The pages of performance: the populations, and estimated beside realised performance of one."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.store import Store
from lifelong_core.store.performance.statements import describe_comparison, describe_metric, describe_warnings
from lifelong_core.values.errors import UnavailableError
from lifelong_service.console.pages import page
from lifelong_service.console.performance_views import LEFT, RIGHT, TOP, charts_of, rows_of
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, worker_of

LIST = "/console/performance"
MOST = 200
"""Populations that are listed."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(Scope.READ)
def list_populations(request: Request) -> Response:
    """Show the populations whose performance was estimated or counted, with the newest comparison."""
    store = worker_of(request).store
    models = {model.id: model.reference for model in store.models.list()}
    found = sorted(
        (models[model_id], environment, model_id)
        for model_id, environment in store.performance.populations()
        if model_id in models
    )
    lines = [
        {
            "model": reference,
            "environment": environment,
            "path": f"{LIST}/{reference}/{environment}",
            "statements": _statements(store, model_id, environment),
        }
        for reference, environment, model_id in found[:MOST]
    ]
    return page(request, "performance_list", lines=lines, more=max(0, len(found) - MOST))


@router.get(LIST + "/{reference}/{environment}")
@access(Scope.READ)
def show_population(request: Request, reference: str, environment: str) -> Response:
    """Show charts of estimated and realised performance by day, whether they agree, warnings and the numbers."""
    store = worker_of(request).store
    model, name = store.models.get(reference), store.environments.get(environment).name
    found = store.performance.get(model.id, name)
    return page(
        request,
        "performance",
        model=model.reference,
        environment=name,
        found=found,
        statements=[] if found is None else describe_comparison(found),
        warnings=[] if found is None else describe_warnings(found),
        checks=[]
        if found is None
        else [
            (title, check)
            for title, check in (
                ("Calibration of the probabilities", found.calibration_drift),
                ("Selection of the labelled predictions", found.selection),
            )
            if check is not None
        ],
        charts=[] if found is None else charts_of(found),
        rows=[] if found is None else rows_of(found),
        left=LEFT,
        right=RIGHT,
        top=TOP,
        describe_metric=describe_metric,
    )


def _statements(store: Store, model_id: int, environment: str) -> list[str]:
    """Statements of the newest comparison; a damaged one stays in the list."""
    try:
        found = store.performance.get(model_id, environment)
    except UnavailableError as error:
        return [str(error)]
    return [] if found is None else describe_comparison(found)
