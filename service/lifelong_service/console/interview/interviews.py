"""The start of the choice of metrics and the list of interviews, with forms to start and to discard an interview."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.registry import TaskAnswer
from lifelong_core.operations.design.interviews import DiscardInterview, ListInterviews, StartInterview
from lifelong_core.operations.design.recommendations import ListRecommendations
from lifelong_core.operations.tasks import ListTasks
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.interview.views import DAMAGED, path_of, summary
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out

FEW = 3
"""Largest number of interviews on the start page."""
MOST = 50
"""Largest number of interviews in the list; the stage of each takes some milliseconds."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/start")
@access(Scope.READ)
def start(request: Request) -> Response:
    """Show the newest interviews, and the tasks with their metrics."""
    return _listed(request, "start", limit=FEW)


@router.get("/console/interviews")
@access(Scope.READ)
def list_interviews(request: Request) -> Response:
    """Show the interviews, newest first."""
    return _listed(request, "interviews")


@router.post("/console/interviews")
@access(Scope.OPERATE, media_types=FORM)
def begin(request: Request, form: Form) -> Response:
    """Start an interview, optionally for a task or for named classes."""
    task, classes = str(form.get("task", "")), str(form.get("classes", ""))
    names = [name.strip() for name in classes.split(",") if name.strip()]
    try:
        call = StartInterview.read({"task": task} if task else {"class_names": names or None})
        started = carry_out(request, call)
    except InvalidInputError as error:
        return _listed(request, "interviews", status=422, error=error, task=task, classes=classes)
    return see_other(path_of(started))


@router.post("/console/interviews/{identifier}/discard")
@access(Scope.OPERATE, media_types=FORM)
def discard(request: Request, identifier: UUID, form: Form) -> Response:
    """Delete an interview; recommendations attached to tasks stay."""

    def refused(error: LifelongError, status: int) -> Response:
        return _listed(request, "interviews", status=status, error=error)

    return decide(
        request,
        form,
        lambda: DiscardInterview(interview=identifier),
        back="/console/interviews",
        refused=refused,
    )


def _listed(
    request: Request,
    template: str,
    *,
    status: int = 200,
    limit: int = MOST,
    error: LifelongError | None = None,
    task: str = "",
    classes: str = "",
) -> Response:
    listed = carry_out(request, ListInterviews(limit=limit + 1)).interviews
    return page(
        request,
        template,
        status=status,
        has_more=len(listed) > limit,
        is_start=template == "start",
        error=error,
        typed={"task": task, "classes": classes},
        tasks=[_task(request, task) for task in carry_out(request, ListTasks()).tasks],
        interviews=[summary(interview) for interview in listed[:limit]],
    )


def _task(request: Request, task: TaskAnswer) -> dict[str, Any]:
    """A task with the labels of its metrics; a damaged recommendation stays in the list."""
    attached = carry_out(request, ListRecommendations(task=task.name)).recommendations[-1:]
    return {
        "name": task.name,
        "class_names": task.class_names,
        "attached": [
            {"version": one.version, "by": one.created_by, "labels": [DAMAGED] if one.damaged else one.labels}
            for one in attached
        ],
    }
