"""`lifelong cycles`: what the monitor judged, and what came of it."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import CommandGroup, as_json, environment_option, model_option, open_store
from lifelong.commands.cycles.affected_text import print_figures, print_predictions
from lifelong.commands.cycles.cycle_text import print_cycle
from lifelong.commands.cycles.replay import replay
from lifelong.commands.cycles.run import run
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lifelong_core.store import Cycle

SHORT_ID = 13
"""Characters of an id that hold its time, to the millisecond: nearly always unique."""
ROWS_OF_A_TABLE = 20
"""Predictions that `affected` shows unless asked for more."""


@click.group(cls=CommandGroup, short_help="List, show, replay and run cycles.")
def cycles() -> None:
    """Cycles of the monitor: what each one judged, why it ended as it did, and what it published."""


cycles.add_command(replay)
cycles.add_command(run)


@cycles.command("list")
@model_option()
@environment_option()
@click.option(
    "--outcome",
    type=click.Choice(["keep", "swap", "refuse"]),
    help="Only those that ended so; swap includes those that only propose one, or would swap.",
)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most cycles.")
@as_json
def list_(model: str | None, environment: str | None, outcome: Any, limit: int, *, as_json: bool) -> None:
    """List the newest cycles, newest first.

    A cycle that wants another head publishes it in mode auto (swap), proposes it in mode propose and after unusual
    traffic (proposes a swap), or does nothing in mode shadow (would swap).

    \b
    Examples:
      lifelong cycles list --model resnet --environment clinic-a
      lifelong cycles list --outcome refuse --limit 5
    """
    from lifelong_core.operations.cycles import cycle_answers

    with open_store() as store:
        chosen = None if model is None else store.models.get(model).id
        found = store.cycles.list(chosen, environment, limit, outcome=outcome)
        models = {item.id: item for item in store.models.list()}
        if as_json:
            echo(json.dumps([answer.to_document() for answer in cycle_answers(store, found)]))
            return
    rows = [
        {
            "cycle": short,
            "due_at": cycle.due_at,
            "model": models[cycle.model_id].reference,
            "environment": cycle.environment,
            "outcome": cycle.effect + (", rejected" if cycle.rejection else ""),
            "head": _heads(cycle),
        }
        for short, cycle in zip(_short_ids(found), found, strict=True)
    ]
    constant = {"model": model, "environment": environment}
    rows = [{key: value for key, value in row.items() if constant.get(key) is None} for row in rows]
    print_rows(rows, as_json=False, empty="No such cycle: `lifelong monitor` runs them.")


@cycles.command()
@click.argument("cycle")
@as_json
def show(cycle: str, *, as_json: bool) -> None:
    """Show one cycle: outcome, reasons, estimate with intervals, tests, expected gain, and what was published.

    CYCLE is the id of the cycle, or as much of its beginning as is unique. --json prints the whole document, with the
    proposed head.
    """
    from lifelong_core.operations.cycles import cycle_answers

    with open_store() as store:
        found = store.cycles.find(cycle)
        if as_json:
            echo(json.dumps(cycle_answers(store, [found])[0].to_document()))
        else:
            print_cycle(store, found)


@cycles.command()
@click.argument("cycle")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Most predictions, the most costly ones.  [default: 20; CSV, JSON: all]",
)
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV: ids, hashes and numbers, a line for each prediction."
)
@as_json
def affected(cycle: str, limit: int | None, *, as_csv: bool, as_json: bool) -> None:
    """List the decisions before a swap that the new head would make otherwise, most costly first.

    CYCLE is the id of a cycle that wanted another head, or as much of its beginning as is unique. Predictions count
    from the last change of the prevalence that its report names (else from the beginning of its window) to the swap;
    what workers decide with an older head within an hour after it counts, too. Of a head that waits for approval, they
    count up to now; in mode shadow, up to the cycle.

    The cost of a decision is the expected cost of what was decided less that of what the new head decides, both as the
    new head expects it. Groups are hashes, as in `lifelong export`.

    \b
    Examples:
      lifelong cycles affected 01a1ff54-3b2c
      lifelong cycles affected 01a1ff54-3b2c --csv > affected.csv
    """
    from lifelong_core.store.cycles.documents import affected_document, write_csv
    from lifelong_core.values.errors import InvalidInputError

    if as_csv and as_json:
        raise InvalidInputError("--csv and --json exclude each other.", field="--csv")
    if limit is None and not (as_csv or as_json):
        limit = ROWS_OF_A_TABLE
    with open_store() as store:
        found = store.cycles.find(cycle)
        period = store.affected.period(found)
        names = period.head.decision_names
        listed = store.affected.most_costly(period, limit=limit)
        if as_csv:
            write_csv(listed.predictions, sys.stdout)
            return
        model = next(model for model in store.models.list() if model.id == found.model_id)
        if as_json:
            echo(json.dumps(affected_document(listed, period, model.reference)))
            return
        predictions = list(listed.predictions)
    echo(f"{model.reference} in {found.environment}, cycle {found.id}")
    print_figures(listed.figures, names, period.head_version)
    if predictions:
        echo()
        print_predictions(predictions, names)
    if listed.next is not None:
        echo(f"The {limit} most costly ones; --limit shows more, --csv all.")


def _heads(cycle: "Cycle") -> str:
    published = cycle.published_version
    return f"{cycle.head_version}" if published is None else f"{cycle.head_version} -> {published}"


def _short_ids(cycles: "Sequence[Cycle]") -> list[str]:
    """The beginning of each id, long enough to tell them apart."""
    ids = [str(cycle.id) for cycle in cycles]
    length = SHORT_ID
    while len({one[:length] for one in ids}) < len(ids):
        length += 1
    return [one[:length] for one in ids]
