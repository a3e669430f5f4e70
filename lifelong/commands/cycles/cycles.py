"""`lifelong cycles`: what the monitor judged, and what came of it."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

import click

from lifelong.commands.common import (
    CommandGroup,
    as_json,
    environment_option,
    format_count,
    model_option,
    population_arguments,
)
from lifelong.commands.connection import Connection, LocalStore, connect
from lifelong.commands.cycles.cycle_text import print_affected, print_cycle, print_figures
from lifelong.commands.jobs import run_operation, timeout_option
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.entities.affected import AffectedAnswer
from lifelong_core.entities.cycles import CycleAnswer
from lifelong_core.operations.cycles import (
    LARGEST_PAGE,
    ListAffected,
    ListCycles,
    ReplayCycle,
    RunCycle,
    ShowCycle,
    affected_pages,
)
from lifelong_core.operations.models import ShowModel
from lifelong_core.values.csv_files import csv_writer
from lifelong_core.values.errors import InvalidInputError, LifelongError

SHORT_ID = 13
"""Characters of an id that hold its time, to the millisecond: nearly always unique."""
ROWS_OF_A_TABLE = 20
"""Predictions that `affected` shows unless asked for more."""
DIFFERS = 1
"""Exit status of `replay` where the report is another one."""
NOT_REPLAYED = 2
"""Exit status of `replay` where the cycle cannot be replayed."""
NOT_RECORDED = 1
"""Exit status of `run` where no cycle was recorded."""
_CSV_COLUMNS = (
    "prediction_id",
    "logged_at",
    "head_version",
    "decision",
    "new_decision",
    "expected_cost",
    "group",
    "true_class",
)


@click.group(cls=CommandGroup, short_help="List, show, replay and run cycles.")
def cycles() -> None:
    """Cycles of the monitor: what each one judged, why it ended as it did, and what it published."""


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
    with connect() as connection:
        wanted = ListCycles(model=model, environment=environment, outcome=outcome, limit=limit)
        listed = connection.send(wanted).cycles
    if as_json:
        echo(json.dumps([cycle.to_document() for cycle in listed]))
        return
    rows = [
        {
            "cycle": short,
            "due_at": cycle.due_at,
            "model": cycle.model,
            "environment": cycle.environment,
            "outcome": cycle.effect + (", rejected" if cycle.rejection else ""),
            "head": _heads(cycle),
        }
        for short, cycle in zip(_short_ids(listed), listed, strict=True)
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
    with connect() as connection:
        shown = connection.send(ShowCycle.read({"cycle": cycle}))
        if as_json:
            echo(json.dumps(shown.to_document()))
        else:
            _print_cycle(connection, shown)


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
    if as_csv and as_json:
        raise InvalidInputError("--csv and --json exclude each other.", field="--csv")
    if limit is None and not (as_csv or as_json):
        limit = ROWS_OF_A_TABLE
    with connect() as connection:
        pages = read_affected(connection, cycle, limit)
        first = next(pages)  # what refuses the list does so before anything is written
        if as_csv:
            _write_csv(chain((first,), pages))
            return
        read = [first, *pages]
    predictions = [affected for page in read for affected in page.predictions]
    listed = dataclasses.replace(first, predictions=predictions, next=read[-1].next)
    if as_json:
        echo(json.dumps(listed.to_document()))
        return
    echo(f"{listed.model} in {listed.environment}, cycle {listed.cycle}")
    print_figures(listed.figures, listed.decisions, listed.head_version)
    if predictions:
        echo()
        print_affected(predictions, listed.decisions)
    if listed.next is not None:
        echo(f"The {limit} most costly ones; --limit shows more, --csv all.")


@cycles.command(short_help="Replay a cycle and compare the reports.")
@click.argument("cycle")
@timeout_option
@as_json
def replay(cycle: str, timeout: timedelta, *, as_json: bool) -> None:
    """Judge the window of a past cycle again and compare the reports; a monitor does it, as a job.

    CYCLE is the id of the cycle, or as much of its beginning as is unique. Reports are compared to the last bit; of a
    large window, which is made of summaries, numbers are compared to 1e-9.

    It exits with 0 where the report is the same, 1 where it differs, and 2 where the cycle cannot be replayed: its
    predictions were deleted, no monitor runs, or the job took too long.

    \b
    Examples:
      lifelong cycles replay 01a1ff54-3b2c
      lifelong cycles replay 01a1ff54-3b2c --json --timeout 60s
    """
    try:
        with connect() as connection:
            job = run_operation(connection, ReplayCycle.read({"cycle": cycle}), timeout)
    except LifelongError as error:
        echo(f"Error: the cycle was not replayed. {error}", fg="red", err=True)
        raise click.exceptions.Exit(NOT_REPLAYED) from error
    result = job.result or {}
    if as_json:
        echo(json.dumps(result))
    else:
        _print_replay(result)
    if not result["same"]:
        raise click.exceptions.Exit(DIFFERS)


@cycles.command(short_help="Run a cycle of a population now.")
@population_arguments
@timeout_option
@as_json
def run(model: str, environment: str, timeout: timedelta, *, as_json: bool) -> None:
    """Run a cycle of MODEL in ENVIRONMENT (`default`) now, whether predictions are new or not.

    A monitor runs it, as a job. The cycle is one like any other: it holds the lease of the population, is recorded, and
    obeys policy, mode and pins. The audit log names who asked for it. It exits with 0 where the cycle was recorded,
    else with 1.

    \b
    Example:
      lifelong cycles run resnet clinic-a
    """
    with connect() as connection:
        job = run_operation(connection, RunCycle(model=model, environment=environment), timeout)
        result = job.result or {}
        if as_json:
            echo(json.dumps(result))
        elif result["cycle"] is not None:
            _print_cycle(connection, connection.send(ShowCycle(cycle=result["cycle"])))
        else:
            echo(wrap_text(f"No cycle was recorded: {result['reason']}."))
    if result["cycle"] is None:
        raise click.exceptions.Exit(NOT_RECORDED)


def _print_cycle(connection: Connection, cycle: CycleAnswer) -> None:
    print_cycle(cycle, connection.send(ShowModel(model=cycle.model)).classes)


def read_affected(connection: Connection, cycle: str, limit: int | None) -> Iterator[AffectedAnswer]:
    """The affected predictions of a cycle, at most `limit`, in pages; a local store reads the period only once."""
    if isinstance(connection, LocalStore):
        store = connection.context.store
        period = store.affected.period(store.cycles.find(cycle))
        yield from affected_pages(store, period, store.affected.most_costly(period, limit=limit))
        return
    after = None
    while limit is None or limit > 0:
        size = LARGEST_PAGE if limit is None else min(limit, LARGEST_PAGE)
        page = connection.send(ListAffected.read({"cycle": cycle, "after": after, "limit": size}))
        yield page
        if page.next is None:
            return
        after, limit = page.next, None if limit is None else limit - len(page.predictions)


def _write_csv(pages: Iterable[AffectedAnswer]) -> None:
    """Write a line for each prediction: ids, hashes and numbers only."""
    write = csv_writer(sys.stdout, _CSV_COLUMNS)
    for page in pages:
        for affected in page.predictions:
            document = affected.to_document()
            write(document[name] for name in _CSV_COLUMNS)


def _heads(cycle: CycleAnswer) -> str:
    published = cycle.published_version
    return f"{cycle.head_version}" if published is None else f"{cycle.head_version} -> {published}"


def _short_ids(cycles: Sequence[CycleAnswer]) -> list[str]:
    """The beginning of each id, long enough to tell them apart."""
    ids = [str(cycle.id) for cycle in cycles]
    length = SHORT_ID
    while len({identity[:length] for identity in ids}) < len(ids):
        length += 1
    return [identity[:length] for identity in ids]


def _print_replay(result: dict[str, Any]) -> None:
    echo(result["cycle"])
    exactly = "to the last bit" if result["tolerance"] == 0 else f"to {result['tolerance']:g}"
    if result["same"]:
        echo(f"the same {exactly}", fg="green", bold=True)
        return
    count = result["differing_fields"]
    echo(f"differs in {format_count(count, 'field')}", fg="red", bold=True)
    rows = [
        {name: _text(value) for name, value in difference.items()} for difference in result["differences"]
    ]
    print_rows(rows, as_json=False, empty="")
    if count > len(rows):
        echo(f"The first {len(rows)} of {count}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
