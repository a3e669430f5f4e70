"""Heads of a model: list, history, show, publish, roll back, pin, unpin."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.head_wording import describe_head
from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.heads import (
    ActivationAnswer,
    HeadAnswer,
    HeadHistory,
    HeadHistoryEntry,
    HeadInForce,
    HeadRecord,
    PinAnswer,
)
from lifelong_core.operations.operation import LARGEST, Call, Context, ForceReason, ModelReference, operation
from lifelong_core.store.heads.outlook import describe_outlook
from lifelong_core.values.names import Name

HeadVersion = Annotated[int, Field(ge=1, le=LARGEST)]
Place = Annotated[Name | None, Field(description="Environment of the head; none: the model's default head.")]
Sequence = Annotated[
    int | None,
    Field(
        ge=0,
        le=LARGEST,
        description="Number of the newest activation that you know (0: none); the call fails if there is a newer one.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PinList(Entity):
    """The pins of a model."""

    pins: list[PinAnswer]


@dataclass(frozen=True, kw_only=True)
class HeadList(PinList):
    """The heads of a model, the faults of damaged ones by version, its pins and the history of active heads."""

    heads: list[HeadAnswer]
    damaged: dict[int, str]
    activations: list[ActivationAnswer]


class ListHeads(Call[HeadList]):
    """The model, and the environment whose history is wanted."""

    model: ModelReference
    environment: Place = None


class ShowHeadHistory(Call[HeadHistory]):
    """The place, and how many activations are wanted."""

    model: ModelReference
    environment: Place = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ShowHead(Call[HeadAnswer]):
    """The head of a model."""

    model: ModelReference
    version: HeadVersion


class NewHead(Call[HeadInForce]):
    """A head as its JSON document; without an environment it becomes the model's default head."""

    model: ModelReference
    head: dict[str, Any] = Field(description="As HeadParameters.")
    environment: Place = None
    expected_sequence: Sequence = None
    digest: Annotated[
        str | None, Field(description="Digest of the head; a head with another digest is refused.")
    ] = None
    force_reason: ForceReason = None


class RollBack(Call[HeadInForce]):
    """The head to put in force."""

    model: ModelReference
    environment: Place = None
    expected_sequence: Sequence = None
    to_version: Annotated[
        HeadVersion | None,
        Field(
            description="Version to go back to; without it, that of the head that was active before this one."
        ),
    ] = None
    pin_reason: Annotated[
        str | None, Field(description="Also pin the restored head, so that no cycle replaces it: the reason.")
    ] = None


class NewPin(Call[PinAnswer]):
    """Pin of the head in force, with a reason."""

    model: ModelReference
    environment: Place = None
    expected_sequence: Sequence = None
    reason: str = Field(description="Why the head is pinned; the list of heads shows it.")


class Unpin(Call[PinList]):
    """The head whose pin is removed."""

    model: ModelReference
    environment: Place = None
    expected_sequence: Sequence = None


@operation("GET", "/v1/admin/models/{model}/heads", scope=Scope.READ, example=ListHeads(model="resnet"))
def list_heads(context: Context, call: ListHeads) -> HeadList:
    """All heads of a model, oldest first, with the faults of damaged ones, the pins, and the history of activations.

    The history is that of `environment`; without one, that of the default head.
    """
    heads = context.store.heads
    return HeadList(
        heads=list(heads.list(call.model)),
        damaged=heads.list_damaged(call.model),
        pins=list(heads.pins(call.model)),
        activations=list(heads.activations(call.model, environment=call.environment)),
    )


@operation(
    "GET",
    "/v1/admin/models/{model}/head-history",
    scope=Scope.READ,
    example=ShowHeadHistory(model="resnet", environment="clinic-a"),
)
def show_head_history(context: Context, call: ShowHeadHistory) -> HeadHistory:
    """What serves in an environment, or as the default head, in words, and the newest activations there."""
    store = context.store
    model, environment = store.models.get(call.model), call.environment
    if environment is not None:
        store.environments.get(environment)
    history = store.heads.activations(model.reference, environment=environment)
    newest = history[: -call.limit - 1 : -1]
    serving = store.heads.serving(model.reference, environment)
    versions = {one.head_version for one in newest} | {
        version for version in [serving] if version is not None
    }
    heads = store.heads.some(model.reference, versions)
    follows_default = environment is not None and (not history or history[-1].uses_default_head)
    return HeadHistory(
        model=model.reference,
        environment=environment,
        serving=serving,
        text="" if serving is None else _in_words(heads.get(serving)),
        follows_default=follows_default,
        sequence=history[-1].sequence if history else 0,
        pin=store.heads.pin_in_force(model.reference, environment),
        outlook=describe_outlook(store, model, environment, at=datetime.now(UTC)),
        activations=[
            HeadHistoryEntry.of(
                one, text=_in_words(heads.get(one.head_version)), cycle=_cycle(heads.get(one.head_version))
            )
            for one in newest
        ],
    )


