"""The pages of trainings: the newest ones, and how one model was trained, with the curves of its epochs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.operations.administration.jobs import ShowJob
from lifelong_core.operations.develop.evaluations import ListValidations
from lifelong_core.operations.develop.retrainings import ListTrainings, ShowTraining
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

if TYPE_CHECKING:
    from lifelong_core.develop.training.result import EpochRecord, TrainingResult


MOST = 100
"""Newest trainings that are listed."""
LIST = "/console/trainings"

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)

WIDTH, HEIGHT, MARGIN = 560, 200, 44
"""Of a chart in pixels; the margin is for the axes."""


@router.get(LIST)
@access(ListTrainings.operation.scope)
def list_trainings(request: Request) -> Response:
    """Show the newest trainings."""
    listed = carry_out(request, ListTrainings(limit=MOST))
    return page(request, "trainings", trainings=listed.trainings, path=LIST)


@router.get(LIST + "/{reference}")
@access(ShowTraining.operation.scope)
def show_training(request: Request, reference: str) -> Response:
    """Show recipe, splits, curves, parity and versions of a training, and how good its model is."""
    from lifelong_core.develop.training.result import TrainingResult

    training = carry_out(request, ShowTraining(model=reference))
    result = TrainingResult.from_document(training.result)
    validations = carry_out(request, ListValidations(model=training.model, limit=1)).validations
    return page(
        request,
        "training",
        training=training,
        result=result,
        evaluation=validations[0] if validations else None,
        job=_job_state(request, training.job),
        charts=charts_of(result),
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
    )


@router.get(LIST + "/{reference}/recipe.json")
@access(ShowTraining.operation.scope)
def export_recipe(request: Request, reference: str) -> Response:
    """The recipe as a file, for another retraining."""
    training = carry_out(request, ShowTraining(model=reference))
    return JSONResponse(
        training.recipe, headers={"Content-Disposition": 'attachment; filename="recipe.json"'}
    )


def _job_state(request: Request, job: UUID) -> str | None:
    """State of the job; None: it was deleted after its retention time."""
    try:
        return carry_out(request, ShowJob(job=job)).state
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
