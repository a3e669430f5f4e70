"""The result of an interview: the metrics with reasons, the download, and the form to attach them to a task."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.registry import Task
from lifelong_core.operations.design.interviews import finished_recommendation
from lifelong_core.operations.design.recommendations import AttachRecommendation
from lifelong_core.store import Store
from lifelong_core.store.design.effects import effects_of
from lifelong_core.store.heads.checks import follows_task
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.interview.pages import interview_page
from lifelong_service.console.interview.result_views import result_view
from lifelong_service.console.interview.thresholds import prefilled, threshold_rows, thresholds_of
from lifelong_service.console.interview.views import list_answers, moment, path_of, title_of
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, worker_of

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.entities.design.interviews import InterviewRecord
    from lifelong_core.entities.design.recommendations import AttachedRecommendation

UNFINISHED = ("questions", "contradictions")
"""Stages without recommended metrics."""
TOO_EARLY = (
    "The interview has open questions, so there are no metrics to attach yet. This is its current state."
)

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/interviews/{identifier}/result")
@access(Scope.READ)
def show(request: Request, identifier: UUID) -> Response:
    """Show the metric cards."""
    record = worker_of(request).store.interviews.get(identifier)
    if record.interview.stage in UNFINISHED:
        return see_other(path_of(record))
    return _shown(request, record)


@router.get("/console/interviews/{identifier}/recommendation.json")
@access(Scope.READ)
def download(request: Request, identifier: UUID) -> Response:
    """Return the recommendation as a JSON file."""
    record = worker_of(request).store.interviews.get(identifier)
    return Response(
        record.interview.recommendation().to_json(),
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="recommendation-{record.id}.json"'},
    )


@router.get("/console/interviews/{identifier}/attach")
@access(Scope.READ)
def show_again(request: Request, identifier: UUID) -> Response:
    """Return to the metric cards: a browser asks for the address of the form when it is opened again."""
    return see_other(f"{path_of(worker_of(request).store.interviews.get(identifier))}/result")


@router.post("/console/interviews/{identifier}/attach")
@access(Scope.ADMIN, media_types=FORM)
def attach(request: Request, identifier: UUID, form: Form) -> Response:
    """Attach the recommendation to a task."""
    store = worker_of(request).store
    record = store.interviews.get(identifier)
    if record.interview.stage in UNFINISHED:
        return interview_page(request, record, status=409, notice=TOO_EARLY)

    def refused(error: LifelongError, status: int) -> Response:
        return _shown(request, record, status=status, typed=form, error=error)

    result = f"{path_of(record)}/result"
    return decide(
        request,
        form,
        lambda: _attached_by(request, record, form),
        back=result,
        goal=lambda _: f"{result}#attached",
        refused=refused,
    )


def _attached_by(request: Request, record: "InterviewRecord", form: FormData) -> AttachRecommendation:
    if str(record.revision) != form.get("revision"):
        raise ConflictError(
            "the interview has changed since this page was shown, so nothing was attached.",
            hint="Check the metrics on this page, then attach them.",
        )
    task = str(form.get("task", ""))
    if task not in {found.name for found in _tasks(worker_of(request).store, record)}:
        raise InvalidInputError("choose a task from the list.", field="task")
    thresholds = thresholds_of(finished_recommendation(record), record.interview.class_labels, form)
    call = {
        "task": task,
        "interview": record.id,
        "thresholds": [threshold.model_dump() for threshold in thresholds],
        "refit_head": "refit" in form,
        "force_reason": str(form.get("reason", "")).strip() or None,
    }
    return AttachRecommendation.read(call)


def _shown(
    request: Request,
    record: "InterviewRecord",
    *,
    status: int = 200,
    typed: FormData | None = None,
    error: LifelongError | None = None,
) -> Response:
    store = worker_of(request).store
    interview = record.interview
    recommendation = interview.recommendation()
    tasks = _tasks(store, record)
    attached = _attached(store, tasks, recommendation)
    known = typed
    if typed is None and attached:
        known = prefilled(recommendation, interview.class_labels, attached[0]["thresholds_in_force"])
    return page(
        request,
        "result",
        status=status,
        path=path_of(record),
        title=title_of(record),
        revision=record.revision,
        result=result_view(interview, recommendation),
        answers=list_answers(interview),
        tasks=tasks,
        typed={"task": attached[0]["task"] if attached else ""} if typed is None else typed,
        thresholds=threshold_rows(recommendation, interview.class_labels, known, error),
        attached=attached,
        error=error,
    )


def _tasks(store: Store, record: "InterviewRecord") -> list[Task]:
    """Return the tasks that the metrics fit: the task of the interview, else all with its classes in this order."""
    if record.task is not None:
        return [store.tasks.get(record.task)]
    names, count = record.interview.class_names, record.interview.fingerprint.number_of_classes
    return [
        task
        for task in store.tasks.list()
        if len(task.class_names) == count and names in (None, task.class_names)
    ]


def _attached(store: Store, tasks: list[Task], shown: "Recommendation") -> list[dict[str, Any]]:
    """Return the tasks to which these metrics are attached."""
    newest = [store.recommendations.current(task.name) for task in tasks]
    return [
        {
            "task": found.task,
            "version": found.version,
            "by": found.created_by,
            "at": moment(found.created_at),
            "thresholds": [f"{threshold.metric} {threshold.value:g}" for threshold in found.thresholds],
            "thresholds_in_force": found.thresholds,
            "effects": effects_of(store, found),
            **_heads(store, found.task),
        }
        for found in newest
        if found is not None and _is_same(found, shown)
    ]


def _is_same(attached: "AttachedRecommendation", shown: "Recommendation") -> bool:
    """Whether the attached recommendation has the content of the shown one, whatever its text."""
    try:
        return attached.recommendation.is_same(shown)
    except LifelongError:  # damaged
        return False


def _heads(store: Store, task_name: str) -> dict[str, list[str]]:
    """Return the heads of a task's promoted model that use its costs and its rule, and those that are damaged."""
    registry = store.registry()
    task = next(task for task in registry.tasks.values() if task.name == task_name)
    found: dict[str, list[str]] = {"follow": [], "damaged": []}
    for place in sorted({*registry.heads, *registry.damaged}, key=lambda place: place[1] or ""):
        if place[0] != task.promoted_model_id:
            continue
        where = "the default head" if place[1] is None else f"the head of {place[1]}"
        if place in registry.damaged:
            found["damaged"].append(f"{where} is damaged: {registry.damaged[place]}")
        elif follows_task(registry.heads[place].head, task):
            pin = registry.pins.get(place)
            held = "" if pin is None else f", pinned by {pin.pinned_by}: {pin.reason}"
            found["follow"].append(f"{where} (version {registry.heads[place].version}{held})")
    return found