@operation(
    "GET",
    "/v1/admin/models/{model}/heads/{version}",
    scope=Scope.READ,
    example=ShowHead(model="resnet", version=1),
)
def show_head(context: Context, call: ShowHead) -> HeadAnswer:
    """One head with all its parameters."""
    return context.store.heads.get(call.model, call.version)


@operation(
    "POST",
    "/v1/admin/models/{model}/heads",
    scope=Scope.OPERATE,
    status=201,
    example=NewHead(
        model="resnet",
        environment="clinic-a",
        head={
            "schema_version": 1,
            "temperature": 1.5,
            "bias": [0.0, 0.2],
            "costs": [[0.0, 1.0], [5.0, 0.0]],
            "assumed_prevalence": [0.8, 0.2],
            "class_names": ["benign", "malignant"],
        },
    ),
)
def publish_head(context: Context, call: NewHead) -> HeadInForce:
    """Publish a head and put it in force; every worker uses it within a second.

    The calibration set of a new default head becomes the active set of the model.
    """
    record = context.store.heads.publish(
        call.model,
        PostProcessingHead.from_document(call.head),
        environment=call.environment,
        actor=context.actor,
        expected_sequence=call.expected_sequence,
        expected_digest=call.digest,
        force_reason=call.force_reason,
    )
    return _in_force(context, record, call.environment)


@operation(
    "POST",
    "/v1/admin/models/{model}/heads/rollback",
    scope=Scope.OPERATE,
    example=RollBack(model="resnet", environment="clinic-a"),
)
def roll_back(context: Context, call: RollBack) -> HeadInForce:
    """Put the previous or a given earlier head in force; the answer is the head in force.

    In mode auto a cycle may publish a head again within minutes, unless the head is pinned, too; the outlook says
    whether. For the default head, its calibration set becomes the active set of the model again, so that no cycle fits
    a head on a set that was withdrawn. For an environment's head, the active set stays; the answer explains how to
    withdraw it.
    """
    record = context.store.heads.rollback(
        call.model,
        environment=call.environment,
        actor=context.actor,
        expected_sequence=call.expected_sequence,
        to_version=call.to_version,
        pin_reason=call.pin_reason,
    )
    return _in_force(context, record, call.environment)


@operation(
    "POST",
    "/v1/admin/models/{model}/heads/pin",
    scope=Scope.OPERATE,
    status=201,
    example=NewPin(model="resnet", environment="clinic-a", reason="wrong since the new scanner"),
)
def pin_head(context: Context, call: NewPin) -> PinAnswer:
    """Pin the head in force: cycles do not replace it until it is unpinned; operators still can."""
    return context.store.heads.pin(
        call.model,
        environment=call.environment,
        reason=call.reason,
        actor=context.actor,
        expected_sequence=call.expected_sequence,
    )


@operation(
    "POST",
    "/v1/admin/models/{model}/heads/unpin",
    scope=Scope.OPERATE,
    example=Unpin(model="resnet", environment="clinic-a"),
)
def unpin_head(context: Context, call: Unpin) -> PinList:
    """Unpin the head: cycles may replace it again; the answer lists the remaining pins."""
    heads = context.store.heads
    heads.unpin(
        call.model,
        environment=call.environment,
        actor=context.actor,
        expected_sequence=call.expected_sequence,
    )
    return PinList(pins=list(heads.pins(call.model)))


def _in_words(head: HeadRecord | str | None) -> str:
    return describe_head(head.head) if isinstance(head, HeadRecord) else (head or "missing")


def _cycle(head: HeadRecord | str | None) -> str | None:
    return head.head.provenance.get("cycle") if isinstance(head, HeadRecord) else None


def _in_force(context: Context, record: HeadRecord, environment: str | None) -> HeadInForce:
    """A head that became active in a place, with the calibration set of the next fit and what cycles may do."""
    store = context.store
    calibration = store.calibration_sets.of_head(record)
    return HeadInForce.of(
        record,
        fitted_on=None if calibration.fitted_on is None else calibration.fitted_on.id,
        active_calibration_set=None if calibration.active is None else calibration.active.id,
        calibration=calibration.sentence(),
        outlook=describe_outlook(
            store, store.registry().models[record.model_id], environment, at=datetime.now(UTC)
        ),
    )
