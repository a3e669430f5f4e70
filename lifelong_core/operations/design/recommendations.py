"""Recommendations of a task: its metrics, their thresholds, its costs and decision rule. List, show, attach."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from uuid import UUID

from pydantic import Field, model_validator

from lifelong_core.entities.access import Scope
from lifelong_core.entities.design.recommendations import (
    AttachedAnswer,
    AttachedSummary,
    NewlyAttached,
    Refit,
    RefitAnswer,
)
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.design.interviews import EXAMPLE_ANSWERS, finished_recommendation
from lifelong_core.operations.operation import LARGEST, Call, Context, ForceReason, operation
from lifelong_core.store import Store, attach_and_refit
from lifelong_core.store.design.effects import effects_of
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError, NotFoundError

# The design loop is imported by the operations that need it: loading it takes longer than a worker may to start.
if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.values.documents import FrozenDocument

    Document = TypeVar("Document", bound=FrozenDocument)


@dataclass(frozen=True, kw_only=True)
class AttachedList(Entity):
    """All recommendations of a task, oldest first; the last one is in force."""

    recommendations: list[AttachedSummary]


class Threshold(RequestDocument):
    """The required value of one recommended metric, named by its label.

    For a metric per class, `class_index` names the class; null: the class that the metric is reported for, or the mean.
    """

    metric: str
    value: float = Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)
    class_index: int | None = Field(None, ge=0)
    by: Literal["estimate", "interval"] = Field(
        "interval", description="Whether the estimate has to reach it, or the worse end of its interval."
    )


class ListRecommendations(Call[AttachedList]):
    """A task."""

    task: str


class ShowCurrentRecommendation(Call[AttachedAnswer]):
    """A task."""

    task: str


class ShowRecommendation(Call[AttachedAnswer]):
    """A recommendation of a task."""

    task: str
    version: Annotated[int, Field(ge=1, le=LARGEST)]


class AttachRecommendation(Call[NewlyAttached]):
    """The recommendation to attach: from an interview, a document, or a fingerprint.

    With `expected_version` the request fails if that is not the latest version (0: none was attached).
    With `refit_head` the heads of the task's promoted model are fitted again with the new costs and the new rule: the
    default head for the target prevalences of the recommendation, the head of an environment for the prevalences that
    it assumes now.
    """

    task: str
    interview: UUID | None = None
    recommendation: Annotated[dict[str, Any] | None, Field(description="As Recommendation.")] = None
    fingerprint: Annotated[dict[str, Any] | None, Field(description="As ProblemFingerprint.")] = None
    choices: Annotated[
        dict[str, str | list[str]] | None,
        Field(description="What a person decided, by guide; only with a fingerprint."),
    ] = None
    thresholds: list[Threshold] = Field(default_factory=list[Threshold])
    expected_version: Annotated[int | None, Field(ge=0, le=LARGEST)] = None
    refit_head: bool = False
    force_reason: ForceReason = None

    @model_validator(mode="after")
    def _names_one_origin(self) -> Self:
        if [self.interview, self.recommendation, self.fingerprint].count(None) != 2:
            raise InvalidInputError("give one of interview, recommendation and fingerprint.", field="body")
        if self.choices is not None and self.fingerprint is None:
            raise InvalidInputError("choices belong to a fingerprint.", field="body")
        return self


@operation(
    "GET",
    "/v1/admin/tasks/{task}/recommendations",
    scope=Scope.READ,
    example=ListRecommendations(task="skin"),
)
def list_recommendations(context: Context, call: ListRecommendations) -> AttachedList:
    """All recommendations of a task, oldest first; the last one is in force.

    `damaged` holds the reason why one cannot be read; it has no `labels` then.
    """
    attached = context.store.recommendations.list(call.task)
    return AttachedList(recommendations=[recommendation.summary() for recommendation in attached])


@operation(
    "POST",
    "/v1/admin/tasks/{task}/recommendations",
    scope=Scope.ADMIN,
    status=201,
    example=AttachRecommendation(task="skin", fingerprint={"number_of_classes": 2, **EXAMPLE_ANSWERS}),
)
def attach_recommendation(context: Context, call: AttachRecommendation) -> NewlyAttached:
    """Attach a recommendation to a task; its costs and its decision rule become those of the task.

    Published heads keep the costs and the rule that they were fitted with, unless `refit_head` is true. Then
    `published` lists the new heads, and `kept` the heads that stay in force with the reason: a head already uses these
    costs and this rule (`fits`), is `pinned`, or is `damaged`. An `environment` of null stands for the default head.
    `differing_heads` lists the heads in force that decide otherwise than the task now says.
    """
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

    store = context.store
    recommendation = _recommendation(store, call)
    given: Any = {
        "thresholds": tuple(AcceptanceThreshold(**asked.model_dump()) for asked in call.thresholds),
        "expected_version": call.expected_version,
        "force_reason": call.force_reason,
        "actor": context.actor,
    }
    if call.refit_head:
        refit = attach_and_refit(store, call.task, recommendation, **given)
        attached = refit.attached
    else:
        refit, attached = None, store.recommendations.attach(call.task, recommendation, **given)
    answer = attached.answer(store.tasks.get(call.task).class_names)
    return NewlyAttached(**vars(answer) | vars(effects_of(store, attached)) | vars(_refit_answer(refit)))


@operation(
    "GET",
    "/v1/admin/tasks/{task}/recommendations/current",
    scope=Scope.READ,
    example=ShowCurrentRecommendation(task="skin"),
)
def show_current_recommendation(context: Context, call: ShowCurrentRecommendation) -> AttachedAnswer:
    """The recommendation that is in force."""
    attached = context.store.recommendations.current(call.task)
    if attached is None:
        raise NotFoundError(
            f"the task {call.task} has no recommendation.",
            field="version",
            hint=f"Attach one: POST /v1/admin/tasks/{call.task}/recommendations.",
        )
    return attached.answer(context.store.tasks.get(call.task).class_names)


@operation(
    "GET",
    "/v1/admin/tasks/{task}/recommendations/{version}",
    scope=Scope.READ,
    example=ShowRecommendation(task="skin", version=1),
)
def show_recommendation(context: Context, call: ShowRecommendation) -> AttachedAnswer:
    """One recommendation: its metrics, rejected metrics, the reasons for both, and the thresholds."""
    attached = context.store.recommendations.get(call.task, call.version)
    return attached.answer(context.store.tasks.get(call.task).class_names)


def _refit_answer(refit: Refit | None) -> RefitAnswer:
    if refit is None:
        return RefitAnswer()
    return RefitAnswer(
        model=refit.model.reference,
        head_version=refit.default_version,
        published=refit.published,
        kept=refit.kept,
    )


def _recommendation(store: Store, call: AttachRecommendation) -> "Recommendation":
    """The recommendation that a call names, for the classes of its task."""
    from lifelong_core.design import ProblemFingerprint, Recommendation, recommend

    if call.recommendation is not None:
        given = _read(Recommendation, call.recommendation, field="recommendation")
        derived = recommend(given.fingerprint, choices=given.choices)
        derived = derived.model_copy(update={"class_names": given.class_names})
        if derived != given:
            raise InvalidInputError(
                "this is not what follows from its answers: it was changed, or another version made it.",
                field="recommendation",
                hint="Send its fingerprint and choices instead.",
            )
        return _with_names(store, call.task, derived)
    if call.fingerprint is not None:
        fingerprint = _read(ProblemFingerprint, call.fingerprint, field="fingerprint")
        return _with_names(store, call.task, recommend(fingerprint, choices=call.choices))
    record = store.interviews.get(call.interview or UUID(int=0))
    if record.task not in (None, call.task):
        raise InvalidInputError(
            f"this interview was held for the task {record.task}.",
            field="interview",
            hint="Attach it there, or hold one for this task: class names and costs may differ.",
        )
    names = record.interview.class_names
    if names not in (None, store.tasks.get(call.task).class_names):
        raise InvalidInputError(
            f"this interview was held for the classes {', '.join(names or ())}.",
            field="interview",
            hint="Hold one for this task: what was said of a class would be taken for another's.",
        )
    return finished_recommendation(record)


def _with_names(store: Store, task: str, recommendation: "Recommendation") -> "Recommendation":
    """The recommendation with the names of the task's classes; another number of classes is refused later."""
    names = tuple(store.tasks.get(task).class_names)
    if recommendation.class_names not in (None, names):
        raise InvalidInputError(
            f"its classes are {', '.join(recommendation.class_names or ())}, those of {task} {', '.join(names)}.",
            field="recommendation.class_names",
            hint="Hold an interview for this task: costs and class of interest may differ.",
        )
    fits = recommendation.fingerprint.number_of_classes == len(names)
    return recommendation.model_copy(update={"class_names": names}) if fits else recommendation


def _read(kind: "type[Document]", document: dict[str, Any], *, field: str) -> "Document":
    try:
        return kind.from_document(document)
    except InvalidInputError as error:
        error.field = f"{field}.{error.field}"
        raise
