"""Interviews: questions about a clinical problem that lead to suitable metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.design.interviews import InterviewAnswer, InterviewRecord, InterviewSummary
from lifelong_core.entities.design.recommendations import RecommendationDocument
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import LARGEST, Answer, Call, Context, operation
from lifelong_core.values.errors import ConflictError, InvalidInputError
from lifelong_core.values.names import Name

# The design loop is imported by the operations that need it: loading it takes longer than a worker may to start.
if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.interview.interview import Interview

ANSWERS = "Field, or item of the source, -> answer."
_EXAMPLE = UUID("01a20676-ec35-71e3-9541-7358988905de")
EXAMPLE_ANSWERS: dict[str, Any] = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": False,
    "prevalences_representative": True,
    "predictive_values": "unimportant",
    "class_imbalance": False,
    "unequal_interest": False,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}


@dataclass(frozen=True, kw_only=True)
class InterviewList(Entity):
    """Interviews, newest first."""

    interviews: list[InterviewSummary]


class ListInterviews(Call[InterviewList]):
    """How many interviews are wanted."""

    limit: Annotated[int, Field(ge=1, le=200)] = 100


class StartInterview(Call[InterviewAnswer]):
    """Facts known before the first question; a task implies its class names, and these the number of classes."""

    task: Name | None = None
    class_names: list[str] | None = None
    answers: Annotated[dict[str, Any], Field(default_factory=dict, description=ANSWERS)]


class OneInterview(Call[Answer], Generic[Answer]):
    """An interview."""

    interview: UUID


class SeenInterview(OneInterview[Answer], Generic[Answer]):
    """With `revision`, the request fails if the interview has changed since that revision."""

    revision: Annotated[int | None, Field(ge=1, le=LARGEST)] = None


class ShowInterview(OneInterview[InterviewAnswer]):
    """An interview."""


class AnswerQuestions(SeenInterview[InterviewAnswer]):
    """Answers by field, or by item of the source: values, or texts such as `yes` or `10 %`.

    null withdraws an answer.
    """

    answers: Annotated[dict[str, Any], Field(min_length=1, description=ANSWERS)]


class ChooseOptions(SeenInterview[InterviewAnswer]):
    """By guide, the option or options to take; null leaves the choice to the answers."""

    choices: Annotated[dict[str, str | list[str] | None], Field(min_length=1)]


class FinishInterview(SeenInterview[RecommendationDocument]):
    """An interview without open questions and choices."""


class GoBack(SeenInterview[InterviewAnswer]):
    """An interview with an answer or a choice."""


class DiscardInterview(OneInterview[None]):
    """An interview."""


Change: TypeAlias = AnswerQuestions | ChooseOptions | GoBack


@operation("GET", "/v1/admin/interviews", scope=Scope.READ, example=ListInterviews())
def list_interviews(context: Context, call: ListInterviews) -> InterviewList:
    """The newest interviews, newest first, without their questions and answers."""
    return InterviewList(
        interviews=[record.summary() for record in context.store.interviews.list(call.limit)]
    )


@operation(
    "POST",
    "/v1/admin/interviews",
    scope=Scope.OPERATE,
    status=201,
    example=StartInterview(task="skin", answers=EXAMPLE_ANSWERS),
)
def start_interview(context: Context, call: StartInterview) -> InterviewAnswer:
    """Start an interview; the answer holds the first question."""
    from lifelong_core.design.interview.interview import start_interview as start

    names, store = call.class_names, context.store
    if call.task is not None:
        of_task = list(store.tasks.get(call.task).class_names)
        if names not in (None, of_task):
            raise InvalidInputError(
                f"the task {call.task} has the classes {', '.join(of_task)}.",
                field="class_names",
                hint="Leave them out: the interview takes those of the task.",
            )
        names = of_task
    interview = start(class_names=names)
    if call.answers:
        interview = interview.with_answers(read_answers(call.answers, interview))
    return store.interviews.start(interview, task=call.task, actor=context.actor).answer()


@operation(
    "GET",
    "/v1/admin/interviews/{interview}",
    scope=Scope.READ,
    example=ShowInterview(interview=_EXAMPLE),
)
def show_interview(context: Context, call: ShowInterview) -> InterviewAnswer:
    """The state of an interview: next question, contradictions, open choices, and all answers."""
    return context.store.interviews.get(call.interview).answer()


@operation(
    "POST",
    "/v1/admin/interviews/{interview}/answers",
    scope=Scope.OPERATE,
    example=AnswerQuestions(interview=_EXAMPLE, answers={"invalid_outputs": "no"}),
)
def answer_questions(context: Context, call: AnswerQuestions) -> InterviewAnswer:
    """Give, change or withdraw answers, all or none; the answer holds the next question."""
    return _change(context, call)


@operation(
    "POST",
    "/v1/admin/interviews/{interview}/choices",
    scope=Scope.OPERATE,
    example=ChooseOptions(interview=_EXAMPLE, choices={"DG2.1": None}),
)
def choose_options(context: Context, call: ChooseOptions) -> InterviewAnswer:
    """Choose options where several metrics fit."""
    return _change(context, call)


@operation(
    "POST",
    "/v1/admin/interviews/{interview}/finish",
    scope=Scope.OPERATE,
    example=FinishInterview(interview=_EXAMPLE),
    has_body="optional",
)
def finish_interview(context: Context, call: FinishInterview) -> RecommendationDocument:
    """The recommendation; status 409 names missing answers or explains contradictions.

    The request changes nothing: attach the recommendation with `POST /v1/admin/tasks/{task}/recommendations`.
    """
    from lifelong_core.design.recommendation.views import view_recommendation

    record = _expected(context, call)
    recommendation = finished_recommendation(record)
    return view_recommendation(recommendation, record.interview.class_names).to_document()


@operation(
    "POST",
    "/v1/admin/interviews/{interview}/back",
    scope=Scope.OPERATE,
    example=GoBack(interview=_EXAMPLE),
    has_body="optional",
)
def go_back(context: Context, call: GoBack) -> InterviewAnswer:
    """Withdraw the latest answer or choice; all others stay."""
    return _change(context, call)


@operation(
    "DELETE",
    "/v1/admin/interviews/{interview}",
    scope=Scope.OPERATE,
    status=204,
    example=DiscardInterview(interview=_EXAMPLE),
)
def discard_interview(context: Context, call: DiscardInterview) -> None:
    """Discard an interview; recommendations that are attached to a task stay."""
    context.store.interviews.discard(call.interview, context.actor)


def finished_recommendation(record: InterviewRecord) -> "Recommendation":
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


def read_answers(answers: Mapping[str, Any], interview: "Interview") -> dict[str, Any]:
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


def changed_by(call: Change, interview: "Interview") -> "Interview":
    """Return an interview as a call changes it; nothing is stored.

    Raises:
        InvalidInputError: the call does not fit the interview.
    """
    match call:
        case AnswerQuestions():
            return interview.with_answers(read_answers(call.answers, interview))
        case ChooseOptions():
            for guide, options in call.choices.items():
                interview = interview.choose(guide, options)
            return interview
        case GoBack():
            return interview.back()


def _change(context: Context, call: Change) -> InterviewAnswer:
    record = _expected(context, call)
    changed = context.store.interviews.save(
        record.id,
        changed_by(call, record.interview),
        expected_revision=record.revision,
        actor=context.actor,
    )
    return changed.answer()


def _expected(context: Context, call: Change | FinishInterview) -> InterviewRecord:
    """The interview, which has the revision of the call if that names one."""
    record = context.store.interviews.get(call.interview)
    if call.revision not in (None, record.revision):
        raise ConflictError(
            f"the interview changed meanwhile: it has the revision {record.revision}, not {call.revision}.",
            field="revision",
            hint="Look where it stands, and decide again.",
        )
    return record
