"""`/v1/feedback`: true classes of logged predictions."""

from collections.abc import Iterable
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field, StrictInt, StrictStr, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lifelong_core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_core.names import Name
from lifelong_core.store import Store
from lifelong_core.store.access.records import Scope, Token
from lifelong_core.store.log.records import NewLabel, Prediction, RequestKey, StoredRequest
from lifelong_core.store.registry.records import Registry
from lifelong_service.http.authentication import check_binding
from lifelong_service.http.bodies import parse_document, parse_in_turn, read_values
from lifelong_service.http.guard import GuardedRoute, access, worker_of
from lifelong_service.schemas.predictions import LabelAnswer, LabelAnswers
from lifelong_service.schemas.requests import RequestDocument

MAXIMUM_LABELS = 1000
_NAMED = 20
"""Largest number of refused labels in a message."""
OUTAGE_RETRY_SECONDS = 10
_LATER = "Send it again later: labels that are known already stay as they are."

router = APIRouter(route_class=GuardedRoute, tags=["feedback"])


class Label(RequestDocument):
    """The true class of one prediction, given by its id, or by the id of its request.

    `row` is the index of the prediction in that request; it is optional if there is only one.
    """

    prediction_id: UUID | None = None
    request_id: str | None = Field(None, min_length=1, max_length=128)
    model: str | None = None
    environment: Name | None = None
    row: int | None = Field(None, ge=0)
    label: StrictInt | StrictStr = Field(description="Class index or class name.")
    source: str = Field("", max_length=64, description="Origin of the label, e.g. pathology.")

    @model_validator(mode="after")
    def _names_one_prediction(self) -> "Label":
        if (self.prediction_id is None) == (self.request_id is None):
            raise ValueError("give either prediction_id or request_id")
        return self


class Labels(RequestDocument):
    """Several labels in one request."""

    labels: list[Label] = Field(min_length=1, max_length=MAXIMUM_LABELS)


@router.post(
    "/v1/feedback",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Label", "Labels")]
                    }
                }
            },
        }
    },
)
@access(Scope.FEEDBACK, opens="open_access", limits="token")
async def feedback(request: Request) -> LabelAnswer | LabelAnswers:
    """Store true classes: one object, or `{"labels": [...]}`. A repeated label changes nothing; another class corrects.

    Every label gets an outcome: stored, unchanged, corrected or unknown. If the only label of a request is unknown,
    the status is 404. For a token bound to environments, predictions of other environments are unknown; a label that
    names another environment is refused with status 403, and nothing of the request is stored.
    """
    worker = worker_of(request)
    token: Token | None = request.state.token
    body = await request.body()
    labels, several = await parse_in_turn(lambda: _labels(body), len(body))
    if token is not None:
        _check_bindings(token, labels, several=several)
    if worker.log.outage is not None:
        # Refused at once: each waiting request would hold a thread that others need.
        raise UnavailableError(
            f"labels go to the database only: {worker.log.outage}",
            hint=_LATER,
            retry_after_seconds=OUTAGE_RETRY_SECONDS,
        )
    is_spooling = worker.log.problem is not None
    outcomes = await run_in_threadpool(
        _record, worker.store, worker.snapshot.registry, labels, token=token, several=several
    )
    if is_spooling and any(one["outcome"] == "unknown" for one in outcomes):
        raise UnavailableError(
            "predictions are still on their way to the database, and what is labelled may be among them.",
            hint=_LATER,
            retry_after_seconds=OUTAGE_RETRY_SECONDS,
        )
    if not several and outcomes[0]["outcome"] == "unknown":
        raise NotFoundError(
            f"there is no such prediction{_places(token)}.",
            field=_field(labels[0]),
            hint="Send the id that the answer held.",
        )
    return {"labels": outcomes} if several else outcomes[0]


def _labels(body: bytes) -> tuple[list[Label], bool]:
    """Return the labels, and whether they came as a list; any other form is reported as an invalid single label."""
    try:
        document = read_values(body)
    except PayloadTooLargeError:
        raise
    except ValueError:
        document = None
    if isinstance(document, dict) and "labels" in document:
        return parse_document(body, Labels).labels, True
    return [parse_document(body, Label)], False


