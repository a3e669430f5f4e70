"""The pages of tasks: models, trial with the figures of both models, and the forms to try, promote and roll back."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.operations.models import PromoteModel
from lifelong_core.operations.operation import Call
from lifelong_core.operations.trials import EndTrial, NewCanary, RollBackModel, StartShadow
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.names import Name
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.console.trial_views import task_lines, task_view
from lifelong_service.guard.access import access, context_of, worker_of

LIST = "/console/tasks"
_MOST_DIGITS = 18
"""Of a sequence; Python refuses to read numbers of more than 4,300 digits."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(LIST)
@access(Scope.READ)
def list_tasks(request: Request) -> Response:
    """Show the tasks with their promoted model and their trial."""
    return page(request, "tasks", lines=task_lines(worker_of(request).store), path=LIST)


@router.get(f"{LIST}/{{task}}")
@access(Scope.READ)
def show_task(request: Request, task: Name) -> Response:
    """Show the models of a task, its trial and its promotions, and the forms."""
    return _task_page(request, task)


@router.post(f"{LIST}/{{task}}/shadow")
@access(Scope.OPERATE, media_types=FORM)
def start_shadow(request: Request, task: Name, form: Form) -> Response:
    """Let a model decide for the log only."""
    return _decide(request, task, form, lambda: StartShadow(model=_model(request, task, form)))


@router.post(f"{LIST}/{{task}}/canary")
@access(Scope.OPERATE, media_types=FORM)
def start_canary(request: Request, task: Name, form: Form) -> Response:
    """Let a model answer a share of the requests."""
    return _decide(
        request,
        task,
        form,
        lambda: NewCanary(model=_model(request, task, form), share=_share(form), force_reason=_reason(form)),
    )


@router.post(f"{LIST}/{{task}}/promote")
@access(Scope.OPERATE, media_types=FORM)
def promote(request: Request, task: Name, form: Form) -> Response:
    """Promote the candidate."""
    return _decide(
        request,
        task,
        form,
        lambda: PromoteModel(model=_model(request, task, form), force_reason=_reason(form)),
    )


@router.post(f"{LIST}/{{task}}/end")
@access(Scope.OPERATE, media_types=FORM)
def end_trial(request: Request, task: Name, form: Form) -> Response:
    """Take the candidate away."""
    return _decide(request, task, form, lambda: EndTrial(task=task))


@router.post(f"{LIST}/{{task}}/rollback")
@access(Scope.OPERATE, media_types=FORM)
def roll_back(request: Request, task: Name, form: Form) -> Response:
    """Promote the model that was promoted before the present one."""
    return _decide(
        request,
        task,
        form,
        lambda: RollBackModel(task=task, expected_sequence=_sequence(str(form.get("sequence", "")))),
    )


def _decide(request: Request, task: str, form: FormData, read: Callable[[], Call[Any]]) -> Response:
    """Carry out the call of a form and show the task; if it is refused, the page with the error and what was typed."""

    def refused(error: LifelongError, status: int) -> Response:
        return _task_page(request, task, status=status, error=error, typed=form)

    return decide(request, form, read, back=f"{LIST}/{task}", refused=refused)


def _task_page(
    request: Request,
    task: str,
    *,
    status: int = 200,
    error: LifelongError | None = None,
    typed: FormData | None = None,
) -> Response:
    return page(
        request,
        "task",
        status=status,
        path=f"{LIST}/{task}",
        error=error,
        typed={"model": "", "percent": "", "reason": ""} | dict(typed or {}),
        **task_view(context_of(request), task),
    )


def _model(request: Request, task: str, form: FormData) -> str:
    """The chosen model of the task.

    Raises:
        InvalidInputError: it is a model of another task.
        NotFoundError: there is no such model.
    """
    store = worker_of(request).store
    model = store.models.get(str(form.get("model", "")))
    if model.task_id != store.tasks.get(task).id:
        raise InvalidInputError(f"{model.reference} is no model of {task}.", field="model")
    return model.reference


def _sequence(seen: str) -> int:
    """The newest promotion that the page showed."""
    if not seen.isdecimal() or len(seen) > _MOST_DIGITS:
        raise InvalidInputError(
            "the form names no promotion.", field="sequence", hint="Send it from this page."
        )
    return int(seen)


def _share(form: FormData) -> float:
    """The share in percent as a number in 0..1; `start_trial` checks its range."""
    text = str(form.get("percent", "")).strip().removesuffix("%").strip().replace(",", ".")
    try:
        return float(text) / 100
    except ValueError as error:
        raise InvalidInputError(
            "expected a number of percent, above 0 and at most 100.", field="percent"
        ) from error


def _reason(form: FormData) -> str | None:
    """The reason that overrides the acceptance thresholds; None: none was given."""
    return str(form.get("reason", "")).strip() or None
