"""`lifelong calibration-sets`: the calibration sets of a model, and the active one."""

from typing import TYPE_CHECKING

import click

from lifelong.commands.common import CommandGroup, actor, as_json, format_count, model_argument, open_store
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


@calibration_sets.command("remove-group-keys")
def remove_group_keys() -> None:
    """Replace the group keys that older versions stored by numbers, in the sets of all models.

    The sets still tell which cases belong together, but no longer to which patient or study. Backups are not changed.
    Evidence of a shift starts anew for models whose active set had keys.
    """
    from lifelong_core.values.errors import NotFoundError

    with open_store() as store:
        changed = 0
        for model in store.models.list():
            for record in store.calibration_sets.list(model.reference):
                try:
                    changed += store.calibration_sets.remove_group_keys(record.id, actor=actor())
                except NotFoundError as error:
                    echo(f"Calibration set {record.id}: {error}", fg="yellow", err=True)
    if changed:
        echo(
            f"Removed the group keys from {format_count(changed, 'calibration set')}; backups may still hold them."
        )
    else:
        echo("No calibration set holds group keys.")


def _compared(record: "CalibrationSet", model: "Model") -> str:
    """Whether a set was made with the preprocessing of its model, as this installation computes it."""
    from lifelong_core.images.preprocessing_digest import differs

    if record.preprocessing_digest is None or model.preprocessing is None:
        return "unknown"
    return "other" if differs(record.preprocessing_digest, model.preprocessing) else "same"
