"""`/v1/admin/interviews`: questions about a clinical problem that lead to suitable metrics."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import ConflictError, InvalidInputError
from lifelong_core.values.names import Name
from lifelong_service.documents.design import interview_document, interview_summary, recommendation_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.design import InterviewAnswer, InterviewList, RecommendationAnswer

# The design loop is imported by the endpoints that need it: loading it takes longer than a worker may to start.
if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.store.design.records import InterviewRecord

router = APIRouter(route_class=GuardedRoute, tags=["interviews"])


class NewInterview(RequestDocument):
    """Facts known before the first question; a task implies its class names, and these the number of classes."""

    task: Name | None = None
    class_names: list[str] | None = None
    answers: dict[str, Any] = Field({}, description="Field, or item of the source, -> answer.")


class SeenInterview(RequestDocument):
    """With `revision`, the request fails if the interview has changed since that revision."""

    revision: int | None = Field(None, ge=1, le=2**31 - 1)


class NewAnswers(SeenInterview):
    """Answers by field, or by item of the source: values, or texts such as `yes` or `10 %`.

    null withdraws an answer.
    """

    answers: dict[str, Any] = Field(min_length=1, description="Field, or item of the source, -> answer.")


class NewChoices(SeenInterview):
    """By guide, the option or options to take; null leaves the choice to the answers."""

    choices: dict[str, str | list[str] | None] = Field(min_length=1)


@router.get("/v1/admin/interviews")
@access(Scope.READ)
def list_interviews(request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 100) -> InterviewList:
    """The newest interviews, newest first, without their questions and answers."""
    return {
        "interviews": [
            interview_summary(record) for record in worker_of(request).store.interviews.list(limit)
        ]
    }


@router.post("/v1/admin/interviews", status_code=201)
@access(Scope.OPERATE)
def start_interview(request: Request, new: NewInterview) -> InterviewAnswer:
    """Start an interview; the answer holds the first question."""
    from lifelong_core.design.interview.interview import start_interview as start

    store = worker_of(request).store
    names = new.class_names
    if new.task is not None:
        of_task = list(store.tasks.get(new.task).class_names)
        if names not in (None, of_task):
            raise InvalidInputError(
                f"the task {new.task} has the classes {', '.join(of_task)}.",
                field="class_names",
                hint="Leave them out: the interview takes those of the task.",
            )
        names = of_task
    interview = start(class_names=names)
    if new.answers:
        interview = interview.with_answers(_values(new.answers, interview))
    return interview_document(store.interviews.start(interview, task=new.task, actor=actor_of(request)))


@router.get("/v1/admin/interviews/{interview}")
@access(Scope.READ)
def show_interview(request: Request, interview: UUID) -> InterviewAnswer:
    """The state of an interview: next question, contradictions, open choices, and all answers."""
    return interview_document(worker_of(request).store.interviews.get(interview))


@router.post("/v1/admin/interviews/{interview}/answers")
@access(Scope.OPERATE)
def answer(request: Request, interview: UUID, new: NewAnswers) -> InterviewAnswer:
    """Give, change or withdraw answers, all or none; the answer holds the next question."""
    return _changed(
        request, interview, new, lambda present: present.with_answers(_values(new.answers, present))
    )


@router.post("/v1/admin/interviews/{interview}/choices")
@access(Scope.OPERATE)
def choose(request: Request, interview: UUID, new: NewChoices) -> InterviewAnswer:
    """Choose options where several metrics fit."""

    def decided(present: "Interview") -> "Interview":
        for guide, options in new.choices.items():
            present = present.choose(guide, options)
        return present

    return _changed(request, interview, new, decided)


@router.post("/v1/admin/interviews/{interview}/back")
@access(Scope.OPERATE)
def go_back(request: Request, interview: UUID, seen: SeenInterview | None = None) -> InterviewAnswer:
    """Withdraw the latest answer or choice; all others stay."""
    return _changed(request, interview, seen, lambda present: present.back())


@router.post("/v1/admin/interviews/{interview}/finish")
@access(Scope.OPERATE)
def finish(request: Request, interview: UUID, seen: SeenInterview | None = None) -> RecommendationAnswer:
    """The recommendation; status 409 names missing answers or explains contradictions.

    The request changes nothing: attach the recommendation with `POST /v1/admin/tasks/{task}/recommendations`.
    """
    record = worker_of(request).store.interviews.get(interview)
    _expect(record, seen)
    return recommendation_document(finished_recommendation(record), record.interview.class_names)


@router.delete("/v1/admin/interviews/{interview}", status_code=204)
@access(Scope.OPERATE)
def discard(request: Request, interview: UUID) -> Response:
    """Discard an interview; recommendations that are attached to a task stay."""
    worker_of(request).store.interviews.discard(interview, actor_of(request))
    return Response(status_code=204)


def finished_recommendation(record: "InterviewRecord") -> "Recommendation":
    """Return the recommendation of a complete interview.

    Raises:
        ConflictError: questions or choices are open, or answers contradict each other; the message says which.
    """
    from lifelong_core.design import next_questions

    interview, path = record.interview, f"/v1/admin/interviews/{record.id}"
    if asked := next_questions(interview.fingerprint, choices=interview.choices):
        named = ", ".join(f"{question.id} ({question.field})" for question in asked)
        raise ConflictError(
            f"these answers are missing: {named}.",
            field=asked[0].field,
            hint=f"Answer them: POST {path}/answers. More may follow from the answers.",
        )
    if contradictions := interview.contradictions:
        resolutions = (resolution.text for item in contradictions for resolution in item.resolutions)
        raise ConflictError(
            " ".join(item.explanation for item in contradictions),
            field=next(iter(contradictions[0].answers)),
            hint=" Or: ".join(resolutions),
        )
    recommendation = interview.recommendation()
    if guides := recommendation.open_choices:
        named = "; ".join(f"{guide.guide} ({' or '.join(guide.options)})" for guide in guides)
        raise ConflictError(
            f"these choices are open: {named}.", field=guides[0].guide, hint=f"Decide: POST {path}/choices."
        )
    return recommendation


def _changed(
    request: Request,
    interview: UUID,
    seen: SeenInterview | None,
    change: "Callable[[Interview], Interview]",
) -> InterviewAnswer:
    interviews = worker_of(request).store.interviews
    record = interviews.get(interview)
    _expect(record, seen)
    changed = interviews.save(
        interview, change(record.interview), expected_revision=record.revision, actor=actor_of(request)
    )
    return interview_document(changed)


def _expect(record: "InterviewRecord", seen: SeenInterview | None) -> None:
    if seen is not None and seen.revision not in (None, record.revision):
        raise ConflictError(
            f"the interview changed meanwhile: it has the revision {record.revision}, not {seen.revision}.",
            field="revision",
            hint="Look where it stands, and decide again.",
        )


def _values(answers: Mapping[str, Any], interview: "Interview") -> dict[str, Any]:
    """Return the answers as values: texts are parsed, unless the question asks for a text or a decision."""
    from lifelong_core.design.method.loader import load_method
    from lifelong_core.design.problem_fingerprint import ITEMS

    known: dict[str, Any] = {}

    def value_of(item: str, given: Any) -> Any:
        if not isinstance(given, str) or item not in ITEMS:
            return given
        question = load_method().question(ITEMS[item])
        if question.kind == "text":
            return given
        return interview.parse_answer(question.field, given, target_class=known.get("target_class"))

    for item in sorted(answers, key=lambda item: ITEMS.get(item) == "costs"):  # they depend on the class
        known[ITEMS.get(item, item)] = known[item] = value_of(item, answers[item])
    return {item: known[item] for item in answers}
