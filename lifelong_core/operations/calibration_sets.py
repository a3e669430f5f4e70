"""Calibration sets of a model: list, show, activate."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.heads import CalibrationSetAnswer
from lifelong_core.operations.operation import LARGEST, Call, Context, ModelReference, operation
from lifelong_core.store import describe_default_head
from lifelong_core.values.errors import NotFoundError

SetId = Annotated[int, Field(ge=1, le=LARGEST)]


@dataclass(frozen=True, kw_only=True)
class CalibrationSetList(Entity):
    """The calibration sets of a model, oldest first."""

    active: int | None
    """the one that heads and quantifiers are fitted on; null: none"""
    calibration_sets: list[CalibrationSetAnswer]


@dataclass(frozen=True, eq=False, kw_only=True)
class ActivatedCalibrationSet(CalibrationSetAnswer):
    """The new active calibration set of a model; its heads stay."""

    model: str
    default_head: str | None
    """what the default head was fitted on, in words; null: there is none"""


class ListCalibrationSets(Call[CalibrationSetList]):
    """The model."""

    model: ModelReference


class ShowCalibrationSet(Call[CalibrationSetAnswer]):
    """A calibration set of a model."""

    model: ModelReference
    identifier: SetId


class ActivateCalibrationSet(Call[ActivatedCalibrationSet]):
    """A calibration set of a model."""

    model: ModelReference
    identifier: SetId


@operation(
    "GET",
    "/v1/admin/models/{model}/calibration-sets",
    scope=Scope.READ,
    example=ListCalibrationSets(model="resnet"),
)
def list_calibration_sets(context: Context, call: ListCalibrationSets) -> CalibrationSetList:
    """The calibration sets of a model; `active` is the one that heads and quantifiers are fitted on."""
    model = context.store.models.get(call.model)
    sets = context.store.calibration_sets.list(model.reference)
    return CalibrationSetList(active=model.calibration_set_id, calibration_sets=list(sets))


@operation(
    "GET",
    "/v1/admin/models/{model}/calibration-sets/{identifier}",
    scope=Scope.READ,
    example=ShowCalibrationSet(model="resnet", identifier=2),
)
def show_calibration_set(context: Context, call: ShowCalibrationSet) -> CalibrationSetAnswer:
    """One calibration set."""
    model = context.store.models.get(call.model)
    record = context.store.calibration_sets.get(call.identifier)
    if record.model_id != model.id:
        raise NotFoundError(
            f"the model {model.reference} has no calibration set {call.identifier}.", field="identifier"
        )
    return record


@operation(
    "POST",
    "/v1/admin/models/{model}/calibration-sets/{identifier}/activate",
    scope=Scope.OPERATE,
    example=ActivateCalibrationSet(model="resnet", identifier=2),
)
def activate_calibration_set(context: Context, call: ActivateCalibrationSet) -> ActivatedCalibrationSet:
    """Activate a calibration set of the model: later cycles fit heads on it.

    This withdraws the set that was active. Present heads stay; a roll-back of the default head changes it, and
    activates the set that it was fitted on. Status 422 if the set was made with another preprocessing than this
    installation computes for the model.
    """
    store = context.store
    chosen = store.calibration_sets.activate(call.model, call.identifier, actor=context.actor)
    model = store.models.get(call.model)
    return ActivatedCalibrationSet.of(
        chosen, model=model.reference, default_head=describe_default_head(store, model)
    )
