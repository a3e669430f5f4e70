"""Which model answers a request: the one that it names, the promoted one, or the candidate of a trial."""

import logging

from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.registry import Model
from lifelong_core.store.log.records import RequestKey
from lifelong_service import metrics
from lifelong_service.graphs.classifier import GraphTimeoutError
from lifelong_service.prediction.requests import (
    CANARY,
    OTHER,
    PROMOTED,
    ImageRequest,
    PredictionRequest,
    RequestContext,
    Route,
)
from lifelong_service.prediction.snapshot import Snapshot

logger = logging.getLogger(__name__)


class Router:
    """Chooses the model of each request; threads may share it.

    A candidate that ran into the time limit in this worker is not used here again until its stage or share changes:
    each further run would delay the answers of other requests.
    """

    def __init__(self) -> None:
        self._suspended: frozenset[tuple[int, str]] = frozenset()

    def route(self, request: PredictionRequest, snapshot: Snapshot) -> Route:
        """Return the route of a request.

        Logits never reach a candidate: they come from the model that is served without it.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: the request names no model, but several tasks have a promoted one.
        """
        registry, reference = snapshot.registry, request.context.model
        model = registry.resolve_model(reference)
        is_promoted = snapshot.task(model).promoted_model_id == model.id
        role = PROMOTED if is_promoted else OTHER
        earlier = registry.possible_models(model, reference)
        rollout = registry.rollouts.get(model.task_id)
        if rollout is None or not is_promoted or not isinstance(request, ImageRequest):
            return Route(model, role, model, None, earlier)
        candidate = registry.models[rollout.model_id]
        # A reference to this name does not mean a model with another name after its promotion, either.
        if reference not in (None, candidate.name) or self.is_suspended(rollout):
            return Route(model, role, model, None, earlier)
        if rollout.stage == "shadow":
            return Route(model, role, model, rollout, earlier)
        if rollout.share < 1 and not rollout.chooses(_key(request)):
            return Route(model, role, model, None, earlier)
        return Route(candidate, CANARY, model, rollout, earlier)

    def is_suspended(self, rollout: Rollout) -> bool:
        """Whether the candidate of a trial is not used in this worker."""
        return _state(rollout) in self._suspended

    def note_failure(self, rollout: Rollout, candidate: Model, error: Exception) -> None:
        """Record that the candidate failed on an image that the promoted model answered; a time limit suspends it."""
        metrics.CANDIDATE_FAILURES.labels(candidate.reference, rollout.stage).inc()
        is_late = isinstance(error, GraphTimeoutError)
        details = {
            "model": candidate.reference,
            "stage": rollout.stage,
            "reason": str(error),
            "suspended": is_late,
        }
        logger.error("a candidate failed", extra={"details": details})
        if is_late:
            self._suspended |= {_state(rollout)}


def keys_of(route: Route, context: RequestContext) -> tuple[RequestKey, ...]:
    """The keys under which a request may have been answered, its own first; empty without a request id."""
    if context.request_id is None:
        return ()
    models = (route.model.id, *sorted(route.earlier - {route.model.id}))
    return tuple(RequestKey(model, context.environment, context.request_id) for model in models)


def _state(rollout: Rollout) -> tuple[int, str]:
    return rollout.id, rollout.changed_at.isoformat()


def _key(request: ImageRequest) -> bytes:
    """The key by which a canary chooses: the group, else the request id, else the content."""
    context = request.context
    if context.group is not None:
        return b"group\0" + context.group.encode()
    if context.request_id is not None:
        return b"request\0" + context.request_id.encode()
    return b"body\0" + request.body_digest()
