"""The predictions and classes that labels name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lifelong_core.entities.access import Token
from lifelong_core.entities.registry import Registry
from lifelong_core.store import Store
from lifelong_core.store.log.records import Prediction, RequestKey, StoredRequest
from lifelong_core.values.class_labels import class_index, describe_labels
from lifelong_core.values.errors import ConflictError, ForbiddenError, InvalidInputError
from lifelong_service.schemas.labels import Label


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
