"""`/v1/feedback`: true classes of logged predictions, which are named by their id or by that of their request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lifelong_core.entities.access import Scope, Token
from lifelong_core.entities.registry import Registry
from lifelong_core.store import Store
from lifelong_core.store.log.records import NewLabel, Prediction, RequestKey, StoredRequest
from lifelong_core.values.class_labels import class_index, describe_labels
from lifelong_core.values.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    LifelongError,
    NotFoundError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_service.bodies.json_documents import parse_document, read_values
from lifelong_service.bodies.parsing import parse_in_turn
from lifelong_service.clients.addresses import ANONYMOUS
from lifelong_service.clients.authentication import check_binding
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.labels import Label, LabelAnswer, LabelAnswers, LabelProblem, Labels

_NAMED = 20
"""Largest number of refused labels in a message."""
OUTAGE_RETRY_SECONDS = 10
_REFUSALS = (InvalidInputError, ConflictError, NotFoundError, ForbiddenError)
"""Errors about one label, as opposed to errors of the service."""
_LATER = "Send it again later: labels that are known already stay as they are."

router = APIRouter(route_class=GuardedRoute, tags=["feedback"])


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
    names another environment is refused with status 403. One refused label refuses the whole request, and nothing is
    stored, unless `partial` is true.
    """
    worker = worker_of(request)
    token: Token | None = request.state.token
    body = await request.body()
    labels, several = await parse_in_turn(lambda: _labels(body), len(body))
    if token is not None and not labels.partial:
        _check_bindings(token, labels.labels, several=several)
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
            field=_field(labels.labels[0]),
            hint="Send the id that the answer held.",
        )
    return {"labels": outcomes} if several else outcomes[0]


def _labels(body: bytes) -> tuple[Labels, bool]:
    """Return the labels, and whether they came as a list; any other form is reported as an invalid single label."""
    try:
        document = read_values(body)
    except PayloadTooLargeError:
        raise
    except ValueError:
        document = None
    if isinstance(document, dict) and "labels" in document:
        return parse_document(body, Labels), True
    return Labels(labels=[parse_document(body, Label)]), False


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
    store: Store, registry: Registry, labels: Labels, *, token: Token | None, several: bool
) -> list[LabelAnswer]:
    targets = LabelTargets(store, registry, token, labels.labels)
    found: list[LabelTarget | LifelongError | None] = []
    for index, label in enumerate(labels.labels):
        try:
            found.append(targets.find(label, f"labels.{index}." if several else ""))
        except _REFUSALS as error:
            if not labels.partial:
                raise
            found.append(error)
    new = [
        NewLabel(target.prediction.id, target.label, label.source, label.propensity)
        for target, label in zip(found, labels.labels, strict=True)
        if isinstance(target, LabelTarget)
    ]
    actor = ANONYMOUS if token is None else token.name
    recorded = iter(store.labels.record(new, actor=actor, dry_run=labels.dry_run) if new else ())
    return [
        {"prediction_id": str(target.prediction.id), "outcome": next(recorded)}
        if isinstance(target, LabelTarget)
        else _not_recorded(label, target)
        for target, label in zip(found, labels.labels, strict=True)
    ]


def _not_recorded(label: Label, error: LifelongError | None) -> LabelAnswer:
    """The answer to a label that was refused, or, without an error, whose prediction is unknown."""
    prediction_id = None if label.prediction_id is None else str(label.prediction_id)
    if error is None:
        return {"prediction_id": prediction_id, "outcome": "unknown"}
    problem: LabelProblem = {
        "code": error.code,
        "field": error.field,
        "message": error.message,
        "hint": error.hint,
    }
    return {"prediction_id": prediction_id, "outcome": "refused", "error": problem}


def _field(label: Label) -> str:
    return "prediction_id" if label.prediction_id is not None else "request_id"


@dataclass(frozen=True)
class LabelTarget:
    """A logged prediction, and the index of its true class."""

    prediction: Prediction
    label: int


class LabelTargets:
    """Finds what the labels of one request name; predictions named by id are read by one query.

    Args:
        store: with the log.
        registry: snapshot of the worker; it may lack a new model.
        token: of the request; predictions of environments that it is not bound to are unknown.
        labels: of the request.
    """

    def __init__(
        self, store: Store, registry: Registry, token: Token | None, labels: Sequence[Label]
    ) -> None:
        self._store = store
        self._registry = registry
        self._token = token
        ids = {one.prediction_id for one in labels if one.prediction_id is not None}
        self._predictions = store.predictions.with_ids(ids)

    def find(self, label: Label, prefix: str = "") -> LabelTarget | None:
        """What a label names; None: there is no such prediction for this token.

        Args:
            label: of the request.
            prefix: of the field in an error, such as `labels.3.`.

        Raises:
            ForbiddenError: the label names an environment that the token is not bound to.
            InvalidInputError: the label is not a class of the task, or the row is missing.
            ConflictError: several environments have a request of that id.
            NotFoundError: there is no such model.
        """
        if label.environment is not None and self._token and not self._token.may_use(label.environment):
            raise ForbiddenError(
                f"the token {self._token.name!r} may not label in the environment {label.environment!r}.",
                field=f"{prefix}environment",
                hint=f"It is bound to: {self._token.binding}.",
            )
        prediction = self._prediction(label, prefix)
        # As for a missing id: the answer must not reveal predictions of other environments.
        if prediction is None or (self._token and not self._token.may_use(prediction.environment)):
            return None
        return LabelTarget(prediction, self._class(prediction, label, prefix))

    def _prediction(self, label: Label, prefix: str) -> Prediction | None:
        if label.prediction_id is not None:
            return self._predictions.get(label.prediction_id)
        stored = self._request(label, prefix)
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

    def _request(self, label: Label, prefix: str) -> StoredRequest | None:
        model = self._registry.resolve_model(label.model, field=f"{prefix}model")
        models = self._registry.possible_models(model, label.model)
        request_id = label.request_id or ""
        log = self._store.predictions
        if label.environment is not None:
            keys = [RequestKey(model_id, label.environment, request_id) for model_id in models]
            return _first(log.requests(keys).values())
        found = [one for model_id in models for one in log.find_request(model_id, request_id)]
        stored = [one for one in found if self._token is None or self._token.may_use(one.key.environment)]
        if len({one.key.environment for one in stored}) > 1:
            raise ConflictError(
                "several environments have a request of that id.",
                field=f"{prefix}environment",
                hint="Name the environment.",
            )
        return _first(stored)

    def _class(self, prediction: Prediction, label: Label, prefix: str) -> int:
        if prediction.model_id not in self._registry.models:  # newer than the worker's snapshot
            self._registry = self._store.registry() or self._registry
        registry = self._registry
        names = registry.tasks[registry.models[prediction.model_id].task_id].class_names
        index = class_index(label.label, names)
        if index is not None:
            return index
        raise InvalidInputError(
            f"{str(label.label)[:80]!r} is not a class of the task.",
            field=f"{prefix}label",
            hint=describe_labels(names),
        )


def _first(stored: Iterable[StoredRequest]) -> StoredRequest | None:
    """The request that was answered first: its answer is the one that all repetitions got."""
    return min(stored, key=StoredRequest.age, default=None)
