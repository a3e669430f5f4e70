"""`lifelong calibration-sets`: the calibration sets of a model, and the active one."""

from typing import TYPE_CHECKING

import click

from lifelong.commands.common import CommandGroup, actor, as_json, model_argument, open_store
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.store import CalibrationSet, Model


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
    with open_store() as store:
        chosen = store.models.get(model)
        rows = [
            {
                "id": record.id,
                "active": record.id == chosen.calibration_set_id,
                "samples": record.samples,
                "created_at": record.created_at,
                "preprocessing": _compared(record, chosen),
                "digest": record.digest,
            }
            for record in store.calibration_sets.list(chosen.reference)
        ]
    print_rows(rows, as_json=as_json, empty="No calibration set yet: `lifelong calibrate`.", below="digest")


@calibration_sets.command()
@model_argument
@click.argument("identifier", metavar="ID", type=click.IntRange(1, 2**31 - 1))
def activate(model: str, identifier: int) -> None:
    """Make calibration set ID of MODEL the active one: cycles fit heads on it.

    This withdraws the set that was active. The heads stay as they are: `lifelong heads rollback`
    changes the default head, and activates the set that it was fitted on.
    """
    from lifelong_core.store import describe_default_head

    with open_store() as store:
        chosen = store.calibration_sets.activate(model, identifier, actor=actor())
        described = store.models.get(model)
        sentence = describe_default_head(store, described)
    echo(f"Calibration set {chosen.id} of {described.reference} is active: cycles fit heads on it.")
    if sentence is not None:
        echo(sentence)


def _compared(record: "CalibrationSet", model: "Model") -> str:
    """Whether a set was made with the preprocessing of its model, as this installation computes it."""
    from lifelong_core.images.preprocessing_digest import differs

    if record.preprocessing_digest is None or model.preprocessing is None:
        return "unknown"
    return "other" if differs(record.preprocessing_digest, model.preprocessing) else "same"
