"""`lifelong feedback history`: every change of the label of a prediction."""

import json
from datetime import datetime
from uuid import UUID

import click

from lifelong.commands.common import as_json, open_store
from lifelong.commands.tables import print_rows
from lifelong.printing import echo


@click.command(short_help="Show every change of the label of a prediction.")
@click.argument("prediction_id", type=click.UUID)
@as_json
def history(prediction_id: UUID, *, as_json: bool) -> None:
    """Show every change of the label of PREDICTION_ID, oldest first: from what to what, by whom, when."""
    with open_store() as store:
        document = store.labels.history_document(prediction_id)
    if as_json:
        echo(json.dumps(document))
        return
    rows = [
        {
            "revision": one["revision"],
            "recorded_at": datetime.fromisoformat(one["recorded_at"]),
            "from": one["previous_name"],
            "to": one["name"],
            "propensity": one["propensity"],
            "source": one["source"],
            "actor": one["actor"],
        }
        for one in document["revisions"]
    ]
    print_rows(rows, as_json=False, empty="The prediction has no label.")
