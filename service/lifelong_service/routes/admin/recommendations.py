"""`/v1/admin/tasks/{task}/recommendations`: metrics of a task, their thresholds, its costs and decision rule."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field, model_validator
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_core.store import Store, attach_and_refit
from lifelong_core.store.design.effects import effects_of
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_service.documents.design import (
    NOTHING_REFITTED,
    attached_document,
    attached_summary,
    effects_document,
    refit_document,
)
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.interviews import finished_recommendation
from lifelong_service.schemas.design import AttachedAnswer, AttachedList, NewlyAttached

# Loading the design loop takes longer than the start of a worker may; endpoints import it when they need it.
if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold
    from lifelong_core.values.documents import FrozenDocument

    Document = TypeVar("Document", bound=FrozenDocument)

router = APIRouter(route_class=GuardedRoute, tags=["recommendations"])


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


class NewRecommendation(RequestDocument):
    """The recommendation to attach: from an interview, a document, or a fingerprint.

    With `expected_version` the request fails if that is not the latest version (0: none was attached).
    With `refit_head` the heads of the task's promoted model are fitted again with the new costs and the new rule: the
    default head for the target prevalences of the recommendation, the head of an environment for the prevalences that
    it assumes now.
    """

    interview: UUID | None = None
    recommendation: dict[str, Any] | None = Field(None, description="As Recommendation.")
    fingerprint: dict[str, Any] | None = Field(None, description="As ProblemFingerprint.")
    choices: dict[str, str | list[str]] | None = Field(
        None, description="What a person decided, by guide; only with a fingerprint."
    )
    thresholds: list[Threshold] = Field(default_factory=list)
    expected_version: int | None = Field(None, ge=0, le=2**31 - 1)
    refit_head: bool = False
    force_reason: str | None = Field(
        None, description="Why costs that look like a mistake are right; kept in the audit log."
    )

    @model_validator(mode="after")
    def _names_one_origin(self) -> Self:
        if [self.interview, self.recommendation, self.fingerprint].count(None) != 2:
            raise ValueError("give one of interview, recommendation and fingerprint")
        if self.choices is not None and self.fingerprint is None:
            raise ValueError("choices belong to a fingerprint")
        return self


@router.get("/v1/admin/tasks/{task}/recommendations")
@access(Scope.READ)
def list_recommendations(request: Request, task: str) -> AttachedList:
    """All recommendations of a task, oldest first; the last one is in force.

    `damaged` holds the reason why one cannot be read; it has no `labels` then.
    """
    attached = worker_of(request).store.recommendations.list(task)
    return {"recommendations": [attached_summary(one) for one in attached]}


@router.post("/v1/admin/tasks/{task}/recommendations", status_code=201)
@access(Scope.ADMIN)
def attach_recommendation(request: Request, task: str, new: NewRecommendation) -> NewlyAttached:
    """Attach a recommendation to a task; its costs and its decision rule become those of the task.

    Published heads keep the costs and the rule that they were fitted with, unless `refit_head` is true. Then
    `published` lists the new heads, and `kept` the heads that stay in force with the reason: a head already uses these
    costs and this rule (`fits`), is `pinned`, or is `damaged`. An `environment` of null stands for the default head.
    `differing_heads` lists the heads in force that decide otherwise than the task now says.
    """
    store, actor = worker_of(request).store, actor_of(request)
    recommendation = _recommendation(store, task, new)
    given: Any = {
        "thresholds": _thresholds(new.thresholds),
        "expected_version": new.expected_version,
        "force_reason": new.force_reason,
        "actor": actor,
    }
    if new.refit_head:
        outcome = attach_and_refit(store, task, recommendation, **given)
        attached, refit = outcome.attached, refit_document(outcome)
    else:
        attached, refit = store.recommendations.attach(task, recommendation, **given), NOTHING_REFITTED
    effects = effects_of(store, attached)
    return {
        **attached_document(attached, effects.task.class_names),
        **effects_document(effects),
        **refit,
    }


@router.get("/v1/admin/tasks/{task}/recommendations/current")
@access(Scope.READ)
def show_current_recommendation(request: Request, task: str) -> AttachedAnswer:
    """The recommendation that is in force."""
    store = worker_of(request).store
    attached = store.recommendations.current(task)
    if attached is None:
        raise NotFoundError(
            f"the task {task} has no recommendation.",
            field="version",
            hint=f"Attach one: POST /v1/admin/tasks/{task}/recommendations.",
        )
    return attached_document(attached, store.tasks.get(task).class_names)


@router.get("/v1/admin/tasks/{task}/recommendations/{version}")
@access(Scope.READ)
def show_recommendation(
    request: Request, task: str, version: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> AttachedAnswer:
    """One recommendation: its metrics, rejected metrics, the reasons for both, and the thresholds."""
    store = worker_of(request).store
    attached = store.recommendations.get(task, version)
    return attached_document(attached, store.tasks.get(task).class_names)


def _with_names(store: Store, task: str, found: "Recommendation") -> "Recommendation":
    """The recommendation with the names of the task's classes; another number of classes is refused later."""
    names = tuple(store.tasks.get(task).class_names)
    if found.class_names not in (None, names):
        raise InvalidInputError(
            f"its classes are {', '.join(found.class_names or ())}, those of {task} {', '.join(names)}.",
            field="recommendation.class_names",
            hint="Hold an interview for this task: costs and class of interest may differ.",
        )
    fits = found.fingerprint.number_of_classes == len(names)
    return found.model_copy(update={"class_names": names}) if fits else found


def _recommendation(store: Store, task: str, new: NewRecommendation) -> "Recommendation":
    from lifelong_core.design import ProblemFingerprint, Recommendation, recommend

    if new.recommendation is not None:
        given = _read(Recommendation, new.recommendation, field="recommendation")
        named = {"class_names": given.class_names}
        found = recommend(given.fingerprint, choices=given.choices).model_copy(update=named)
        if found != given:
            raise InvalidInputError(
                "this is not what follows from its answers: it was changed, or another version made it.",
                field="recommendation",
                hint="Send its fingerprint and choices instead.",
            )
        return _with_names(store, task, found)
    if new.fingerprint is not None:
        fingerprint = _read(ProblemFingerprint, new.fingerprint, field="fingerprint")
        return _with_names(store, task, recommend(fingerprint, choices=new.choices))
    record = store.interviews.get(new.interview or UUID(int=0))
    if record.task not in (None, task):
        raise InvalidInputError(
            f"this interview was held for the task {record.task}.",
            field="interview",
            hint="Attach it there, or hold one for this task: class names and costs may differ.",
        )
    named = record.interview.class_names
    if named not in (None, store.tasks.get(task).class_names):
        raise InvalidInputError(
            f"this interview was held for the classes {', '.join(named or ())}.",
            field="interview",
            hint="Hold one for this task: what was said of a class would be taken for another's.",
        )
    return finished_recommendation(record)


def _read(kind: "type[Document]", document: dict[str, Any], *, field: str) -> "Document":
    try:
        return kind.from_document(document)
    except InvalidInputError as error:
        error.field = f"{field}.{error.field}"
        raise


def _thresholds(given: list[Threshold]) -> "tuple[AcceptanceThreshold, ...]":
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

    return tuple(AcceptanceThreshold(**threshold.model_dump()) for threshold in given)
