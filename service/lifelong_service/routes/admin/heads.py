"""`/v1/admin/models/{reference}/heads`: list, show, publish, roll back, pin."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.requests import Request

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store.access.records import Scope
from lifelong_core.store.heads.records import Activation
from lifelong_core.values.names import Name
from lifelong_service.documents.registry import head_document, head_in_force_document, pin_document
from lifelong_service.http.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.schemas.registry import (
    ActivationAnswer,
    HeadAnswer,
    HeadInForce,
    HeadList,
    PinAnswer,
    PinList,
)
from lifelong_service.schemas.requests import RequestDocument

router = APIRouter(route_class=GuardedRoute, tags=["heads"])


class NewHead(RequestDocument):
    """A head as its JSON document; without an environment it becomes the model's default head.

    With `expected_sequence` it is published only if that is still the latest activation (0: no head was ever in
    force); with `digest` only if the head has this digest.
    """

    head: dict[str, Any] = Field(description="As HeadParameters.")
    environment: Name | None = None
    expected_sequence: int | None = Field(None, ge=0, le=2**31 - 1)
    digest: str | None = None
    force_reason: str | None = Field(
        None, description="Why costs that look like a mistake are right; kept in the audit log."
    )


class SeenPlace(RequestDocument):
    """Environment in which a head is in force; null: the model's default head.

    With `expected_sequence` the request fails if that is no longer the latest activation.
    """

    environment: Name | None = None
    expected_sequence: int | None = Field(None, ge=0, le=2**31 - 1)


class Rollback(SeenPlace):
    """Head to put in force: `to_version` of the model; null: the previous one. `pin_reason` also pins it."""

    to_version: int | None = Field(None, ge=1, le=2**31 - 1)
    pin_reason: str | None = Field(
        None, description="Why the restored head is pinned, in the same transaction; null: it is not."
    )


class NewPin(SeenPlace):
    """Pin of the head in force, with a reason."""

    reason: str


@router.get("/v1/admin/models/{reference}/heads")
@access(Scope.READ)
def list_heads(request: Request, reference: str, environment: Name | None = None) -> HeadList:
    """All heads of a model, oldest first, with the faults of damaged ones, the pins, and the history of activations.

    The history is that of `environment`; without one, that of the default head.
    """
    heads = worker_of(request).store.heads
    return {
        "heads": [head_document(record) for record in heads.list(reference)],
        "damaged": heads.list_damaged(reference),
        "pins": [pin_document(pin) for pin in heads.pins(reference)],
        "activations": [_activation(item) for item in heads.activations(reference, environment=environment)],
    }


@router.get("/v1/admin/models/{reference}/heads/{version}")
@access(Scope.READ)
def show_head(
    request: Request, reference: str, version: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> HeadAnswer:
    """One head with all its parameters."""
    return head_document(worker_of(request).store.heads.get(reference, version))


@router.post("/v1/admin/models/{reference}/heads", status_code=201)
@access(Scope.OPERATE)
def publish_head(request: Request, reference: str, new: NewHead) -> HeadInForce:
    """Publish a head and put it in force; every worker uses it within a second.

    The calibration set of a new default head becomes the active set of the model.
    """
    worker = worker_of(request)
    head = PostProcessingHead.from_document(new.head)
    record = worker.store.heads.publish(
        reference,
        head,
        environment=new.environment,
        actor=actor_of(request),
        expected_sequence=new.expected_sequence,
        expected_digest=new.digest,
        force_reason=new.force_reason,
    )
    return head_in_force_document(worker.store, record, new.environment)


@router.post("/v1/admin/models/{reference}/heads/rollback")
@access(Scope.OPERATE)
def roll_back(request: Request, reference: str, place: Rollback) -> HeadInForce:
    """Put the previous or a given earlier head in force; the answer is the head in force.

    For the default head, its calibration set becomes the active set of the model again. For an environment's head, the
    active set stays: `calibration` explains how to withdraw it. `outlook` says whether a cycle may undo the roll-back;
    with `pin_reason` none can.
    """
    worker = worker_of(request)
    record = worker.store.heads.rollback(
        reference,
        environment=place.environment,
        actor=actor_of(request),
        expected_sequence=place.expected_sequence,
        to_version=place.to_version,
        pin_reason=place.pin_reason,
    )
    return head_in_force_document(worker.store, record, place.environment)


@router.post("/v1/admin/models/{reference}/heads/pin", status_code=201)
@access(Scope.OPERATE)
def pin_head(request: Request, reference: str, new: NewPin) -> PinAnswer:
    """Pin the head in force: cycles do not replace it until it is unpinned; operators still can."""
    pin = worker_of(request).store.heads.pin(
        reference,
        environment=new.environment,
        reason=new.reason,
        actor=actor_of(request),
        expected_sequence=new.expected_sequence,
    )
    return pin_document(pin)


@router.post("/v1/admin/models/{reference}/heads/unpin")
@access(Scope.OPERATE)
def unpin_head(request: Request, reference: str, place: SeenPlace) -> PinList:
    """Unpin the head: cycles may replace it again; the answer lists the remaining pins."""
    heads = worker_of(request).store.heads
    heads.unpin(
        reference,
        environment=place.environment,
        actor=actor_of(request),
        expected_sequence=place.expected_sequence,
    )
    return {"pins": [pin_document(pin) for pin in heads.pins(reference)]}


def _activation(item: Activation) -> ActivationAnswer:
    return {
        "sequence": item.sequence,
        "environment": item.environment,
        "head_version": item.head_version,
        "reason": item.reason,
        "uses_default_head": item.uses_default_head,
        "activated_at": item.activated_at.isoformat(),
        "activated_by": item.activated_by,
    }