def _check_bindings(token: Token, labels: list[Label], *, several: bool) -> None:
    refused = [
        index
        for index, label in enumerate(labels)
        if label.environment is not None and not token.may_use(label.environment)
    ]
    if not refused:
        return
    if not several:
        check_binding(token, labels[0].environment or "")
    named = ", ".join(str(index) for index in refused[:_NAMED])
    raise ForbiddenError(
        f"the token {token.name!r} may not label in the environments of {len(refused)} of these labels:"
        f" {named}{', ...' if len(refused) > _NAMED else ''}. Nothing was stored.",
        field=f"labels.{refused[0]}.environment",
        hint=f"It is bound to: {token.binding}. Leave these labels out, or use another token.",
    )


def _places(token: Token | None) -> str:
    bound = token is not None and token.environments is not None
    return f" in the environments of the token {token.name!r} ({token.binding})" if token and bound else ""


def _record(
    store: Store, registry: Registry, labels: list[Label], *, token: Token | None, several: bool
) -> list[LabelAnswer]:
    found: list[tuple[Prediction, int] | None] = []
    for index, label in enumerate(labels):
        prefix = f"labels.{index}." if several else ""
        prediction = _prediction(store, registry, label, prefix, token)
        if prediction is not None and token is not None and not token.may_use(prediction.environment):
            # As for a missing id: the answer must not reveal predictions of other environments.
            prediction = None
        found.append(
            None if prediction is None else (prediction, _class(store, registry, prediction, label, prefix))
        )
    new = [
        NewLabel(pair[0].id, pair[1], label.source)
        for pair, label in zip(found, labels, strict=True)
        if pair is not None
    ]
    recorded = iter(store.labels.record(new) if new else ())
    return [
        {"prediction_id": str(pair[0].id), "outcome": next(recorded)}
        if pair is not None
        else {"prediction_id": label.prediction_id and str(label.prediction_id), "outcome": "unknown"}
        for pair, label in zip(found, labels, strict=True)
    ]


def _prediction(
    store: Store, registry: Registry, label: Label, prefix: str, token: Token | None
) -> Prediction | None:
    if label.prediction_id is not None:
        return store.predictions.get(label.prediction_id)
    stored = _request(store, registry, label, prefix, token)
    if stored is None:
        return None
    if label.row is None and len(stored.predictions) > 1:
        raise InvalidInputError(
            f"the request has {len(stored.predictions)} predictions.",
            field=f"{prefix}row",
            hint="Name the row.",
        )
    row = label.row or 0
    return stored.predictions[row] if row < len(stored.predictions) else None


def _request(
    store: Store, registry: Registry, label: Label, prefix: str, token: Token | None
) -> StoredRequest | None:
    model = registry.resolve_model(label.model, field=f"{prefix}model")
    models = registry.possible_models(model, label.model)
    request_id = label.request_id or ""
    if label.environment is not None:
        keys = [RequestKey(model_id, label.environment, request_id) for model_id in models]
        return _first(store.predictions.requests(keys).values())
    found = [one for model_id in models for one in store.predictions.find_request(model_id, request_id)]
    stored = [one for one in found if token is None or token.may_use(one.key.environment)]
    if len({one.key.environment for one in stored}) > 1:
        raise ConflictError(
            "several environments have a request of that id.",
            field=f"{prefix}environment",
            hint="Name the environment.",
        )
    return _first(stored)


def _first(stored: Iterable[StoredRequest]) -> StoredRequest | None:
    """The request that was answered first: its answer is the one that all repetitions got."""
    return min(stored, key=StoredRequest.age, default=None)


def _class(store: Store, registry: Registry, prediction: Prediction, label: Label, prefix: str) -> int:
    if prediction.model_id not in registry.models:  # newer than this worker's snapshot
        registry = store.registry() or registry
    names = registry.tasks[registry.models[prediction.model_id].task_id].class_names
    if isinstance(label.label, str) and label.label in names:
        return names.index(label.label)
    if isinstance(label.label, int) and 0 <= label.label < len(names):
        return label.label
    raise InvalidInputError(
        f"{str(label.label)[:80]!r} is not a class of the task.",
        field=f"{prefix}label",
        hint=f"Give one of {', '.join(names)}, or an index in 0..{len(names) - 1}.",
    )


def _field(label: Label) -> str:
    return "prediction_id" if label.prediction_id is not None else "request_id"
