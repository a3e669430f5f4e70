"""The pages of trainings: the newest ones, and how one model was trained, with the curves of its epochs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.store import Store, StoredTraining
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, worker_of

if TYPE_CHECKING:
    from lifelong_core.develop.training.result import EpochRecord, TrainingResult


MOST = 100
"""Newest trainings that are listed."""
LIST = "/console/trainings"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)

WIDTH, HEIGHT, MARGIN = 560, 200, 44
"""Of a chart in pixels; the margin is for the axes."""


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


@dataclass(frozen=True)
class Line:
    """One curve: its name, its class in the style sheet, and its points as SVG wants them."""

    name: str
    style: str
    points: str


@dataclass(frozen=True)
class Chart:
    """Curves of one phase over its epochs."""

    title: str
    lines: tuple[Line, ...]
    low: str
    high: str
    last: int
    """number of the last epoch"""
    best: float | None
    """place of the best epoch; None: this phase has none"""


def charts_of(result: "TrainingResult") -> list[Chart]:
    """Loss and balanced accuracy of each phase with two epochs or more."""
    found: list[Chart] = []
    for phase, group in groupby(result.epochs, key=lambda one: one.phase):
        epochs = list(group)
        if len(epochs) < 2:
            continue
        best = result.best_epoch if phase == "training" else None
        found.append(
            _chart(
                f"Loss, {phase}",
                epochs,
                best,
                (
                    ("training", lambda one: one.training_loss),
                    ("validation", lambda one: one.validation_loss),
                ),
            )
        )
        found.append(
            _chart(
                f"Balanced accuracy on the validation split, {phase}",
                epochs,
                best,
                (("validation", lambda one: one.validation_metric),),
            )
        )
    return found


def _chart(
    title: str,
    epochs: "Sequence[EpochRecord]",
    best: int | None,
    curves: "Sequence[tuple[str, Callable[[EpochRecord], float]]]",
) -> Chart:
    values = [value_of(one) for _, value_of in curves for one in epochs]
    low, high = min(values), max(values)
    span, last = high - low or 1.0, epochs[-1].epoch

    def x(epoch: int) -> float:
        return round(MARGIN + (WIDTH - MARGIN - 8) * (epoch - 1) / max(last - 1, 1), 1)

    def y(value: float) -> float:
        return round(8 + (HEIGHT - MARGIN - 8) * (high - value) / span, 1)

    lines = tuple(
        Line(name, name, " ".join(f"{x(one.epoch)},{y(value_of(one))}" for one in epochs))
        for name, value_of in curves
    )
    return Chart(title, lines, f"{low:.3g}", f"{high:.3g}", last, None if best is None else x(best))
