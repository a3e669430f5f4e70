"""The pages of trainings: the newest ones, and how one model was trained."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.store import Store, StoredTraining
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.console.training_views import HEIGHT, MARGIN, WIDTH, charts_of
from lifelong_service.guard.access import access, worker_of

MOST = 100
"""Newest trainings that are listed."""
LIST = "/console/trainings"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(Scope.READ)
def list_trainings(request: Request) -> Response:
    """Show the newest trainings."""
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    tasks = {task.id: task for task in store.tasks.list()}
    lines = [
        {
            "model": models[one.model_id].reference,
            "task": tasks[models[one.model_id].task_id].name,
            "recipe": one.recipe,
            "created_at": one.created_at,
            "created_by": one.created_by,
            "path": f"{LIST}/{models[one.model_id].reference}",
        }
        for one in store.trainings.list(MOST)
        if one.model_id in models
    ]
    return page(request, "trainings", lines=lines)


@router.get(LIST + "/{reference}")
@access(Scope.READ)
def show_training(request: Request, reference: str) -> Response:
    """Show recipe, splits, curves, parity and versions of a training, and how good its model is."""
    from lifelong_core.develop.training.result import TrainingResult

    store = worker_of(request).store
    model = store.models.get(reference)
    training = store.trainings.get(model.reference)
    result = TrainingResult.from_json(store.artifacts.get(training.result))
    evaluations = store.evaluations.list(model.reference)
    return page(
        request,
        "training",
        model=model.reference,
        training=training,
        result=result,
        evaluation=evaluations[0] if evaluations else None,
        job=_job_state(store, training),
        charts=charts_of(result),
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
    )


@router.get(LIST + "/{reference}/recipe.json")
@access(Scope.READ)
def export_recipe(request: Request, reference: str) -> Response:
    """The recipe as a file, for another retraining."""
    training = worker_of(request).store.trainings.get(reference)
    return Response(
        training.recipe.to_json(),
        media_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="recipe.json"'},
    )


@router.get(LIST + "/{reference}/report")
@access(Scope.READ)
def show_report(request: Request, reference: str) -> Response:
    """The promotion report of a training as a self-contained page."""
    from lifelong_service.routes.admin.validations import REPORT_HEADERS

    store = worker_of(request).store
    training = store.trainings.get(reference)
    if training.report_page is None:
        raise NotFoundError(
            f"the training of {reference[:80]} was compared with no other model.", field="model"
        )
    return Response(store.artifacts.get(training.report_page), media_type="text/html", headers=REPORT_HEADERS)


def _job_state(store: Store, training: StoredTraining) -> str | None:
    """State of the job; None: it was deleted after its retention time."""
    try:
        return store.jobs.get(training.job_id).state
    except NotFoundError:
        return None
