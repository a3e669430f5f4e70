"""`lifelong feedback`: its sub-commands, and the history of the label of a prediction."""

import json
from uuid import UUID

import click

from lifelong.commands.common import CommandGroup, as_json
from lifelong.commands.connection import connect
from lifelong.commands.feedback.advise import advise, plans
from lifelong.commands.feedback.importing import import_labels
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.operations.feedback import ShowLabelHistory


@click.group(cls=CommandGroup, short_help="Labels of logged predictions.")
def feedback() -> None:
    """Labels of logged predictions: true classes that arrive later."""


@click.command(short_help="Show every change of the label of a prediction.")
@click.argument("prediction_id", type=click.UUID)
@as_json
def history(prediction_id: UUID, *, as_json: bool) -> None:
    """Show every change of the label of PREDICTION_ID, oldest first: from what to what, by whom, when."""
    with connect() as connection:
        shown = connection.send(ShowLabelHistory(prediction=prediction_id))
    if as_json:
        echo(json.dumps(shown.to_document()))
        return
    rows = [
        {
            "revision": revision.revision,
            "recorded_at": revision.recorded_at,
            "from": revision.previous_name,
            "to": revision.name,
            "propensity": revision.propensity,
            "source": revision.source,
            "actor": revision.actor,
        }
        for revision in shown.revisions
    ]
    print_rows(rows, as_json=False, empty="The prediction has no label.")


for command in (advise, plans, import_labels, history):
    feedback.add_command(command)
