"""`lifelong cycles replay`: does a past cycle come out the same again?"""

import json
from datetime import timedelta
from typing import Any

import click

from lifelong.commands.common import as_json, format_count, open_store
from lifelong.commands.jobs import run_job, timeout_option
from lifelong.commands.tables import print_rows
from lifelong.printing import echo

DIFFERS = 1
"""Exit status where the report is another one."""
NOT_REPLAYED = 2
"""Exit status where the cycle cannot be replayed."""


@click.command(short_help="Replay a cycle and compare the reports.")
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
    from lifelong_core.values.errors import LifelongError

    try:
        with open_store() as store:
            found = store.cycles.find(cycle)
            result = run_job(store, "replay", {"cycle": str(found.id)}, timeout).result or {}
    except LifelongError as error:
        echo(f"Error: the cycle was not replayed. {error}", fg="red", err=True)
        raise click.exceptions.Exit(NOT_REPLAYED) from error
    if as_json:
        echo(json.dumps(result))
    else:
        _print_result(result)
    if not result["same"]:
        raise click.exceptions.Exit(DIFFERS)


def _print_result(result: dict[str, Any]) -> None:
    echo(result["cycle"])
    exactly = "to the last bit" if result["tolerance"] == 0 else f"to {result['tolerance']:g}"
    if result["same"]:
        echo(f"the same {exactly}", fg="green", bold=True)
        return
    count = result["differing_fields"]
    echo(f"differs in {format_count(count, 'field')}", fg="red", bold=True)
    rows = [{name: _text(value) for name, value in one.items()} for one in result["differences"]]
    print_rows(rows, as_json=False, empty="")
    if count > len(rows):
        echo(f"The first {len(rows)} of {count}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
