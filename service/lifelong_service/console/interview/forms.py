"""Pages and forms of one interview: one question, contradiction or choice per page."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.design.interviews import InterviewAnswer, InterviewRecord
from lifelong_core.operations.design.interviews import AnswerQuestions, ChooseOptions, changed_by
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_service.console.interview.inputs import RULE, answer_of, filled_costs
from lifelong_service.console.interview.pages import interview_page, item_page, submit_label
from lifelong_service.console.interview.views import item_path, path_of, question_of
from lifelong_service.console.pages import see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, actor_of, carry_out, worker_of

if TYPE_CHECKING:
    from lifelong_core.design.interview.interview import Interview

GONE_ON = (
    "The interview has changed since that page was shown. "
    "Your answer is not saved yet; save it if it still holds."
)

FILLED_IN = (
    "The table is filled in and not saved yet. Look through it, change what does not fit, and press {button}."
)

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/interviews/{identifier}")
@access(Scope.READ)
def show(request: Request, identifier: UUID, item: str = "", columns: str = "") -> Response:
    """Show the next question, contradiction or choice, or the item in the address."""
    record = worker_of(request).store.interviews.get(identifier)
    if item:
        return item_page(request, record, item, abstains={"abstain": True, "plain": False}.get(columns))
    if record.interview.stage == "complete":
        return see_other(f"{path_of(record)}/result")
    return interview_page(request, record)


@router.get("/console/interviews/{identifier}/answers")
@router.get("/console/interviews/{identifier}/choices")
@router.get("/console/interviews/{identifier}/resolve")
@router.get("/console/interviews/{identifier}/withdraw")
@access(Scope.READ)
def leave_form(identifier: UUID) -> Response:
    """Redirect to the interview: browsers show these addresses after a form and may load them again."""
    return see_other(f"/console/interviews/{identifier}")


@router.post("/console/interviews/{identifier}/answers")
@access(Scope.OPERATE, media_types=FORM)
def answer(request: Request, identifier: UUID, form: Form) -> Response:
    """Answer a question, or change its answer."""
    question = question_of(str(form.get("field", "")))
    if "fill" in form and question.kind == "matrix":
        return _fill_in(request, identifier, form)

    def answered(interview: "Interview") -> dict[str, Any]:
        return {question.field: answer_of(question, interview, form)}

    return _changed(request, identifier, form, answered, item=question.field)


def _fill_in(request: Request, identifier: UUID, form: Form) -> Response:
    """Show the table of costs as a rule or a pasted table fills it in; nothing is saved."""
    record = worker_of(request).store.interviews.get(identifier)
    try:
        filled = filled_costs(record.interview, form)
    except InvalidInputError as error:
        named = InvalidInputError(f"the rule or table: {error.message}", field=RULE, hint=error.hint)
        return item_page(request, record, "costs", rule=str(form.get(RULE, "")), error=named)
    notice = FILLED_IN.format(button=submit_label(record, "costs"))
    return item_page(request, record, "costs", typed=filled, rule=str(form.get(RULE, "")), notice=notice)


@router.post("/console/interviews/{identifier}/withdraw")
@access(Scope.OPERATE, media_types=FORM)
def withdraw(request: Request, identifier: UUID, form: Form) -> Response:
    """Withdraw an answer."""
    question = question_of(str(form.get("field", "")))
    return _changed(request, identifier, form, lambda _: {question.field: None})


@router.post("/console/interviews/{identifier}/resolve")
@access(Scope.OPERATE, media_types=FORM)
def resolve(request: Request, identifier: UUID, form: Form) -> Response:
    """Resolve a contradiction by one of its resolutions."""
    name, index = str(form.get("contradiction", "")), str(form.get("resolution", ""))

    def resolved(interview: "Interview") -> dict[str, Any]:
        for contradiction in interview.contradictions:
            resolutions = {str(number): offered for number, offered in enumerate(contradiction.resolutions)}
            if contradiction.id == name and index in resolutions:
                return dict(resolutions[index].answers)
        raise NotFoundError("there is no such contradiction any more.", hint="Go back to the interview.")

    return _changed(request, identifier, form, resolved)


@router.post("/console/interviews/{identifier}/choices")
@access(Scope.OPERATE, media_types=FORM)
def choose(request: Request, identifier: UUID, form: Form) -> Response:
    """Choose options of a guide, or withdraw the choice."""
    guide = str(form.get("guide", ""))
    options = [str(option) for option in form.getlist("option")]

    def chosen(_: "Interview") -> dict[str, Any]:
        if "withdraw" in form:
            return {guide: None}
        if not options:
            raise InvalidInputError(
                "nothing is chosen.", field="option", hint="Choose one, or go on without."
            )
        return {guide: options}

    return _changed(request, identifier, form, chosen, item=guide, call=ChooseOptions)


def _changed(
    request: Request,
    identifier: UUID,
    form: FormData,
    read: Callable[["Interview"], dict[str, Any]],
    *,
    item: str | None = None,
    call: type[AnswerQuestions] | type[ChooseOptions] = AnswerQuestions,
) -> Response:
    """Change an interview at the revision of the form, and redirect to its next page.

    Args:
        request: the request with the form.
        identifier: identifier of the interview.
        form: the form, with the revision on its page.
        read: returns the answers, or choices, in the form.
        item: the item whose page shows an error of the answer; None: the error gets a separate page.
        call: what changes the interview.
    """
    record = worker_of(request).store.interviews.get(identifier)
    part = "choices" if call is ChooseOptions else "answers"

    def asked() -> AnswerQuestions | ChooseOptions:
        given = {"interview": record.id, "revision": record.revision, part: read(record.interview)}
        return call.read(given)

    if str(record.revision) != form.get("revision"):
        return _outdated(request, record, form, asked, item=item)
    try:
        return see_other(_next(carry_out(request, asked())))
    except InvalidInputError as error:
        if item is None:
            raise
        return item_page(request, record, item, typed=form, error=error)
    except ConflictError:
        record = worker_of(request).store.interviews.get(identifier)
        return interview_page(request, record, status=409, notice=_meanwhile(record, actor_of(request)))


def _outdated(
    request: Request,
    record: InterviewRecord,
    form: FormData,
    asked: Callable[[], AnswerQuestions | ChooseOptions],
    *,
    item: str | None,
) -> Response:
    """Return the response to a form of an older page.

    The browser's back button shows such pages, and a double click sends a form twice. If the same user made the latest
    change, the page asks to confirm the answer, unless it equals the saved one.
    """
    actor = actor_of(request)
    if item is None or record.updated_by != actor:
        return interview_page(request, record, status=409, notice=_meanwhile(record, actor))
    with suppress(InvalidInputError):
        changed, known = changed_by(asked(), record.interview), record.interview
        if (changed.fingerprint, changed.choices) == (known.fingerprint, known.choices):
            return see_other(_next(record.answer()))
    return item_page(request, record, item, typed=form, notice=GONE_ON)


def _next(interview: InterviewAnswer) -> str:
    """Return the path of the next page; each question has its own, so that the browser's back button works."""
    if not interview.contradictions and interview.question is not None:
        return item_path(interview, interview.question["field"])
    return path_of(interview)


def _meanwhile(record: InterviewRecord, actor: str) -> str:
    """Return the reason why an answer was not saved."""
    is_own = record.updated_by == actor
    cause = "This interview has changed" if is_own else f"{record.updated_by} has changed this interview"
    return f"{cause} in the meantime. Your answer was not saved; this is the current state of the interview."
