"""`lifelong calibration-sets`: the calibration sets of a model, and the active one."""

import click

from lifelong.commands.common import CommandGroup, as_json, model_argument
from lifelong.commands.connection import connect
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows
from lifelong_core.entities.heads import CalibrationSetAnswer
from lifelong_core.entities.registry import ModelAnswer
from lifelong_core.images.preprocessing_digest import differs
from lifelong_core.operations.calibration_sets import (
    ActivateCalibrationSet,
    ActivatedCalibrationSet,
    ListCalibrationSets,
)
from lifelong_core.operations.models import ShowModel


@click.group(
    "calibration-sets", cls=CommandGroup, short_help="List and activate calibration sets, remove group keys."
)
def calibration_sets() -> None:
    """Calibration sets of a model. Cycles fit heads on the active one."""


@calibration_sets.command("list")
@model_argument
@as_json
def list_(model: str, *, as_json: bool) -> None:
    """List the calibration sets of MODEL, oldest first.

    The column preprocessing compares how the images were decoded and preprocessed with this installation: same, other,
    or unknown, as for most files of logits.
    """
    with connect() as connection:
        shown = connection.send(ShowModel(model=model))
        listed = connection.send(ListCalibrationSets(model=shown.model))
    rows = [
        {
            "id": record.id,
            "active": record.id == listed.active,
            "samples": record.samples,
            "created_at": record.created_at,
            "preprocessing": _compared(record, shown),
            "digest": record.digest,
        }
        for record in listed.calibration_sets
    ]
    print_rows(rows, as_json=as_json, empty="No calibration set yet: `lifelong calibrate`.", below="digest")


def _compared(record: CalibrationSetAnswer, model: ModelAnswer) -> str:
    """Whether a set was made with the preprocessing of its model, as this installation computes it."""
    if record.preprocessing_digest is None or model.preprocessing is None:
        return "unknown"
    return "other" if differs(record.preprocessing_digest, model.preprocessing) else "same"


def _activated(answer: ActivatedCalibrationSet, _: ActivateCalibrationSet) -> str:
    sentence = f"Calibration set {answer.id} of {answer.model} is active: cycles fit heads on it."
    return sentence if answer.default_head is None else f"{sentence}\n{answer.default_head}"


calibration_sets.add_command(
    operation_command(
        ActivateCalibrationSet,
        "activate",
        help_text="""Make calibration set ID of MODEL the active one: cycles fit heads on it.

        This withdraws the set that was active. The heads stay as they are: `lifelong heads rollback`
        changes the default head, and activates the set that it was fitted on.
        """,
        text=_activated,
        metavars={"identifier": "ID"},
    )
)
